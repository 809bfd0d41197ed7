/* The main() of every unit test: list the tests, run them, fail if there were none. */
#ifndef TERRANE_TESTS_UNIT_SUITE_H
#define TERRANE_TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 0);
    for (size_t i = 0; i < count; i++) tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && run == (int)count && run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SUITE_MAIN("name", test_a, test_b) defines main(). */
#define SUITE_MAIN(name, ...)                                                                                          \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return suite_run(name, tests, sizeof tests / sizeof *tests);                                                   \
    }

#endif
