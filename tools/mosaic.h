/* The quadtree as a picture: which region lies where, whose it is, and how loaded it is; painted into a raster that a
 * terminal or an image file shows.
 *
 * What it is not: it asks nothing and prints nothing. North is up: row 0 is the world's northern edge.
 * Colours: servers get hues a golden angle apart, so that neighbours in the list differ most; a region's lightness is
 * its load beside the heaviest one's, by its square root (most regions are far below the heaviest).
 * Memory: the struct owns its tiles and raster; zero-initialise to begin, mosaic_close to end. */
#ifndef TERRANE_TOOLS_MOSAIC_H
#define TERRANE_TOOLS_MOSAIC_H

#include "common/types.h"

#define MOSAIC_NOBODY UINT32_MAX

struct colour {
    uint8_t red, green, blue;
};

struct mosaic_tile {
    struct quadkey region;
    uint32_t server; /* MOSAIC_NOBODY: it has no primary */
    uint64_t load;
    bool exposed; /* no level standby: the loss of one server would lose it */
};

struct mosaic {
    struct mosaic_tile *tiles;
    uint32_t count, room;
    uint32_t *raster; /* width * height indices of tiles; UINT32_MAX: none there */
    uint32_t width, height, raster_room;
    uint64_t load_max;
};

void mosaic_clear(struct mosaic *m);
void mosaic_close(struct mosaic *m);
void mosaic_add(struct mosaic *m, const struct mosaic_tile *tile);
/* After the last tile. Each pixel gets the tile under its centre. */
void mosaic_paint(struct mosaic *m, uint32_t width, uint32_t height);
/* The tile at a pixel; NULL: none is there. */
const struct mosaic_tile *mosaic_at(const struct mosaic *m, uint32_t column, uint32_t row);
/* Whether the pixel's western or northern neighbour belongs to another tile: where borders are drawn. */
bool mosaic_borders(const struct mosaic *m, uint32_t column, uint32_t row);

struct colour mosaic_server_colour(uint32_t server); /* at full load */
struct colour mosaic_colour(const struct mosaic *m, const struct mosaic_tile *tile);

#endif
