/* Inside the join: what grid_join.c prepares and the row kernels (plain and AVX2) work on. */
#ifndef TERRANE_AOI_GRID_JOIN_H
#define TERRANE_AOI_GRID_JOIN_H

#include "aoi/grid.h"

#define JOIN_REACH_MOST 8

struct join {
    struct aoi *aoi;
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
join_kernel join_row_plain;
#if defined(__x86_64__)
join_kernel join_row_avx2;
#endif

/* A pair that may have changed: looks at the bodies, books and notes what is true. Returns whether it noted any. */
bool join_judge(struct join *join, uint32_t subject, uint32_t other);

#endif
