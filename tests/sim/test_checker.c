/* The checker checked: it must find every planted bug, and find nothing without one; and a seed must say the same
 * each time. */
#include "common/check.h"
#include "tests/sim/minimise.h"
#include "tests/sim/run.h"
#include "tests/unit/suite.h"

#include <string.h>

static struct run_result run(uint64_t seed, enum plant plant, enum fault_level faults)
{
    struct plan_options options = {.seed = seed, .servers = 3, .entities = 40, .ticks = 150, .faults = faults};
    struct run_result result;
    run_seed(&options, plant, NULL, &result);
    return result;
}

START_TEST(every_planted_bug_is_found)
{
    for (int i = 1; i < (int)PLANT_MUTATIONS; i++) {
        enum plant plant = (enum plant)i;
        uint32_t found = 0;
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct run_result r = run(seed, plant, FAULTS_NONE);
            if (!r.violated) continue;
            found++;
            ck_assert_msg(strstr(r.violation, plant_says(plant)) != NULL, "%s, seed %d: %s", plant_name(plant),
                          (int)seed, r.violation);
        }
        ck_assert_msg(found > 0, "the checker does not find the planted bug %s", plant_name(plant));
    }
}
END_TEST

START_TEST(without_a_plant_the_same_seeds_hold)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct run_result r = run(seed, PLANT_NONE, FAULTS_NONE);
        ck_assert_msg(!r.violated, "seed %d: %s", (int)seed, r.violation);
        ck_assert_uint_ge(r.calms, 2);
        ck_assert_uint_gt(r.handoffs, 0);
    }
}
END_TEST

START_TEST(a_seed_gives_the_same_trace_each_time)
{
    for (uint64_t seed = 11; seed <= 13; seed++) {
        struct run_result a = run(seed, PLANT_NONE, FAULTS_ALL), b = run(seed, PLANT_NONE, FAULTS_ALL);
        ck_assert_uint_eq(a.trace_hash, b.trace_hash);
        ck_assert_uint_eq(a.steps, b.steps);
        ck_assert_uint_ne(a.trace_hash, run(seed + 100, PLANT_NONE, FAULTS_ALL).trace_hash);
    }
}
END_TEST

START_TEST(a_replay_command_has_all_that_makes_the_run)
{
    char text[400];
    struct plan_options options = {.faults = FAULTS_NET, .standbys = true, .ticks = 150, .servers = 3, .entities = 20};
    minimise_flags(&options, text, sizeof text);
    ck_assert_str_eq(text, " --faults net --servers 3 --entities 20 --ticks 150 --standbys");
    options = (struct plan_options){.faults = FAULTS_DEATHS, .standbys = true, .only = true, .kept = 5};
    minimise_flags(&options, text, sizeof text);
    ck_assert_str_eq(text, " --faults deaths --only-faults 1,3"); /* there are always standbys */
}
END_TEST

SUITE_MAIN("checker", every_planted_bug_is_found, without_a_plant_the_same_seeds_hold,
           a_seed_gives_the_same_trace_each_time, a_replay_command_has_all_that_makes_the_run)
