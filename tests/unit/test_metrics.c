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

START_TEST(durations_are_rendered_in_seconds)
{
    struct metrics m = {0};
    struct metrics_text t = {0};
    metrics_put(&m, METRIC_COUNTER_US, "cpu_seconds_total", "", "CPU.", 12000034);
    metrics_put(&m, METRIC_GAUGE_US, "late_seconds", "", "Late.", 250);
    metrics_prometheus(&m, &t);
    ck_assert_ptr_nonnull(strstr(t.data, "# TYPE cpu_seconds_total counter\ncpu_seconds_total 12.000034\n"));
    ck_assert_ptr_nonnull(strstr(t.data, "# TYPE late_seconds gauge\nlate_seconds 0.000250\n"));
    metrics_json(&m, &t);
    ck_assert_str_eq(t.data, "{\"cpu_seconds_total\":12.000034,\"late_seconds\":0.000250}");
    metrics_text_close(&t);
    metrics_close(&m);
}
END_TEST

START_TEST(a_histogram_counts_what_is_at_most_each_bound)
{
    struct metrics m = {0};
    struct metrics_text t = {0};
    struct metric_id id = metrics_histogram(&m, "took_seconds", "Took.");
    ck_assert_uint_eq(metrics_histogram(&m, "took_seconds", "Took.").v, id.v);
    metrics_observe(&m, id, 0);
    metrics_observe(&m, id, 100);
    metrics_observe(&m, id, 101);
    metrics_observe(&m, id, 1000000);
    metrics_observe(&m, id, 1000001);
    metrics_prometheus(&m, &t);
    ck_assert_ptr_nonnull(strstr(t.data, "# TYPE took_seconds histogram\n"
                                         "took_seconds_bucket{le=\"0.0001\"} 2\n"
                                         "took_seconds_bucket{le=\"0.00025\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(t.data, "took_seconds_bucket{le=\"0.5\"} 3\n"
                                         "took_seconds_bucket{le=\"1\"} 4\n"
                                         "took_seconds_bucket{le=\"+Inf\"} 5\n"
                                         "took_seconds_sum 2.000202\n"
                                         "took_seconds_count 5\n"));
    metrics_json(&m, &t);
    ck_assert_str_eq(t.data, "{\"took_seconds\":{\"le\":[0.0001,0.00025,0.0005,0.001,0.0025,0.005,0.01,0.016,0.025,"
                             "0.05,0.1,0.25,0.5,1],\"count\":[2,3,3,3,3,3,3,3,3,3,3,3,3,4],\"sum\":2.000202,"
                             "\"total\":5}}");
    metrics_text_close(&t);
    metrics_close(&m);
}
END_TEST

START_TEST(sums_of_several_parts_begin_from_zero_each_time)
{
    struct metrics part = {0}, sum = {0};
    metrics_put(&part, METRIC_COUNTER, "io_sent_total", "", "Sent.", 3);
    metrics_put(&part, METRIC_COUNTER, "other_total", "", "Other.", 5);
    metrics_put(&sum, METRIC_GAUGE, "ready", "", "Ready.", 1);
    for (int scrape = 0; scrape < 2; scrape++) {
        metrics_zero(&sum, "io_");
        metrics_sum(&sum, &part, "io_");
        metrics_sum(&sum, &part, "io_");
    }
    ck_assert_uint_eq(sum.count, 2); /* "other" is not asked for */
    struct metric_id sent = metrics_register(&sum, METRIC_COUNTER, "io_sent_total", "", "Sent.");
    ck_assert_uint_eq(metrics_get(&sum, sent), 6);
    ck_assert_uint_eq(metrics_get(&sum, metrics_register(&sum, METRIC_GAUGE, "ready", "", "Ready.")), 1);
    metrics_close(&part);
    metrics_close(&sum);
}
END_TEST

SUITE_MAIN("metrics", series_of_one_name_stand_together_with_one_help, registering_twice_finds_the_same_series,
           an_empty_registry_renders_empty, durations_are_rendered_in_seconds,
           a_histogram_counts_what_is_at_most_each_bound, sums_of_several_parts_begin_from_zero_each_time)
