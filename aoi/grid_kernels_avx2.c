/* The kernels with AVX2; chosen at run time (kernels_best). Elsewhere they are the plain ones under another name. */
#if defined(__x86_64__)
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#endif
#define JOIN_ROW join_row_avx2
#define SIFT     sift_avx2
#include "aoi/grid_kernels.h"
