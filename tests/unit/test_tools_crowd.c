/* Crowds: bots follow tracks without jumps, stay in the square, and do what their workload says. */
#include "tests/unit/suite.h"
#include "tools/crowd.h"

#include <math.h>
#include <string.h>

#define TICK_S 0.05

static struct recording people(void)
{
    struct recording r = {0};
    recording_generate(&r, 3, 200);
    return r;
}

static struct crowd *open(const struct recording *r, enum crowd_workload workload, uint32_t count, double side,
                          double band)
{
    return crowd_open(&(struct crowd_options){.recording = r,
                                              .origin_x = -100,
                                              .origin_y = 40,
                                              .side = side,
                                              .band = band,
                                              .seed = 5,
                                              .count = count,
                                              .workload = workload});
}

/* The largest step of any bot that did not jump, in m/s, and how many jumped. */
struct walk {
    double fastest, mean;
    uint32_t jumps, outside, misled; /* outside the square; yaws out of range */
};

static struct walk walk(struct crowd *c, double side, uint32_t ticks)
{
    struct walk w = {0};
    uint32_t count = crowd_count(c);
    struct crowd_place *before = malloc(count * sizeof *before);
    ck_assert_ptr_nonnull(before);
    for (uint32_t tick = 0; tick < ticks; tick++) {
        for (uint32_t i = 0; i < count; i++) before[i] = crowd_place(c, i);
        crowd_step(c, TICK_S);
        for (uint32_t i = 0; i < count; i++) {
            struct crowd_place p = crowd_place(c, i);
            w.outside += !(p.x > -100 && p.x < -100 + side && p.y > 40 && p.y < 40 + side);
            w.misled += !(p.yaw >= 0 && p.yaw < 6.2831854);
            if (crowd_jumped(c, i)) {
                w.jumps++;
                continue;
            }
            double speed = hypot(p.x - before[i].x, p.y - before[i].y) / TICK_S;
            w.fastest = fmax(w.fastest, speed);
            w.mean += speed / count / ticks;
        }
    }
    free(before);
    ck_assert_uint_eq(w.outside, 0); /* counted, since an assertion a step costs more than the step */
    ck_assert_uint_eq(w.misled, 0);
    return w;
}

START_TEST(walkers_never_jump_and_walk_at_walking_pace)
{
    struct recording r = people();
    struct crowd *c = open(&r, CROWD_WALK, 500, 800, 0);
    struct walk w = walk(c, 800, 1200); /* a minute: most tracks end and are followed by others */
    ck_assert(w.fastest < 4.0);
    ck_assert(w.mean > 0.7 && w.mean < 1.6);
    ck_assert_uint_eq(w.jumps, 0);
    crowd_close(c);
    recording_close(&r);
}
END_TEST

START_TEST(riders_never_jump_and_ride_at_riding_pace)
{
    struct recording r = people();
    struct crowd *c = open(&r, CROWD_RIDE, 500, 800, 0);
    struct walk w = walk(c, 800, 1200);
    ck_assert(w.fastest < 30.0);
    ck_assert(w.mean > 4.0 && w.mean < 10.0);
    crowd_close(c);
    recording_close(&r);
}
END_TEST

START_TEST(every_workload_stays_in_the_smallest_square)
{
    struct recording r = people();
    for (int workload = CROWD_WALK; workload <= CROWD_MIX; workload++) {
        struct crowd *c = open(&r, (enum crowd_workload)workload, 200, 20, 5);
        walk(c, 20, 400);
        crowd_close(c);
    }
    recording_close(&r);
}
END_TEST

START_TEST(only_teleporters_jump_about_every_five_seconds)
{
    struct recording r = people();
    struct crowd *c = open(&r, CROWD_TELEPORT, 400, 500, 0);
    struct walk w = walk(c, 500, 400); /* 400 bots for 20 s */
    ck_assert_uint_gt(w.jumps, 1300);
    ck_assert_uint_lt(w.jumps, 1900);
    crowd_close(c);
    recording_close(&r);
}
END_TEST

