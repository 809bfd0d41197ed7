#include "tools/mosaic.h"

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_ANGLE 137.50776405
#define FIRST_HUE    210.0
#define SATURATION   0.62
#define LIGHT_IDLE   0.22
#define LIGHT_BUSY   0.62

/* No server has a grey. */
static const struct colour nobody = {128, 128, 128};

void mosaic_clear(struct mosaic *m)
{
    m->count = 0;
    m->load_max = 0;
}

void mosaic_close(struct mosaic *m)
{
    free(m->tiles);
    free(m->raster);
    *m = (struct mosaic){0};
}

void mosaic_add(struct mosaic *m, const struct mosaic_tile *tile)
{
    ARRAY_RESERVE(m->tiles, m->room, (size_t)m->count + 1);
    m->tiles[m->count++] = *tile;
    if (tile->load > m->load_max) m->load_max = tile->load;
}

/* The first pixel of `pixels` whose centre is not below part/parts of the way: (p + 1/2) * parts >= part * pixels. */
static uint32_t first_pixel(uint64_t part, uint64_t parts, uint32_t pixels)
{
    uint64_t twice = 2 * part * pixels;
    return twice <= parts ? 0 : (uint32_t)((twice - parts + 2 * parts - 1) / (2 * parts));
}

void mosaic_paint(struct mosaic *m, uint32_t width, uint32_t height)
{
    CHECK(width > 0 && height > 0);
    ARRAY_RESERVE(m->raster, m->raster_room, (size_t)width * height);
    m->width = width;
    m->height = height;
    memset(m->raster, 0xff, (size_t)width * height * sizeof *m->raster);
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t depth = quadkey_depth(m->tiles[i].region);
        uint64_t column = 0, row = 0, parts = UINT64_C(1) << depth;
        for (uint32_t level = depth; level > 0; level--) {
            uint64_t digit = m->tiles[i].region.v >> (2 * (level - 1)) & 3;
            column = column << 1 | (digit & 1);
            row = row << 1 | digit >> 1;
        }
        uint32_t left = first_pixel(column, parts, width), right = first_pixel(column + 1, parts, width);
        uint32_t bottom = first_pixel(row, parts, height), top = first_pixel(row + 1, parts, height);
        for (uint32_t y = bottom; y < top; y++)
            for (uint32_t x = left; x < right; x++) m->raster[(size_t)(height - 1 - y) * width + x] = i;
    }
}

const struct mosaic_tile *mosaic_at(const struct mosaic *m, uint32_t column, uint32_t row)
{
    CHECK(column < m->width && row < m->height);
    uint32_t tile = m->raster[(size_t)row * m->width + column];
    return tile == UINT32_MAX ? NULL : &m->tiles[tile];
}

bool mosaic_borders(const struct mosaic *m, uint32_t column, uint32_t row)
{
    size_t at = (size_t)row * m->width + column;
    return (column > 0 && m->raster[at] != m->raster[at - 1]) || (row > 0 && m->raster[at] != m->raster[at - m->width]);
}

/* Hue in degrees, saturation and lightness 0..1, to sRGB: the usual conversion (CSS Color Module Level 4, 7.1). */
static struct colour from_hsl(double hue, double saturation, double light)
{
    double parts[3], a = saturation * (light < 1 - light ? light : 1 - light);
    const double offsets[3] = {0, 8, 4};
    for (int i = 0; i < 3; i++) {
        double k = fmod(offsets[i] + hue / 30, 12), ramp = k - 3 < 9 - k ? k - 3 : 9 - k;
        ramp = ramp > 1 ? 1 : ramp < -1 ? -1 : ramp;
        parts[i] = (light - a * ramp) * 255;
    }
    return (struct colour){(uint8_t)lround(parts[0]), (uint8_t)lround(parts[1]), (uint8_t)lround(parts[2])};
}

static struct colour shade(uint32_t server, double share)
{
    double hue = fmod(FIRST_HUE + GOLDEN_ANGLE * server, 360);
    return from_hsl(hue, SATURATION, LIGHT_IDLE + (LIGHT_BUSY - LIGHT_IDLE) * sqrt(share));
}

struct colour mosaic_server_colour(uint32_t server)
{
    return server == MOSAIC_NOBODY ? nobody : shade(server, 1);
}

struct colour mosaic_colour(const struct mosaic *m, const struct mosaic_tile *tile)
{
    if (tile->server == MOSAIC_NOBODY) return nobody;
    return shade(tile->server, m->load_max == 0 ? 0 : (double)tile->load / (double)m->load_max);
}
