#include "tools/hearing.h"

#include "common/check.h"
#include "tools/dice.h"

#include <stdlib.h>
#include <string.h>

struct sound {
    uint64_t serial; /* 0: free */
    uint64_t began_us;
    struct position centre;
    uint32_t radius;
    uint8_t *heard; /* how often, of each bot; stops at 2 */
};

struct hearing {
    struct checker *checker;
    uint32_t bots, open;
    uint64_t first_id, serial;
    struct sound sounds[HEARING_OPEN];
    struct hearing_counts counts;
};

struct hearing *hearing_open(struct checker *checker, uint32_t bots, uint64_t first_id)
{
    struct hearing *h = calloc(1, sizeof *h);
    CHECK(h != NULL);
    *h = (struct hearing){.checker = checker, .bots = bots, .first_id = first_id};
    for (uint32_t i = 0; i < HEARING_OPEN; i++) {
        h->sounds[i].heard = calloc(bots, 1);
        CHECK(h->sounds[i].heard != NULL);
    }
    return h;
}

void hearing_close(struct hearing *h)
{
    if (h == NULL) return;
    for (uint32_t i = 0; i < HEARING_OPEN; i++) free(h->sounds[i].heard);
    free(h);
}

static struct sound *sound_of(struct hearing *h, uint64_t serial)
{
    for (uint32_t i = 0; i < HEARING_OPEN && serial != 0; i++)
        if (h->sounds[i].serial == serial) return &h->sounds[i];
    return NULL;
}

uint64_t hearing_begin(struct hearing *h, struct position centre, uint32_t radius, uint64_t now_us)
{
    for (uint32_t i = 0; i < HEARING_OPEN; i++) {
        struct sound *s = &h->sounds[i];
        if (s->serial != 0) continue;
        memset(s->heard, 0, h->bots);
        s->serial = ++h->serial;
        s->began_us = now_us;
        s->centre = centre;
        s->radius = radius;
        h->open++;
        h->counts.emitted++;
        return s->serial;
    }
    return 0;
}

static void put(uint8_t *out, uint64_t v)
{
    for (uint32_t i = 0; i < 8; i++) out[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t take(const uint8_t *bytes)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < 8; i++) v |= (uint64_t)bytes[i] << (8 * i);
    return v;
}

/* Whose, which, and a check of both. */
void hearing_payload(const struct hearing *h, uint64_t serial, uint8_t out[HEARING_PAYLOAD])
{
    put(out, h->first_id);
    put(out + 8, serial);
    put(out + 16, dice_mix(h->first_id ^ dice_mix(serial)));
}

void hearing_heard(struct hearing *h, uint64_t observer, const void *payload, size_t size)
{
    uint8_t wanted[HEARING_PAYLOAD];
    uint64_t bot = observer - h->first_id, serial = 0;
    bool well = size == HEARING_PAYLOAD;
    if (well) {
        uint64_t whose = take(payload), check = take((const uint8_t *)payload + 16);
        serial = take((const uint8_t *)payload + 8);
        if (whose != h->first_id && check == dice_mix(whose ^ dice_mix(serial))) return; /* another swarm's */
        hearing_payload(h, serial, wanted);
        well = memcmp(payload, wanted, size) == 0;
    }
    if (!well || bot >= h->bots || serial == 0 || serial > h->serial) {
        h->counts.unknown++;
        return;
    }
    h->counts.heard++;
    struct sound *s = sound_of(h, serial);
    if (s != NULL && s->heard[bot] < 2) s->heard[bot]++;
}

static void judge(struct hearing *h, struct sound *s)
{
    for (uint32_t bot = 0; bot < h->bots; bot++) {
        enum checker_inside inside = checker_inside(h->checker, bot, s->centre, s->radius);
        h->counts.missed += inside == CHECKER_INSIDE && s->heard[bot] == 0;
        h->counts.false_heard += inside == CHECKER_OUTSIDE && s->heard[bot] > 0;
        h->counts.twice += s->heard[bot] > 1;
    }
    h->counts.judged++;
    h->open--;
    s->serial = 0;
}

void hearing_judge(struct hearing *h, uint64_t now_us, uint64_t age_us)
{
    for (uint32_t i = 0; i < HEARING_OPEN; i++) {
        struct sound *s = &h->sounds[i];
        if (s->serial != 0 && now_us - s->began_us >= age_us) judge(h, s);
    }
}

bool hearing_complete(const struct hearing *h)
{
    for (uint32_t i = 0; i < HEARING_OPEN; i++) {
        const struct sound *s = &h->sounds[i];
        for (uint32_t bot = 0; bot < h->bots && s->serial != 0; bot++)
            if (s->heard[bot] == 0 && checker_inside(h->checker, bot, s->centre, s->radius) == CHECKER_INSIDE)
                return false;
    }
    return true;
}

void hearing_forget(struct hearing *h, uint64_t serial)
{
    struct sound *s = sound_of(h, serial);
    if (s == NULL) return;
    s->serial = 0;
    h->open--;
}

uint32_t hearing_open_count(const struct hearing *h)
{
    return h->open;
}

const struct hearing_counts *hearing_counts(const struct hearing *h)
{
    return &h->counts;
}
