/* Which numbered faults a seed has, and what options leave out of them. */
#include "tests/sim/dice.h"
#include "tests/sim/plan.h"

#include <math.h>
#include <string.h>

#define GATEWAY_DEATHS 1u /* a seed at most: each costs half a minute until its entities have gone */

static const struct {
    const char *name, *text;
} classes[] = {
#define X(NAME, name, what) {#name, what},
    FAULT_CLASSES(X)
#undef X
};

static const char *const levels[FAULT_LEVELS] = {"none", "net", "deaths", "all", "beyond"};

const char *fault_class_name(enum fault_class class)
{
    return classes[class].name;
}

const char *fault_class_text(enum fault_class class)
{
    return classes[class].text;
}

enum fault_class fault_class_of(const char *name, size_t size)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (strlen(classes[i].name) == size && memcmp(classes[i].name, name, size) == 0) return (enum fault_class)i;
    return CLASS_COUNT;
}

const char *fault_level_name(enum fault_level level)
{
    return levels[level];
}

enum fault_level fault_level_of(const char *name)
{
    for (int i = 0; i < FAULT_LEVELS; i++)
        if (strcmp(levels[i], name) == 0) return (enum fault_level)i;
    return FAULT_LEVELS;
}

/* From low to high, as likely in each power of two. */
static uint64_t spread(struct dice *d, uint64_t low, uint64_t high)
{
    return (uint64_t)((double)low * pow((double)high / (double)low, dice_fraction(d)));
}

static enum fault_class draw_class(const struct plan *plan, struct dice *d)
{
    static const enum fault_class likely[] = {
        CLASS_CRASH, CLASS_CRASH,   CLASS_CRASH,       CLASS_CRASH,     CLASS_CRASH,  CLASS_PAUSE,
        CLASS_PAUSE, CLASS_PAUSE,   CLASS_PARTITION,   CLASS_PARTITION, CLASS_SLOW,   CLASS_FLAP,
        CLASS_JUMP,  CLASS_GATEWAY, CLASS_COORDINATOR, CLASS_OUTAGE,    CLASS_FORGET,
    };
    enum fault_class class = likely[dice_below(d, sizeof likely / sizeof *likely)];
    bool stored = class == CLASS_COORDINATOR || class == CLASS_OUTAGE || class == CLASS_FORGET;
    if (plan->faults == FAULTS_DEATHS || (stored && plan->storeless)) return CLASS_CRASH;
    return class;
}

/* A set of members, neither empty nor all of them: one, two, or each with an even chance. */
static void draw_side(const struct plan *plan, struct dice *d, struct plan_fault *f)
{
    uint32_t members = 1 + plan->servers + plan->gateways;
    uint64_t shape = dice_below(d, 4);
    f->side[0] = f->side[1] = 0;
    if (shape == 0) {
        for (uint32_t i = 0; i < members; i++)
            if (dice_chance(d, 0.5)) f->side[i / 64] |= UINT64_C(1) << i % 64;
    }
    /* Mostly a cell server alone; now and then the coordinator or a gateway. */
    uint32_t one = dice_chance(d, 0.7) ? 1 + (uint32_t)dice_below(d, plan->servers) : (uint32_t)dice_below(d, members);
    f->side[one / 64] |= UINT64_C(1) << one % 64;
    if (shape == 1) {
        uint32_t two = (uint32_t)dice_below(d, members);
        f->side[two / 64] |= UINT64_C(1) << two % 64;
    }
}

static void draw_fault(const struct plan *plan, struct dice *d, struct plan_fault *f)
{
    f->class = draw_class(plan, d);
    f->after_us = dice_below(d, plan->phase_us);
    f->detail = dice_next(d);
    f->victim = (uint32_t)dice_below(d, plan->servers);
    f->more = plan->faults == FAULTS_BEYOND && dice_chance(d, 0.5);
    f->clogs = dice_chance(d, 0.5);
    uint64_t direction = dice_below(d, 4);
    f->out = direction != 0;
    f->in = direction != 1;
    draw_side(plan, d, f);
    switch (f->class) {
    case CLASS_CRASH: f->span_us = spread(d, 50000, 8000000); break; /* until it starts anew */
    case CLASS_PAUSE:
        f->span_us = spread(d, 2000, 5 * plan->lease_us);
        /* Any process: mostly servers. */
        if (dice_chance(d, 0.3)) f->victim = plan->servers + (uint32_t)dice_below(d, 1 + plan->gateways);
        break;
    case CLASS_PARTITION: f->span_us = spread(d, 20000, 8 * plan->lease_us); break;
    case CLASS_SLOW: f->span_us = spread(d, 50000, 8 * plan->lease_us); break;
    case CLASS_FLAP: f->span_us = spread(d, 100000, 3000000); break;
    case CLASS_GATEWAY:
        f->victim = (uint32_t)dice_below(d, plan->gateways);
        f->span_us = spread(d, 50000, 4000000);
        break;
    case CLASS_COORDINATOR:
        f->span_us = dice_chance(d, 0.7) ? dice_below(d, 2000000) : spread(d, 10000, 8000000);
        break;
    case CLASS_JUMP:
        f->victim = (uint32_t)dice_below(d, 1 + plan->servers + plan->gateways);
        f->span_us = spread(d, 1000, 4 * plan->lease_us); /* so far */
        break;
    case CLASS_OUTAGE: f->span_us = spread(d, 50000, 4000000); break;
    case CLASS_FORGET:
    case CLASS_LOSS:
    case CLASS_BREAKS:
    case CLASS_STALLS:
    case CLASS_STORE:
    case CLASS_SKEW:
    case CLASS_COUNT: break;
    }
}

static void leave_out(struct plan *plan, const struct plan_options *options)
{
    uint32_t without = options->without;
    if (without & 1u << CLASS_LOSS) plan->feed_loss = 0;
    if (without & 1u << CLASS_BREAKS) plan->break_mean_us = 0;
    if (without & 1u << CLASS_STALLS) plan->stall_chance = 0;
    if (without & 1u << CLASS_STORE) plan->store_failure = 0;
    if (without & 1u << CLASS_SKEW) plan->skew = 0;
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        struct plan_fault *f = &plan->fault[i];
        f->left_out = (without & 1u << f->class) != 0 || (options->only && !(options->kept >> i & 1));
    }
}

void plan_draw_faults(struct plan *plan, const struct plan_options *options)
{
    struct dice d = dice_of(options->seed, 8);
    if (plan->faults >= FAULTS_DEATHS) {
        uint32_t gateway_deaths = 0;
        for (uint32_t phase = 0; phase < plan->phases; phase++) {
            uint64_t most = plan->faults == FAULTS_DEATHS ? 3 : 5;
            uint64_t count = 1 + dice_below(&d, most);
            for (uint64_t i = 0; i < count && plan->fault_count < PLAN_FAULTS; i++) {
                struct plan_fault *f = &plan->fault[plan->fault_count++];
                *f = (struct plan_fault){.phase = phase};
                draw_fault(plan, &d, f);
                if (f->class == CLASS_GATEWAY && gateway_deaths++ >= GATEWAY_DEATHS) f->class = CLASS_CRASH;
                f->victim %= f->class == CLASS_CRASH ? plan->servers : UINT32_MAX;
            }
        }
    }
    leave_out(plan, options);
}
