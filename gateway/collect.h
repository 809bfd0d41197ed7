/* What terrane_metrics renders, for programs of this tree that serve it together with numbers of their own. */
#ifndef TERRANE_GATEWAY_COLLECT_H
#define TERRANE_GATEWAY_COLLECT_H

#include "common/metrics.h"
#include "gateway/terrane.h"

/* Puts the sums over the sessions, their traffic, and this process's CPU time and memory into `out`. */
void gateway_collect(struct terrane *const *sessions, size_t count, struct metrics *out);

#endif
