/* The kernels in plain C, for machines without AVX2; tested to be the same. */
#define JOIN_ROW join_row_plain
#define SIFT     sift_plain
#include "aoi/grid_kernels.h"
