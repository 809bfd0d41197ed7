/* The row kernel with AVX2; chosen at run time (grid_join.c). */
#if defined(__x86_64__)
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#define JOIN_ROW join_row_avx2
#include "aoi/grid_join_rows.h"
#else
typedef int grid_join_avx2_is_empty;
#endif
