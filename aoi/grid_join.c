#include "aoi/grid.h"
void join_close(struct aoi *aoi)
{
    (void)aoi;
}
size_t join_memory_bytes(const struct aoi *aoi)
{
    (void)aoi;
    return 0;
}
