/* What happened, as lines for people and as one hash for the machine.
 *
 * The hash covers every event that any core was given, with its time and bytes, and every callback; so two runs of
 * one seed have one hash, and a core that depends on anything but its events shows. */
#ifndef TERRANE_TESTS_SIM_TRACE_H
#define TERRANE_TESTS_SIM_TRACE_H

#include "common/core.h"

struct sim;

void trace_event(struct sim *sim, uint32_t member, const struct event *event);
void trace_output(struct sim *sim, uint32_t member, const struct output *output, const uint8_t *bytes);

#endif
