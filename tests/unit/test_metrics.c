#include "common/metrics.h"

#include "suite.h"

#include <string.h>

START_TEST(series_of_one_name_stand_together_with_one_help)
{
    struct metrics m = {0};
    struct metrics_text t = {0};
    struct metric_id full = metrics_register(&m, METRIC_COUNTER, "terrane_drops_total", "cause=\"full\"", "Drops.");
    struct metric_id owned = metrics_register(&m, METRIC_GAUGE, "terrane_owned", "", "Entities.");
    struct metric_id stale = metrics_register(&m, METRIC_COUNTER, "terrane_drops_total", "cause=\"stale\"", "Drops.");
    metrics_add(&m, full, 3);
    metrics_add(&m, full, 4);
    metrics_set(&m, owned, 12);
    metrics_set(&m, stale, UINT64_MAX);
    metrics_prometheus(&m, &t);
    ck_assert_str_eq(t.data, "# HELP terrane_drops_total Drops.\n"
                             "# TYPE terrane_drops_total counter\n"
                             "terrane_drops_total{cause=\"full\"} 7\n"
                             "terrane_drops_total{cause=\"stale\"} 18446744073709551615\n"
                             "# HELP terrane_owned Entities.\n"
                             "# TYPE terrane_owned gauge\n"
                             "terrane_owned 12\n");
    ck_assert_uint_eq(t.size, strlen(t.data));
    metrics_json(&m, &t);
    ck_assert_str_eq(t.data, "{\"terrane_drops_total{cause=\\\"full\\\"}\":7,"
                             "\"terrane_drops_total{cause=\\\"stale\\\"}\":18446744073709551615,"
                             "\"terrane_owned\":12}");
    metrics_text_close(&t);
    metrics_close(&m);
}
END_TEST

START_TEST(registering_twice_finds_the_same_series)
{
    struct metrics m = {0};
    struct metric_id a = metrics_register(&m, METRIC_GAUGE, "x", "", "X.");
    metrics_set(&m, a, 5);
    struct metric_id b = metrics_register(&m, METRIC_GAUGE, "x", "", "X.");
    ck_assert_uint_eq(a.v, b.v);
    ck_assert_uint_eq(metrics_get(&m, b), 5);
    ck_assert_uint_ne(metrics_register(&m, METRIC_GAUGE, "x", "lane=\"a\"", "X.").v, a.v);
    metrics_close(&m);
}
END_TEST

START_TEST(an_empty_registry_renders_empty)
{
    struct metrics m = {0};
    struct metrics_text t = {0};
    metrics_prometheus(&m, &t);
    ck_assert_str_eq(t.data, "");
    metrics_json(&m, &t);
    ck_assert_str_eq(t.data, "{}");
    metrics_text_close(&t);
    metrics_close(&m);
}
END_TEST

SUITE_MAIN("metrics", series_of_one_name_stand_together_with_one_help, registering_twice_finds_the_same_series,
           an_empty_registry_renders_empty)
