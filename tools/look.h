/* What several commands show of a cluster in the same way: rates between two looks, a server's state in words, the
 * regions as a mosaic.
 *
 * Memory: nothing is kept. */
#ifndef TERRANE_TOOLS_LOOK_H
#define TERRANE_TOOLS_LOOK_H

#include "tools/cluster.h"
#include "tools/mosaic.h"

/* What of one server two looks tell: its counts. */
struct sample {
    uint64_t moves, handoffs, bytes, ticks, late;
    double cpu_s; /* of the process */
};

struct sample look_sample(const struct cluster_server *s);
double look_rate(uint64_t before, uint64_t after, double seconds); /* never below 0 */
/* "draining", "lapsed", "silent", several, or "". Static memory. */
const char *look_state(const struct cluster *c, const struct cluster_server *s);
/* All regions of the map; servers by their place in the cluster's list. */
void look_mosaic(const struct cluster *c, struct mosaic *out);
/* {"regions": [{quadkey, server, standby, level, epoch, owned, x, y, side}, ...]} on stdout; squares in
 * world units. */
void look_print_regions(const struct cluster *c);

#endif
