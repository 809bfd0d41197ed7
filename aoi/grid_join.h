/* Inside the join: what grid_join.c prepares and the kernels (plain, AVX2, AVX-512) work on. */
#ifndef TERRANE_AOI_GRID_JOIN_H
#define TERRANE_AOI_GRID_JOIN_H

#include "aoi/grid.h"

#define JOIN_REACH_MOST 8

struct join {
    struct grid *grid;
    unsigned first; /* UNSEES: around the old places; SEES: around the new ones */
    uint32_t reach; /* rows and columns of the stencil */
    unsigned shift; /* packed positions are position >> shift, 16 bits each */
    bool exact;     /* a noted pair needs no second look: shift 0, no hysteresis */
    bool banded;    /* second pass with hysteresis */
    bool mixed;     /* the rows hold more than one radius, or need a second look: each member has its limits */
    struct join_row *rows[JOIN_REACH_MOST + 1]; /* from the one that is joined upwards */
};

/* Joins the own part of rows[0] with itself and with what lies in reach east and north of it. */
typedef void join_kernel(struct join *join, uint32_t columns_from, uint32_t columns_to);
join_kernel join_row_plain, join_row_avx2, join_row_avx512;

/* What is asked of some rows of a page's cells, all with a fresh copy. */
struct sieve {
    const uint32_t *words; /* of the pool */
    uint32_t centre, limit;
    uint32_t columns, rows;
};
/* Writes the members whose packed position has a squared distance below `limit` to `centre`; returns the end of what it
 * wrote. `out` needs room for SIFT_MORE words more. */
#define SIFT_MORE 16
typedef uint32_t *sift_kernel(const struct sieve *sieve, const struct cell *corner, uint32_t *out);
sift_kernel sift_plain, sift_avx2, sift_avx512;

/* A pair that may have changed: looks at the bodies, books and notes what is true. Returns whether it noted any. */
bool join_judge(struct join *join, uint32_t subject, uint32_t other);

#endif
