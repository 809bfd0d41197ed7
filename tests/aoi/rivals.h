/* Several indexes in lockstep: each gets the same operations, and after each operation all must have told the same as
 * brute force, which is the first of them.
 *
 * What was told is compared as a sum of hashes of (observer, subject, sees or unsees), so that order does not matter,
 * and that unsees come before sees is looked at as they come. Entities are numbers from 0; their ids are one more. */
#ifndef TERRANE_TESTS_AOI_RIVALS_H
#define TERRANE_TESTS_AOI_RIVALS_H

#include "aoi/aoi.h"

#define RIVALS_MOST 32

struct tally {
    uint64_t sum, sees, unsees;
    bool disorder; /* an unsee after a see */
};

struct rival {
    const char *name;
    struct aoi *aoi;
    uint32_t *handles; /* by entity; AOI_HANDLE_NONE: not in the world */
    struct tally tally;
};

struct rivals {
    struct rival rivals[RIVALS_MOST];
    unsigned count;
    uint32_t room; /* entities */
    uint64_t operations, events;
    uint32_t *found; /* of queries */
    size_t found_room;
    char fault[256]; /* what differed; empty: nothing so far */
};

/* Opens brute force and every index that has the abilities, or of those only `only` unless that is NULL. False: there
 * is nobody to compare with. */
bool rivals_open(struct rivals *r, const struct aoi_options *options, uint32_t room, unsigned abilities,
                 const char *only);
void rivals_close(struct rivals *r);

bool rivals_live(const struct rivals *r, uint32_t entity);
/* Each of these asserts that all agree, also on the error; false: they do not, see `fault`. */
bool rivals_enter(struct rivals *r, uint32_t entity, const struct aoi_place *place);
bool rivals_leave(struct rivals *r, uint32_t entity);
bool rivals_move(struct rivals *r, uint32_t entity, struct position to);
bool rivals_set_radius(struct rivals *r, uint32_t entity, uint32_t radius);
bool rivals_set_layer(struct rivals *r, uint32_t entity, uint16_t layer);
bool rivals_recall(struct rivals *r, uint32_t observer, uint32_t subject);
bool rivals_stage(struct rivals *r, uint32_t entity, struct position to);
bool rivals_tick(struct rivals *r);
/* All queries around and between two places, and the view of one entity. */
bool rivals_query(struct rivals *r, struct position a, struct position b, uint32_t radius, int32_t layer,
                  uint32_t entity);

#endif
