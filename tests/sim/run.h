/* One seed from beginning to end: plan, start, several times moving and standing still, counters. */
#ifndef TERRANE_TESTS_SIM_RUN_H
#define TERRANE_TESTS_SIM_RUN_H

#include "tests/sim/plan.h"
#include "tests/sim/plants.h"

#include <stdio.h>

struct run_result {
    bool violated;
    const char *violation_kind; /* a literal: the same for all violations of a kind */
    char violation[512];
    uint64_t violated_us;
    uint64_t trace_hash;
    uint64_t crossings;    /* changes of leaf that servers carried out, inside one or between two */
    uint64_t handoffs;     /* those between two */
    uint64_t faults;       /* frames and packets lost or late, connections broken */
    uint64_t faults_begun; /* of the numbered ones, a bit each */
    uint64_t deaths, promotions;
    uint64_t happened[CLASS_COUNT];
    uint64_t sim_us, steps, calms, sees, events, queries_short;
};

void run_seed(const struct plan_options *options, enum plant plant, FILE *trace, struct run_result *result);

#endif
