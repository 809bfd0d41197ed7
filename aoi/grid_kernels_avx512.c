/* The kernels with AVX-512; chosen at run time (kernels_best). Elsewhere they are the plain ones under another name. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx2,bmi,bmi2,popcnt")
#endif
#define JOIN_ROW join_row_avx512
#define SIFT     sift_avx512
#include "aoi/grid_kernels.h"
