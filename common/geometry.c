#include "common/geometry.h"

#include "common/check.h"

#include <math.h>

struct world world_default(void)
{
    struct world world = {
        .cell_size = 50.0, .depth = 8, .resolution_bits = 21, .view_mode = VIEW_RADIUS, .tick_hz = 20};
    world.z_range = UINT32_MAX;
    world.radius_max = world_length(&world, 200.0);
    world.hysteresis = world_length(&world, 5.0);
    world.handoff_hysteresis = world_length(&world, 2.0);
    return world;
}

enum terrane_error world_check(const struct world *world)
{
    bool numbers = isfinite(world->origin_x) && isfinite(world->origin_y) && isfinite(world->cell_size) &&
                   world->cell_size > 0 && world->cell_size <= 1e9;
    bool depths = world->depth >= 1 && world->depth <= LIMIT_WORLD_DEPTH && world->resolution_bits >= world->depth &&
                  world->resolution_bits <= LIMIT_RESOLUTION_BITS;
    bool modes = (world->view_mode == VIEW_RADIUS || world->view_mode == VIEW_BLOCK) &&
                 (world->edge == WORLD_EDGE_REFUSE || world->edge == WORLD_EDGE_CLAMP);
    if (!numbers || !depths || !modes || world->tick_hz < 1 || world->tick_hz > 1000) return TERRANE_ERR_CONFIG;
    uint32_t side = UINT32_C(1) << world->resolution_bits;
    bool lengths = world->radius_max <= side && world->hysteresis <= side && world->handoff_hysteresis <= side;
    return lengths ? TERRANE_ERR_OK : TERRANE_ERR_CONFIG;
}

bool world_equal(const struct world *a, const struct world *b)
{
    return a->origin_x == b->origin_x && a->origin_y == b->origin_y && a->cell_size == b->cell_size &&
           a->depth == b->depth && a->resolution_bits == b->resolution_bits && a->view_mode == b->view_mode &&
           a->edge == b->edge && a->radius_max == b->radius_max && a->hysteresis == b->hysteresis &&
           a->z_range == b->z_range && a->handoff_hysteresis == b->handoff_hysteresis && a->tick_hz == b->tick_hz;
}

double world_unit(const struct world *world)
{
    return ldexp(world->cell_size, (int)world->depth - (int)world->resolution_bits);
}

static double clamped(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

enum terrane_error world_position(const struct world *world, double x, double y, double z, struct position *out)
{
    if (!isfinite(x) || !isfinite(y) || !isfinite(z)) return TERRANE_ERR_POSITION_INVALID;
    double unit = world_unit(world);
    double last = ldexp(1.0, (int)world->resolution_bits) - 1;
    double px = floor((x - world->origin_x) / unit), py = floor((y - world->origin_y) / unit),
           pz = floor(z / unit + 0.5);
    if (world->edge == WORLD_EDGE_CLAMP) {
        px = clamped(px, 0, last);
        py = clamped(py, 0, last);
        pz = clamped(pz, INT32_MIN / 4, INT32_MAX / 4);
    }
    bool inside = px >= 0 && px <= last && py >= 0 && py <= last && pz >= INT32_MIN / 4 && pz <= INT32_MAX / 4;
    if (!inside) return TERRANE_ERR_POSITION_OUTSIDE;
    *out = (struct position){(int32_t)px, (int32_t)py, (int32_t)pz};
    return TERRANE_ERR_OK;
}

void world_coordinates(const struct world *world, struct position p, double *x, double *y, double *z)
{
    /* The middle of the unit in x and y, so that going there and back gives the same position. */
    double unit = world_unit(world);
    *x = world->origin_x + (p.x + 0.5) * unit;
    *y = world->origin_y + (p.y + 0.5) * unit;
    *z = p.z * unit;
}

uint32_t world_length(const struct world *world, double length)
{
    if (!isfinite(length) || length <= 0) return 0;
    double units = floor(length / world_unit(world) + 0.5);
    return units >= INT32_MAX ? INT32_MAX : (uint32_t)units;
}

bool world_contains(const struct world *world, struct position p)
{
    int32_t side = INT32_C(1) << world->resolution_bits;
    return p.x >= 0 && p.y >= 0 && p.x < side && p.y < side;
}

uint32_t world_cell_side(const struct world *world)
{
    return UINT32_C(1) << (world->resolution_bits - world->depth);
}

int64_t world_strip(const struct world *world)
{
    int64_t cell = world_cell_side(world);
    /* In block mode an observer sees up to two cell sides away; and it may stand past the border by the hand-off
     * hysteresis before it changes its server. */
    int64_t reach = world->view_mode == VIEW_BLOCK ? 2 * cell : (int64_t)world->radius_max + world->hysteresis;
    int64_t strip = reach + world->handoff_hysteresis;
    return (strip + cell - 1) / cell * cell;
}

uint32_t quadkey_depth(struct quadkey k)
{
    return k.v == 0 ? 0 : (63u - (uint32_t)__builtin_clzll(k.v)) / 2;
}

struct quadkey quadkey_child(struct quadkey k, uint32_t digit)
{
    CHECK(digit < 4 && quadkey_depth(k) < LIMIT_QUADKEY_DEPTH);
    return (struct quadkey){k.v << 2 | digit};
}

struct quadkey quadkey_parent(struct quadkey k)
{
    return (struct quadkey){k.v >> 2};
}

bool quadkey_contains(struct quadkey ancestor, struct quadkey k)
{
    uint32_t up = quadkey_depth(ancestor), down = quadkey_depth(k);
    return up <= down && k.v >> (2 * (down - up)) == ancestor.v;
}

int quadkey_compare(struct quadkey a, struct quadkey b)
{
    uint32_t da = quadkey_depth(a), db = quadkey_depth(b);
    uint64_t left = a.v << (2 * (LIMIT_QUADKEY_DEPTH - da)), right = b.v << (2 * (LIMIT_QUADKEY_DEPTH - db));
    if (left != right) return left < right ? -1 : 1;
    return da < db ? -1 : da > db;
}

struct quadkey quadkey_at(const struct world *world, struct position p, uint32_t depth)
{
    CHECK(world_contains(world, p) && depth <= world->resolution_bits);
    struct quadkey k = QUADKEY_ROOT;
    for (uint32_t level = 1; level <= depth; level++) {
        uint32_t bit = world->resolution_bits - level;
        uint32_t digit = ((uint32_t)p.x >> bit & 1) | ((uint32_t)p.y >> bit & 1) << 1;
        k.v = k.v << 2 | digit;
    }
    return k;
}

struct square quadkey_square(const struct world *world, struct quadkey k)
{
    uint32_t depth = quadkey_depth(k);
    CHECK(depth <= world->resolution_bits);
    struct square s = {0, 0, INT64_C(1) << (world->resolution_bits - depth)};
    for (uint32_t level = 1; level <= depth; level++) {
        uint32_t digit = (uint32_t)(k.v >> (2 * (depth - level))) & 3;
        int32_t half = (int32_t)(INT64_C(1) << (world->resolution_bits - level));
        if (digit & 1) s.x += half;
        if (digit & 2) s.y += half;
    }
    return s;
}

void quadkey_text(struct quadkey k, char *text)
{
    uint32_t depth = quadkey_depth(k);
    for (uint32_t i = 0; i < depth; i++) text[i] = (char)('0' + (k.v >> (2 * (depth - 1 - i)) & 3));
    text[depth] = '\0';
}

enum terrane_error quadkey_parse(const char *text, size_t size, struct quadkey *out)
{
    if (size > LIMIT_QUADKEY_DEPTH) return TERRANE_ERR_QUADKEY_INVALID;
    struct quadkey k = QUADKEY_ROOT;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '3') return TERRANE_ERR_QUADKEY_INVALID;
        k = quadkey_child(k, (uint32_t)(text[i] - '0'));
    }
    *out = k;
    return TERRANE_ERR_OK;
}

