#include "tests/sim/minimise.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct search {
    struct plan_options *options;
    struct run_result *result;
    enum plant plant;
    const char *kind;
    uint32_t runs, limit;
};

/* Takes `like` if it fails in the same way. */
static bool try(struct search *s, const struct plan_options *like)
{
    struct run_result result;
    if (s->runs >= s->limit) return false;
    s->runs++;
    run_seed(like, s->plant, NULL, &result);
    if (!result.violated || result.violation_kind != s->kind) return false;
    *s->options = *like;
    *s->result = result;
    return true;
}

static void leave_out_classes(struct search *s)
{
    if (s->options->faults < FAULTS_ALL) return;
    for (uint32_t class = 0; class < CLASS_SINGLE; class ++) {
        struct plan_options like = *s->options;
        if (like.without & 1u << class) continue;
        like.without |= 1u << class;
        try(s, &like);
    }
}

static uint32_t count_of(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

/* The lowest `count` bits of a set. */
static uint64_t lowest(uint64_t set, uint32_t count)
{
    uint64_t taken = 0;
    for (; count > 0 && set != 0; count--) {
        taken |= set & (0 - set);
        set &= set - 1;
    }
    return taken;
}

/* Halves of what is kept, then quarters, down to single faults. */
static void leave_out_faults(struct search *s)
{
    struct plan_options like = *s->options;
    like.only = true;
    like.kept &= s->result->faults_begun;
    if (count_of(like.kept) < count_of(s->options->kept) && !try(s, &like)) return;
    for (uint32_t size = (count_of(s->options->kept) + 1) / 2; size > 0; size /= 2) {
        uint64_t left = s->options->kept;
        while (left != 0) {
            uint64_t part = lowest(left, size);
            left &= ~part;
            like = *s->options;
            like.kept &= ~part;
            try(s, &like);
        }
    }
}

uint32_t minimise(struct plan_options *options, enum plant plant, uint32_t runs, struct run_result *result)
{
    struct search s = {
        .options = options, .result = result, .plant = plant, .kind = result->violation_kind, .limit = runs};
    if (!options->only) {
        options->only = true;
        options->kept = UINT64_MAX;
    }
    leave_out_faults(&s);
    leave_out_classes(&s);
    return s.runs;
}

static void add(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

void minimise_flags(const struct plan_options *o, char *text, size_t room)
{
    const char *separator = " --without ";
    text[0] = '\0';
    add(text, room, " --faults %s", fault_level_name(o->faults));
    for (uint32_t class = 0; class < CLASS_COUNT; class ++) {
        bool implied = o->only && class >= CLASS_SINGLE;
        if (!(o->without & 1u << class) || implied) continue;
        add(text, room, "%s%s", separator, fault_class_name((enum fault_class) class));
        separator = ",";
    }
    if (o->only) add(text, room, " --only-faults%s", o->kept == 0 ? " none" : "");
    separator = " ";
    for (uint32_t i = 0; o->only && i < PLAN_FAULTS; i++) {
        if (!(o->kept >> i & 1)) continue;
        add(text, room, "%s%u", separator, i + 1);
        separator = ",";
    }
    if (o->servers != 0) add(text, room, " --servers %u", o->servers);
    if (o->entities != 0) add(text, room, " --entities %u", o->entities);
    if (o->ticks != 0) add(text, room, " --ticks %u", o->ticks);
    if (o->aoi != NULL) add(text, room, " --aoi %s", o->aoi);
    if (o->standbys && !o->balance && o->faults < FAULTS_DEATHS) add(text, room, " --standbys%s", "");
    if (o->balance) add(text, room, " --balance%s", "");
}
