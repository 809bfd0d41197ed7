/* Numbers that only nng's own statistics know: connections that never became a pipe, or broke. */
#include "io/link_internal.h"

#include <string.h>

static uint64_t listener_refused(nng_stat *listener)
{
    static const char *const causes[] = {"disconnect", "canceled", "other", "timeout",
                                         "proto",      "auth",     "oom",   "reject"};
    uint64_t sum = 0;
    for (nng_stat *s = nng_stat_child(listener); s != NULL; s = nng_stat_next(s))
        for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
            if (strcmp(nng_stat_name(s), causes[i]) == 0) sum += nng_stat_value(s);
    return sum;
}

static bool is_ours(const struct link *l, nng_stat *scope)
{
    if (strcmp(nng_stat_name(scope), "listener") != 0) return false;
    for (nng_stat *s = nng_stat_child(scope); s != NULL; s = nng_stat_next(s)) {
        if (strcmp(nng_stat_name(s), "id") != 0) continue;
        for (uint32_t i = 0; i < l->listener_count; i++)
            if (nng_stat_value(s) == (uint64_t)nng_listener_id(l->listeners[i])) return true;
    }
    return false;
}

/* nng_stat_find_listener of 1.5.2 finds the first listener whatever it is asked for, hence the walk. */
static uint64_t refused_below(const struct link *l, nng_stat *scope)
{
    uint64_t sum = 0;
    for (nng_stat *s = nng_stat_child(scope); s != NULL; s = nng_stat_next(s))
        sum += is_ours(l, s) ? listener_refused(s) : refused_below(l, s);
    return sum;
}

uint64_t link_refused(const struct link *l)
{
    nng_stat *all;
    if (nng_stats_get(&all) != 0) return 0;
    uint64_t sum = refused_below(l, all);
    nng_stats_free(all);
    return sum;
}