bool quadkey_valid(uint64_t v)
{
    if (v == 0) return false;
    uint32_t top = 63u - (uint32_t)__builtin_clzll(v);
    return top % 2 == 0 && top / 2 <= LIMIT_QUADKEY_DEPTH;
}

bool square_contains(struct square s, struct position p)
{
    return p.x >= s.x && p.y >= s.y && p.x < s.x + s.side && p.y < s.y + s.side;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Distance of v to [low, low + side); 0 inside. */
static int64_t outside(int64_t v, int64_t low, int64_t side)
{
    return v < low ? low - v : v >= low + side ? v - (low + side - 1) : 0;
}

int64_t square_distance(struct square s, struct position p)
{
    return larger(outside(p.x, s.x, s.side), outside(p.y, s.y, s.side));
}

int64_t square_gap(struct square a, struct square b)
{
    int64_t dx = larger(b.x - (a.x + a.side), a.x - (b.x + b.side));
    int64_t dy = larger(b.y - (a.y + a.side), a.y - (b.y + b.side));
    return larger(0, larger(dx, dy));
}

int64_t square_depth(struct square s, struct position p)
{
    if (!square_contains(s, p)) return 0;
    int64_t west = p.x - s.x, south = p.y - s.y;
    return smaller(smaller(west, s.side - 1 - west), smaller(south, s.side - 1 - south));
}

bool square_meets_circle(struct square s, struct position centre, int64_t radius)
{
    int64_t dx = outside(centre.x, s.x, s.side), dy = outside(centre.y, s.y, s.side);
    return dx * dx + dy * dy <= radius * radius;
}

bool square_meets_rectangle(struct square s, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y)
{
    return min_x < s.x + s.side && max_x >= s.x && min_y < s.y + s.side && max_y >= s.y;
}

/* Digit by digit with an orientation of four states (Lam and Shapiro, "A class of fast algorithms for the
 * Peano-Hilbert space-filling curve", 1994): each state maps the quadrant to its place on the curve and to the
 * orientation inside it. */
uint64_t quadkey_hilbert(struct quadkey k)
{
    static const uint8_t place[4][4] = {{0, 3, 1, 2}, {0, 1, 3, 2}, {2, 3, 1, 0}, {2, 1, 3, 0}};
    static const uint8_t next[4][4] = {{1, 2, 0, 0}, {0, 1, 3, 1}, {2, 0, 2, 3}, {3, 3, 1, 2}};
    uint64_t index = 0;
    uint32_t state = 0, depth = quadkey_depth(k);
    for (uint32_t level = 1; level <= depth; level++) {
        uint32_t digit = (uint32_t)(k.v >> (2 * (depth - level))) & 3;
        index = index << 2 | place[state][digit];
        state = next[state][digit];
    }
    return index;
}