START_TEST(a_band_keeps_scenes_near_the_middle_lines)
{
    struct recording r = people();
    struct crowd *c = open(&r, CROWD_WALK, 1000, 2000, 30);
    uint32_t near = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct crowd_place p = crowd_place(c, i);
        near += fmin(fabs(p.x + 100 - 1000), fabs(p.y - 40 - 1000)) < 60;
    }
    ck_assert_uint_gt(near, 900);
    crowd_close(c);
    recording_close(&r);
}
END_TEST

START_TEST(groups_of_a_scene_stay_as_recorded)
{
    static const char text[] = "0 1 0 0\n10 1 1 0\n20 1 2 0\n30 1 3 0\n0 2 0 2\n10 2 1 2\n20 2 2 2\n30 2 3 2\n";
    struct recording r = {0};
    struct recording_fault fault;
    ck_assert_int_eq(recording_add(&r, "pair", text, strlen(text), &fault), TERRANE_ERR_OK);
    struct crowd *c = open(&r, CROWD_WALK, 20, 500, 0);
    for (uint32_t i = 0; i < 20; i += 2) {
        struct crowd_place a = crowd_place(c, i), b = crowd_place(c, i + 1);
        ck_assert_double_eq_tol(hypot(a.x - b.x, a.y - b.y), 2.0, 1e-4);
    }
    crowd_close(c);
    recording_close(&r);
}
END_TEST

START_TEST(a_mix_holds_all_workloads_in_its_shares)
{
    struct recording r = people();
    struct crowd *c = open(&r, CROWD_MIX, 10000, 3000, 0);
    uint32_t bots[CROWD_MIX] = {0};
    for (uint32_t i = 0; i < 10000; i++) {
        ck_assert_int_ne(crowd_workload_of(c, i), CROWD_MIX);
        bots[crowd_workload_of(c, i)]++;
    }
    ck_assert(bots[CROWD_WALK] > 3000 && bots[CROWD_WALK] < 5000);
    ck_assert(bots[CROWD_RIDE] > 3000 && bots[CROWD_RIDE] < 5000);
    for (int workload = 0; workload < CROWD_MIX; workload++) ck_assert_uint_gt(bots[workload], 20);
    crowd_close(c);
    recording_close(&r);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_crowd)
{
    struct recording r = people();
    struct crowd *a = open(&r, CROWD_MIX, 300, 600, 0), *b = open(&r, CROWD_MIX, 300, 600, 0);
    for (int tick = 0; tick < 300; tick++) {
        crowd_step(a, TICK_S);
        crowd_step(b, TICK_S);
    }
    for (uint32_t i = 0; i < 300; i++) {
        ck_assert_double_eq(crowd_place(a, i).x, crowd_place(b, i).x);
        ck_assert_double_eq(crowd_place(a, i).y, crowd_place(b, i).y);
    }
    crowd_close(a);
    crowd_close(b);
    recording_close(&r);
}
END_TEST

START_TEST(speed_is_a_factor_on_all_paths)
{
    struct recording r = people();
    struct crowd_options options = {.recording = &r, .side = 800, .seed = 5, .count = 300, .speed = 3};
    struct crowd *c = crowd_open(&options);
    double far = 0;
    for (uint32_t i = 0; i < 300; i++) {
        struct crowd_place before = crowd_place(c, i);
        crowd_step(c, 0); /* no time: nobody moves */
        ck_assert_double_eq_tol(crowd_place(c, i).x, before.x, 1e-6);
    }
    for (int tick = 0; tick < 100; tick++) {
        struct crowd_place before = crowd_place(c, 0);
        crowd_step(c, TICK_S);
        far = fmax(far, hypot(crowd_place(c, 0).x - before.x, crowd_place(c, 0).y - before.y) / TICK_S);
    }
    ck_assert(far > 1.5 && far < 12);
    crowd_close(c);
    recording_close(&r);
}
END_TEST

SUITE_MAIN("crowd", walkers_never_jump_and_walk_at_walking_pace, riders_never_jump_and_ride_at_riding_pace,
           every_workload_stays_in_the_smallest_square, only_teleporters_jump_about_every_five_seconds,
           a_band_keeps_scenes_near_the_middle_lines, groups_of_a_scene_stay_as_recorded,
           a_mix_holds_all_workloads_in_its_shares, the_same_seed_gives_the_same_crowd, speed_is_a_factor_on_all_paths)
