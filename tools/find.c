/* terrane find ID: which server owns an entity, and where it stands. */
#include "common/geometry.h"
#include "io/program.h"
#include "proto/json.h"
#include "proto/messages.h"
#include "tools/target.h"

#include <inttypes.h>
#include <stdio.h>

#define NAME "terrane find"

static struct flags {
    struct target target;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "2000", "One object; \"found\" says whether there was any."),
};

struct found {
    const struct cluster_server *server; /* NULL: nobody owns it */
    struct lookup_result result;
    uint32_t silent, changing; /* servers that did not answer, and those that are just taking it over */
};

static struct found look(struct cluster *c, struct entity_id id)
{
    struct found found = {0};
    struct writer question = {0};
    lookup_encode(&question, &(struct lookup){.request = 1, .id = id});
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct cluster_server *s = &c->servers[i];
        struct lookup_result result;
        struct cursor answer;
        enum terrane_error error = TERRANE_ERR_TIMED_OUT;
        if (s->answered) error = cluster_ask(c, s, &question, (uint32_t)flags.target.patience, &answer);
        if (error == TERRANE_ERR_OK) error = lookup_result_decode(answer, &result);
        if (error == TERRANE_ERR_OK) error = result.error;
        if (error == TERRANE_ERR_NOT_READY)
            found.changing++;
        else if (error == TERRANE_ERR_OK && (found.server == NULL || result.version > found.result.version))
            found.server = s, found.result = result;
        else if (error != TERRANE_ERR_OK && error != TERRANE_ERR_ENTITY_UNKNOWN)
            found.silent++;
    }
    writer_close(&question);
    return found;
}

static void print_json(const struct found *f, uint64_t id, const double at[3])
{
    struct writer w = {0};
    char key[LIMIT_QUADKEY_TEXT];
    json_open(&w, '{');
    json_key(&w, "id"), json_uint(&w, id);
    json_key(&w, "found"), json_bool(&w, f->server != NULL);
    json_key(&w, "servers_silent"), json_uint(&w, f->silent);
    if (f->server != NULL) {
        quadkey_text(f->result.leaf, key);
        json_key(&w, "server"), json_text(&w, f->server->name);
        json_key(&w, "region"), json_text(&w, key);
        json_key(&w, "version"), json_uint(&w, f->result.version);
        json_key(&w, "x"), json_double(&w, at[0]);
        json_key(&w, "y"), json_double(&w, at[1]);
        json_key(&w, "z"), json_double(&w, at[2]);
    }
    json_close(&w, '}');
    printf("%.*s\n", (int)w.size, (const char *)w.data);
    writer_close(&w);
}

static void print_text(const struct found *f, uint64_t id, const double at[3])
{
    char key[LIMIT_QUADKEY_TEXT];
    if (f->server != NULL) {
        quadkey_text(f->result.leaf, key);
        printf("%" PRIu64 "  on %s  in r/%s/  at %.2f %.2f %.2f  version %" PRIu64 "\n", id, f->server->name, key,
               at[0], at[1], at[2], f->result.version);
        return;
    }
    if (f->changing > 0)
        fprintf(stderr, "%s: %" PRIu64 " is changing hands just now; ask again\n", NAME, id);
    else if (f->silent > 0)
        fprintf(stderr, "%s: nobody who answers owns %" PRIu64 "; %u servers did not answer (terrane status)\n", NAME,
                id, f->silent);
    else
        fprintf(stderr, "%s: no server owns %" PRIu64 "; where it was last: terrane trace %" PRIu64 "\n", NAME, id, id);
}

int command_find(int argc, char **argv)
{
    int operand;
    command_configure(NAME,
                      "Finds an entity: its server, region, position (world units) and version. Exit code 1 if nobody\n"
                      "owns it.\n\nExample: terrane find 42 --json",
                      "ID", fields, sizeof fields / sizeof *fields, argc, argv, &operand);
    uint64_t id = command_entity(NAME, argc, argv, operand);
    struct cluster cluster;
    struct world world;
    target_open(NAME, &flags.target, &cluster);
    target_refresh(NAME, &flags.target, &cluster);
    struct found found = look(&cluster, (struct entity_id){id});
    double at[3] = {0};
    if (found.server != NULL) {
        enum terrane_error error = cluster_world(&cluster, &world);
        if (error != TERRANE_ERR_OK) program_fail(NAME, EXIT_NOT_HELD, "the world: %s", terrane_error_text(error));
        world_coordinates(&world, found.result.position, &at[0], &at[1], &at[2]);
    }
    if (flags.target.json) print_json(&found, id, at);
    if (!flags.target.json || found.server == NULL) print_text(&found, id, at);
    cluster_close(&cluster);
    return found.server != NULL ? EXIT_WELL : EXIT_NOT_HELD;
}
