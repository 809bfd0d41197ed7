/* What the files of the console share. Nothing outside console/ includes this.
 *
 *   console.c  whom to ask what, and what comes back    api.c      /api/...: parameters in, JSON out
 *   look.c     one rectangle of the world               journal.c  the latest events and hand-offs
 *   members.c  members of a JSON object                 page.c     the page's files (made by embed.cmake) */
#ifndef TERRANE_CONSOLE_INTERNAL_H
#define TERRANE_CONSOLE_INTERNAL_H

#include "console/console.h"
#include "console/journal.h"
#include "console/look.h"
#include "io/asker.h"

#define LOOKS_MAX 6u  /* rectangles at a time; those who look at the same share one */
#define FINDS_MAX 16u /* entities that are followed at a time */

#define LOOK_EVERY_US   UINT64_C(500000)  /* each server is surveyed so often, for all rectangles together */
#define STATUS_EVERY_US UINT64_C(1000000) /* and asked for its STATUS */
#define FIND_EVERY_US   UINT64_C(200000)  /* an entity's owner is asked where it is */
#define ROUND_EVERY_US  UINT64_C(1000000) /* all are asked who has it */
#define UNWANTED_US     UINT64_C(5000000) /* nobody has looked for so long: forgotten */
#define MAP_EVERY_US    UINT64_C(1000000) /* an unchanged map is rendered anew, for its loads */

struct server {
    struct node_id node;
    char name[LIMIT_NAME], url[LIMIT_URL];
    bool here;            /* scratch: a member at the last look */
    uint64_t asked_us;    /* for STATUS */
    uint64_t surveyed_us; /* asked for any rectangle */
    uint64_t heard_us;    /* its last STATUS; 0: never */
    struct writer status; /* that, without its long lists */
    uint64_t crossings;   /* of its hand-offs these have been told */
    bool introduced;      /* its first survey has come: hand-offs before that are old */
};

/* An entity that somebody follows. */
struct find {
    struct entity_id id;
    uint32_t generation;
    uint64_t wanted_us; /* 0: the place is free */
    uint64_t asked_us, round_us;
    uint32_t asked, denied;     /* servers in this round, and those that do not have it */
    struct node_id owner;       /* NODE_NONE: not known (any more) */
    uint64_t version, heard_us; /* of what follows; heard_us 0: never found */
    struct quadkey leaf;
    struct position position;
};

#define PAGES_MAX 16u
/* page.c: the files of the page; `path` NULL behind the last. */
struct console_file {
    const char *path, *type;
    const unsigned char *bytes;
    size_t size;
};
extern const struct console_file console_files[];

struct console {
    struct console_options options;
    struct asker *asker;
    struct journal journal;
    struct server *servers;
    uint32_t server_count, server_room;
    struct look looks[LOOKS_MAX];
    struct find finds[FINDS_MAX];
    struct writer question;
    struct writer map; /* as rendered last */
    uint64_t map_us, map_term, map_rev;
    char leader_http[LIMIT_URL]; /* of another that leads; "" not known */
    struct node_id leader;
    uint64_t leader_asked_us, started_ms;
    char policy[CONSOLES_POLICY];
    struct page {
        const struct console *console;
        const struct console_file *file;
    } pages[PAGES_MAX];
};

/* console.c */
uint64_t console_wall_ms(void);
void console_meet(struct console *c, uint64_t now_us);                 /* who is a member now */
struct server *console_server(struct console *c, struct node_id node); /* NULL: no member */
void console_want_status(struct console *c, uint64_t now_us);
/* The rectangle's place; others that nobody wants give way, else the one that was wanted least recently. */
struct look *console_want_look(struct console *c, const struct survey *survey, uint64_t now_us);
struct find *console_want_entity(struct console *c, struct entity_id id, uint64_t now_us);
void console_want_leader(struct console *c, uint64_t now_us);

/* api.c */
void console_api(void *console, const struct http_request *request, struct http_answer *out);

#endif
