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
join_kernel join_row_plain, join_row_avx2;

/* Writes those of `handles` whose packed position (in `copy`) has a squared distance below `limit` to `centre`;
 * returns how many. Up to seven words more are written to `out`, and read of the two inputs. */
typedef size_t sift_kernel(const uint32_t *copy, const uint32_t *handles, uint32_t count, uint32_t centre,
                           uint32_t limit, uint32_t *out);
sift_kernel sift_plain, sift_avx2;

/* Whether to use the AVX2 kernels. */
static inline bool kernels_avx2(const struct aoi *aoi)
{
#if defined(__x86_64__)
    return !aoi->plain && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
    (void)aoi;
    return false;
#endif
}

/* A pair that may have changed: looks at the bodies, books and notes what is true. Returns whether it noted any. */
bool join_judge(struct join *join, uint32_t subject, uint32_t other);

#endif
