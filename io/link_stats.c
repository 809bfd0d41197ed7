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

uint64_t link_refused(const struct link *l)
{
    nng_stat *all;
    if (nng_stats_get(&all) != 0) return 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->listener_count; i++) {
        nng_stat *listener = nng_stat_find_listener(all, l->listeners[i]);
        if (listener != NULL) sum += listener_refused(listener);
    }
    nng_stats_free(all);
    return sum;
}
