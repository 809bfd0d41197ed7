/* Map events, and who should have heard them: each emitted event is judged a moment later. Who was within its radius
 * all that time must have heard it once, who was beyond must not have, who crossed the circle may.
 *
 * What it is not: it emits nothing; the caller does, and says when it is time to judge.
 * Memory: opaque, owned by the caller through open/close; one byte a bot and open event. */
#ifndef TERRANE_TOOLS_HEARING_H
#define TERRANE_TOOLS_HEARING_H

#include "tools/checker.h"

#define HEARING_OPEN 64u /* events not judged yet */

struct hearing; /* opaque */

struct hearing_counts {
    uint64_t emitted, judged, heard;
    uint64_t missed, false_heard, twice, unknown; /* unknown: of no event, to no bot, or with a damaged payload */
};

struct hearing *hearing_open(struct checker *checker, uint32_t bots, uint64_t first_id);
void hearing_close(struct hearing *h);

/* Begins an event; its payload, to be emitted, is hearing_payload(serial). 0: too many are open. Other swarms' events
 * are told apart by what their payloads say. */
uint64_t hearing_begin(struct hearing *h, struct position centre, uint32_t radius, uint64_t now_us);
#define HEARING_PAYLOAD 24u
void hearing_payload(const struct hearing *h, uint64_t serial, uint8_t out[HEARING_PAYLOAD]);

void hearing_heard(struct hearing *h, uint64_t observer, const void *payload, size_t size);

/* Judges those that began at least `age_us` ago. The checker's window (checker_measure) must reach over their age. */
void hearing_judge(struct hearing *h, uint64_t now_us, uint64_t age_us);
/* Whether everybody who must hear an open event has heard it. */
bool hearing_complete(const struct hearing *h);
/* The emit was refused: nobody has to hear it. */
void hearing_forget(struct hearing *h, uint64_t serial);
uint32_t hearing_open_count(const struct hearing *h);
const struct hearing_counts *hearing_counts(const struct hearing *h);

#endif
