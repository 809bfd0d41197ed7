/* A failing seed with fewer faults: leaves out classes, then numbered faults, as long as a violation of the same kind
 * comes. What is left says where to look. */
#ifndef TERRANE_TESTS_SIM_MINIMISE_H
#define TERRANE_TESTS_SIM_MINIMISE_H

#include "tests/sim/run.h"

/* `options` and `result` are of the failing run; both become those of the smallest that is found with at most `runs`
 * more. Returns the runs that were made. */
uint32_t minimise(struct plan_options *options, enum plant plant, uint32_t runs, struct run_result *result);
/* The flags that stand for `options`, with a space before each; "" if all are the defaults of main.c. */
void minimise_flags(const struct plan_options *options, char *text, size_t room);

#endif
