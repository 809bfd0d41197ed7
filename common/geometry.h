/* Where things are: cells, quadkeys, strips, distances. Pure arithmetic on integers; exact on every machine.
 *
 * What it is not: it keeps no state and knows no owner. */
#ifndef TERRANE_COMMON_GEOMETRY_H
#define TERRANE_COMMON_GEOMETRY_H

#include "common/errors.h"
#include "common/limits.h"
#include "common/types.h"

#define QUADKEY_NONE ((struct quadkey){0})
#define QUADKEY_ROOT ((struct quadkey){1})

/* A square of positions: [x, x + side) x [y, y + side). */
struct square {
    int32_t x, y;
    int64_t side;
};

/* The defaults of DESIGN 2: cell 50 m, depth 8, resolution 6.1 mm, radius mode, hysteresis 5 m, 20 Hz. */
struct world world_default(void);
/* Errors: CONFIG if a constant is out of its range or they contradict each other. */
enum terrane_error world_check(const struct world *world) TERRANE_MUST_CHECK;
bool world_equal(const struct world *a, const struct world *b);
/* World units (m) in one position unit. */
double world_unit(const struct world *world);
/* From world units to a position; z is rounded likewise. Errors: POSITION_INVALID, POSITION_OUTSIDE (edge refuse). */
enum terrane_error world_position(const struct world *world, double x, double y, double z,
                                  struct position *out) TERRANE_MUST_CHECK;
void world_coordinates(const struct world *world, struct position p, double *x, double *y, double *z);
/* A length in world units as position units, rounded to nearest, at most INT32_MAX. Negative or not finite: 0. */
uint32_t world_length(const struct world *world, double length);
bool world_contains(const struct world *world, struct position p);
/* Width of the border strip: radius_max + hysteresis + handoff_hysteresis rounded up to cells (block: one cell more
 * than handoff_hysteresis rounded up), in position units. */
int64_t world_strip(const struct world *world);
uint32_t world_cell_side(const struct world *world); /* position units */

uint32_t quadkey_depth(struct quadkey k);
struct quadkey quadkey_child(struct quadkey k, uint32_t digit);
struct quadkey quadkey_parent(struct quadkey k);                  /* of the root: NONE */
bool quadkey_contains(struct quadkey ancestor, struct quadkey k); /* itself included */
/* Orders regions by the Z-order of their south-west corners, ancestors first. <0, 0, >0. */
int quadkey_compare(struct quadkey a, struct quadkey b);
/* The region of that depth that holds p. */
struct quadkey quadkey_at(const struct world *world, struct position p, uint32_t depth);
struct square quadkey_square(const struct world *world, struct quadkey k);
/* Digits and a NUL into text[LIMIT_QUADKEY_TEXT]. */
void quadkey_text(struct quadkey k, char *text);
/* Errors: QUADKEY_INVALID (a character other than 0-3, or too deep). */
enum terrane_error quadkey_parse(const char *text, size_t size, struct quadkey *out) TERRANE_MUST_CHECK;
bool quadkey_valid(uint64_t v); /* a leading 1 at an even bit, at most LIMIT_QUADKEY_DEPTH deep */

bool square_contains(struct square s, struct position p);
/* Chebyshev distance from p to the square; 0 inside. */
int64_t square_distance(struct square s, struct position p);
/* Gap between two squares (Chebyshev); 0 if they touch or overlap. */
int64_t square_gap(struct square a, struct square b);
/* How deep p lies inside the square: distance to its nearest side; 0 on the border or outside. */
int64_t square_depth(struct square s, struct position p);
/* Whether the closed circle / rectangle meets the square. */
bool square_meets_circle(struct square s, struct position centre, int64_t radius);
bool square_meets_rectangle(struct square s, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y);
/* Index of the region on the Hilbert curve of its depth (for contiguous assignment). */
uint64_t quadkey_hilbert(struct quadkey k);

#endif
