/* The inside of the grid, shared by the grid_*.c files and by nobody else (tests may choose the kernels).
 *
 * What an entity costs: a body (16 bytes), its id (8), a slot in the id map (about 5) and a handle in its cell's
 * block (4, plus some slack; in small worlds as much again for queries). z and layer columns exist only once a world
 * uses them.
 *
 * Where an entity is, is written once, in its body; cells hold handles, and copies that are made anew when they are
 * asked for. Cells lie in pages of 32 x 32, pages in a hash by (layer, page x, page y), so that bounds may be vast and
 * each layer is a plane of its own. */
#ifndef TERRANE_AOI_GRID_H
#define TERRANE_AOI_GRID_H

#include "aoi/band.h"
#include "aoi/index.h"
#include "common/check.h"

#define PAGE_BITS  5
#define PAGE_SIDE  (1u << PAGE_BITS)
#define PAGE_MASK  (PAGE_SIDE - 1)
#define PAGE_CELLS (PAGE_SIDE * PAGE_SIDE)
#define PAGE_NONE  UINT32_MAX

#define BODY_DEAD UINT32_MAX /* as a radius: the handle is free, and x links to the next free one */
#define STEP_JUMP INT16_MIN  /* as a step_x: too far for 16 bits; the target is in struct grid.jumps */

#define POOL_CLASSES 105
#define POOL_PADDING 16 /* words after the last block, so that a vector load may run over */

/* Reaches (in cells) below this are counted one by one, so that the largest in use is always known exactly. */
#define REACH_COUNTED 64

struct body {
    int32_t x, y;
    int16_t step_x, step_y; /* staged move; 0, 0: none */
    uint32_t radius;
};

struct jump {
    uint32_t handle;
    int32_t x, y;
};

/* A cell's handles are words [offset, offset + count) of the pool. */
struct cell {
    uint32_t offset, count;
    uint32_t crosser; /* while a tick of blocks runs: its first in the list of crossers, if the page says it has any */
    uint8_t block_class; /* 0: no block */
    bool copied;         /* the second half of the block is for the packed positions of the members */
    uint16_t generation; /* of the copy; 0: stale, or there is none */
};

struct page {
    uint32_t x, y;
    uint32_t index;      /* in the list of pages */
    uint32_t population; /* a page without any is given back */
    uint16_t layer;
    /* While a tick of blocks runs, row by row: a bit for each cell with crossers, and where the row's end in the list.
     */
    uint32_t crossed[PAGE_SIDE], crossed_end[PAGE_SIDE];
    struct cell cells[PAGE_CELLS];
};

struct page_slot {
    uint32_t x, y;
    uint32_t index; /* PAGE_NONE: empty slot */
    uint16_t layer;
};

/* Blocks of handles, in size classes. */
struct pool {
    uint32_t *words;
    size_t used, size;
    size_t idle;                 /* words in free blocks */
    uint32_t free[POOL_CLASSES]; /* offset of the first free block; 0: none */
};

struct idmap {
    uint32_t *slots; /* 0: empty; else handle + 1 in the low bits, a tag of the id's hash above */
    size_t size;
    unsigned handle_bits;
};

/* Growing lists of handles, one a kind of change: UNSEES + sides or SEES + sides (SIDE_OUT, SIDE_IN). */
enum { SIDE_OUT = 1, SIDE_IN = 2, UNSEES = 0, SEES = 4, CHANGE_KINDS = 8 };
struct changes {
    uint32_t *lists[CHANGE_KINDS];
    uint32_t count[CHANGE_KINDS];
    size_t room, bound; /* no list is longer than bound <= room */
};

/* Spans on their way to the sink. */
#define SPANS_BATCH 256
#define NOTES_BATCH 2048
struct emitter {
    aoi_sink *sink;
    void *context;
    size_t count;
    struct aoi_span spans[SPANS_BATCH];
    struct notes {
        uint32_t used, start; /* the span that is being noted is words[start .. used) */
        uint32_t words[NOTES_BATCH];
    } notes[3]; /* by sides - 1 */
};

/* A cell in a number: the index of its page, and its own in the page. */
#define PLACE_BITS (2 * PAGE_BITS)
#define PAGES_MOST (1u << (32 - PLACE_BITS))

/* One that crosses a cell's border in a tick of AOI_BLOCK; in the order of handles. */
enum crosser_end { CROSSER_OLD, CROSSER_NEW };
struct crosser {
    uint32_t handle;
    uint32_t place[2]; /* by crosser_end */
};

/* The same in the order of the cells at one end: who, and the cell at the other end, packed like a position. */
struct crossing {
    uint32_t handle, there;
};

/* What one radius means for the comparisons, plus one so that 0 is "never"; of packed, squared distances.
 * A pair is noted if its near distance is below `in` and its far distance is not below `out`. In the second pass with
 * hysteresis also those count that go from `in_radius` to beyond, or the reverse (see kernel_row). */
struct join_limits {
    uint32_t radius;
    uint32_t in, out, radius_out;
};

/* A row of cells, laid out for the join: see grid_join.c. The columns are parts of `words`. */
#define JOIN_COLUMNS 7
struct join_row {
    uint32_t *words;
    uint32_t *handles, *near, *far;  /* packed positions: where they must be in view, and the other end */
    uint32_t *in, *out, *radius_out; /* limits of each, if `limited` */
    uint32_t *column;                /* of cells */
    size_t room;
    uint32_t count;
    struct join_limits limits; /* of the first, and of all unless mixed */
    bool mixed, limited;
    uint32_t start[PAGE_SIDE + 2 * 8 + 1]; /* where each cell begins; the last is the end */
};

/* Instructions that the inner loops are compiled for. */
enum kernels { KERNELS_PLAIN, KERNELS_AVX2, KERNELS_AVX512 };

struct grid {
    struct aoi base;
    struct aoi_options options;
    uint32_t radius_max;
    uint32_t hysteresis;
    enum kernels kernels;
    bool narrow; /* 32 bits hold the difference of any two coordinates, and a coordinate's offset */

    int64_t base_x, base_y;    /* position of the corner of cell (0, 0); a multiple of the cell size */
    uint32_t span_x, span_y;   /* positions in the bounds */
    uint32_t cells_x, cells_y; /* cells in the bounds */
    uint64_t reciprocal;       /* 2^64 / cell_size, rounded up; 0: use the shift */
    unsigned cell_shift;
    int32_t step_max; /* longest move that is staged in 16 bits */

    struct body *bodies;
    struct entity_id *ids;
    uint16_t *layers;    /* NULL: all in layer 0 */
    int32_t *z, *z_next; /* NULL: all z are 0 */
    uint32_t capacity;   /* rows of the tables above */
    uint32_t high;       /* handles ever given out */
    uint32_t free_head;  /* AOI_HANDLE_NONE: none */
    uint32_t count;

    struct idmap idmap;
    struct band band;
    struct pool pool;

    struct page **pages;
    uint32_t page_count, page_room, pages_layered; /* pages_layered: those in other layers than 0 */
    uint32_t pages_free;                           /* pages[page_count .. page_count + pages_free) are spare */
    struct page_slot *page_slots;
    uint32_t page_slots_size; /* a power of two */
    struct page **plane;      /* of layer 0, by place: plane_x to a row; NULL: the bounds are too vast */
    uint32_t plane_x, plane_y;

    uint32_t reach_count[REACH_COUNTED + 1]; /* observers by reach in cells; the last: all beyond */
    uint64_t view_beyond;                    /* largest radius + hysteresis among those beyond */

    uint32_t staged; /* about how many have a staged move */
    struct jump *jumps;
    uint32_t *jump_of; /* by handle: index in jumps; NULL: nobody has jumped yet */
    size_t jump_count, jump_room;

    size_t copy_words;   /* words of the pool that hold copies */
    uint16_t generation; /* never 0; copies of another generation are stale */
    bool copies_stale;   /* all copies are, though the generation is the same */

    struct changes changes;
    struct emitter emitter;
    uint32_t *movers;
    size_t mover_count, mover_room;
    struct crosser *crossers;
    uint32_t crosser_count;
    size_t crosser_room, crossing_room;
    struct crossing *crossings;
    struct join_row *rows;
    size_t row_count;
};

static inline struct grid *grid_of(const struct aoi *aoi)
{
    return (struct grid *)aoi;
}

/* Uses the best kernels that the machine has, but none above `most`: so that tests can compare them. */
void grid_kernels_limit(struct grid *grid, enum kernels most);

/* ---- what aoi.h promises ---- */

enum terrane_error grid_create(const struct aoi_index *index, const struct aoi_options *options,
                               struct aoi **out) TERRANE_MUST_CHECK;
void grid_destroy(struct aoi *aoi);
enum terrane_error grid_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place, aoi_sink *sink,
                              void *context, uint32_t *handle) TERRANE_MUST_CHECK;
enum terrane_error grid_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context) TERRANE_MUST_CHECK;
enum terrane_error grid_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink,
                             void *context) TERRANE_MUST_CHECK;
enum terrane_error grid_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink,
                                   void *context) TERRANE_MUST_CHECK;
enum terrane_error grid_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink,
                                  void *context) TERRANE_MUST_CHECK;
bool grid_recall(struct aoi *aoi, uint32_t observer, uint32_t subject);
enum terrane_error grid_stage(struct aoi *aoi, uint32_t handle, struct position position) TERRANE_MUST_CHECK;
enum terrane_error grid_stage_many(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                   size_t count, size_t *staged) TERRANE_MUST_CHECK;
void grid_tick(struct aoi *aoi, aoi_sink *sink, void *context);
uint32_t grid_find(const struct aoi *aoi, struct entity_id id);
struct entity_id grid_id(const struct aoi *aoi, uint32_t handle);
bool grid_place_of(const struct aoi *aoi, uint32_t handle, struct aoi_place *out);
bool grid_sees(const struct aoi *aoi, uint32_t observer, uint32_t subject);
size_t grid_count(const struct aoi *aoi);
size_t grid_memory_bytes(const struct aoi *aoi);
size_t grid_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                         size_t room);
size_t grid_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y, int32_t layer,
                            uint32_t *out, size_t room);
size_t grid_query_sphere(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                         size_t room);
size_t grid_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room);
size_t grid_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room);
size_t grid_fanout(struct aoi *aoi, const struct aoi_place *place);

/* ---- geometry ---- */

__extension__ typedef unsigned __int128 grid_u128;

static inline uint32_t cell_index(const struct grid *grid, uint64_t offset)
{
    if (!grid->reciprocal) return (uint32_t)(offset >> grid->cell_shift);
    return (uint32_t)(((grid_u128)grid->reciprocal * offset) >> 64);
}

static inline uint32_t cell_x(const struct grid *grid, int32_t x)
{
    return cell_index(grid, (uint64_t)(x - grid->base_x));
}
static inline uint32_t cell_y(const struct grid *grid, int32_t y)
{
    return cell_index(grid, (uint64_t)(y - grid->base_y));
}

static inline bool x_cells_differ(const struct grid *grid, int32_t a, int32_t b)
{
    if (!grid->reciprocal) return (uint32_t)(a ^ b) >> grid->cell_shift;
    return cell_x(grid, a) != cell_x(grid, b);
}

static inline bool y_cells_differ(const struct grid *grid, int32_t a, int32_t b)
{
    if (!grid->reciprocal) return (uint32_t)(a ^ b) >> grid->cell_shift;
    return cell_y(grid, a) != cell_y(grid, b);
}

static inline bool position_inside(const struct grid *grid, int32_t x, int32_t y)
{
    return (uint32_t)x - (uint32_t)grid->options.min_x < grid->span_x &&
           (uint32_t)y - (uint32_t)grid->options.min_y < grid->span_y;
}

/* Whether dx^2 + dy^2 <= r^2, for gaps and radii below 2^32, without overflow. */
static inline bool within(uint64_t dx, uint64_t dy, uint64_t r)
{
    uint64_t r2 = r * r, dy2 = dy * dy;
    return dy <= r && dx <= r && dx * dx <= r2 - dy2;
}

static inline bool z_within(const struct grid *grid, int32_t a, int32_t b)
{
    return gap(a, b) <= grid->options.z_range;
}

/* Cells in both coordinates from first to last, inclusive. */
struct box {
    uint32_t x0, y0, x1, y1;
    bool empty;
};

static inline bool live(const struct grid *grid, uint32_t handle)
{
    return handle < grid->high && grid->bodies[handle].radius != BODY_DEAD;
}

static inline uint16_t layer_of(const struct grid *grid, uint32_t handle)
{
    return grid->layers ? grid->layers[handle] : 0;
}

static inline int32_t z_of(const struct grid *grid, uint32_t handle)
{
    return grid->z ? grid->z[handle] : 0;
}
static inline int32_t z_next_of(const struct grid *grid, uint32_t handle)
{
    return grid->z ? grid->z_next[handle] : 0;
}
/* Whether z decides anything at all. */
static inline bool z_matters(const struct grid *grid)
{
    return grid->z && grid->options.z_range != UINT32_MAX;
}

/* Radius and hysteresis together. */
static inline uint64_t view_limit(const struct grid *grid, uint32_t radius)
{
    return radius ? (uint64_t)radius + grid->hysteresis : 0;
}

/* ---- grid_pool.c, grid_pages.c ---- */

void pool_close(struct pool *pool);

bool pages_open(struct grid *grid);
void pages_close(struct grid *grid);
struct page *page_find_hashed(const struct grid *grid, uint16_t layer, uint32_t x, uint32_t y);
static inline struct page *page_find(const struct grid *grid, uint16_t layer, uint32_t x, uint32_t y)
{
    if (layer || !grid->plane) return page_find_hashed(grid, layer, x, y);
    return x < grid->plane_x && y < grid->plane_y ? grid->plane[(size_t)y * grid->plane_x + x] : NULL;
}
/* Finds or makes; NULL when memory ran out. */
struct page *page_make(struct grid *grid, uint16_t layer, uint32_t x, uint32_t y);
size_t pages_memory_bytes(const struct grid *grid);
/* Gives back the pages that have become empty. */
void pages_sweep(struct grid *grid);
void page_drop(struct grid *grid, struct page *page);

static inline struct cell *page_cell(struct page *page, uint32_t x, uint32_t y)
{
    return &page->cells[(y & PAGE_MASK) << PAGE_BITS | (x & PAGE_MASK)];
}

static inline struct cell *cell_find(const struct grid *grid, uint16_t layer, uint32_t x, uint32_t y)
{
    struct page *page = page_find(grid, layer, x >> PAGE_BITS, y >> PAGE_BITS);
    return page ? page_cell(page, x, y) : NULL;
}

static inline uint32_t *cell_handles(const struct grid *grid, const struct cell *cell)
{
    return grid->pool.words + cell->offset;
}

/* Words of a block, by class: 0, 4, 8 .. 32; then four classes a doubling: 40, 48, 56, 64, 80 .. */
extern const uint32_t pool_class_sizes[POOL_CLASSES];

/* Half of a block with copies is for the copies. */
static inline uint32_t cell_room(const struct cell *cell)
{
    return pool_class_sizes[cell->block_class] >> cell->copied;
}

/* Makes room for one more member; false when memory ran out. */
bool cell_reserve(struct grid *grid, struct cell *cell);
/* Appends a handle; false when memory ran out. */
bool cell_add(struct grid *grid, struct page *page, struct cell *cell, uint32_t handle);
/* Removes the member at `index`; the last takes its place. */
void cell_remove_at(struct grid *grid, struct page *page, struct cell *cell, uint32_t index);
uint32_t cell_search(const struct grid *grid, const struct cell *cell, uint32_t handle);
/* Writes the members' packed positions anew; false when there are too many copies already. */
bool cell_copy_make(struct grid *grid, struct cell *cell);
/* Whether the cell's copy says where its members are. */
static inline bool cell_fresh(const struct grid *grid, const struct cell *cell)
{
    return cell->generation == grid->generation;
}
/* Makes all copies stale. */
void copies_age(struct grid *grid);
/* Notes that a member's position has changed. */
static inline void cell_copy_spoil(struct cell *cell)
{
    cell->generation = 0;
}

/* Goes over the cells of a box, a strip of adjacent cells at a time, and leaves out pages that do not exist. */
struct walk {
    const struct grid *grid;
    struct box box;
    int32_t layer; /* < 0: all */
    bool listed;   /* page by page through the list instead of through the box */
    uint32_t px, py, listed_next;
    struct page *page;
    uint32_t y, y_last, x, x_last;
};
void walk_start(struct walk *walk, const struct grid *grid, int32_t layer, struct box box);
bool walk_next_page(struct walk *walk);

/* The next strip: its first cell, and in *count how many there are; NULL at the end. */
static inline struct cell *walk_next(struct walk *walk, uint32_t *count)
{
    if (!walk->page || walk->y > walk->y_last) {
        if (!walk_next_page(walk)) return NULL;
    }
    *count = walk->x_last - walk->x + 1;
    return page_cell(walk->page, walk->x, walk->y++);
}

/* Asks for the memory of a small box's cells, and of their members' bodies, ahead of a walk over it. */
void box_fetch(const struct grid *grid, int32_t layer, struct box box);

struct box box_of(const struct grid *grid, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y);
struct box box_around(const struct grid *grid, int64_t x, int64_t y, uint64_t distance);
struct box box_block(const struct grid *grid, uint32_t x, uint32_t y);

static inline bool box_holds(const struct box *box, uint32_t x, uint32_t y)
{
    return x >= box->x0 && x <= box->x1 && y >= box->y0 && y <= box->y1;
}

/* ---- grid_tables.c: the id map ---- */

bool idmap_resize(struct grid *grid, uint32_t capacity);
uint32_t idmap_find(const struct grid *grid, struct entity_id id);
void idmap_add(struct grid *grid, uint32_t handle);    /* ids[handle] must be set; there must be room */
void idmap_remove(struct grid *grid, uint32_t handle); /* likewise */

/* ---- grid_change.c: what one entity's change does to the views ---- */

/* One entity before or after a change. */
struct side {
    int32_t x, y, z;
    uint32_t radius;
    uint16_t layer;
    bool there;
};

void emit_flush(struct emitter *emitter);

static inline void emit(struct emitter *emitter, uint32_t subject, unsigned change, const uint32_t *others,
                        uint32_t count)
{
    if (!count) return;
    if (emitter->count == SPANS_BATCH) emit_flush(emitter);
    emitter->spans[emitter->count++] =
        (struct aoi_span){.subject = subject, .change = change, .others = others, .count = count};
}

/* Ends the spans of this subject that are being noted; `first` is UNSEES or SEES. */
void emit_note_end(struct emitter *emitter, uint32_t subject, unsigned first);

/* Adds another to the span of this subject, change and sides. */
static inline void emit_note(struct emitter *emitter, uint32_t subject, unsigned first, unsigned sides, uint32_t other)
{
    struct notes *notes = &emitter->notes[sides - 1];
    if (notes->used == NOTES_BATCH) {
        emit_note_end(emitter, subject, first);
        emit_flush(emitter);
    }
    notes->words[notes->used++] = other;
}

static inline unsigned change_of(unsigned first, unsigned sides)
{
    return first == SEES ? sides : sides << 2;
}

void changes_clear(struct changes *changes);
/* Makes room for `count` more candidates in every list. */
void changes_reserve(struct changes *changes, size_t count);
/* With no sides at all the entry goes to a list that nobody reads. */
static inline void changes_add(struct changes *changes, unsigned first, unsigned sides, uint32_t other)
{
    unsigned kind = first + sides;
    changes->lists[kind][changes->count[kind]++] = other;
}
void changes_close(struct changes *changes);
/* Emits the lists of kinds `first`.. (UNSEES or SEES) and empties them. */
void changes_emit(struct changes *changes, struct emitter *emitter, uint32_t subject, unsigned first);

/* What becomes of a pair. Bits: SIDE_OUT and SIDE_IN for `a` sees `b` and for `b` sees `a`. */
struct pair_change {
    unsigned before, after;
};
struct pair_change pair_judge(const struct grid *grid, uint32_t a, const struct side *a_before,
                              const struct side *a_after, uint32_t b, const struct side *b_before,
                              const struct side *b_after);
/* Write into the band set what the pair's change means for it: first where sight is lost, then where it is kept.
 * What is judged after the second would be judged wrong. */
void pair_settle_lost(struct grid *grid, uint32_t a, uint32_t b, struct pair_change change);
void pair_settle_kept(struct grid *grid, uint32_t a, const struct side *a_after, uint32_t b, const struct side *b_after,
                      struct pair_change change);
/* The cells that may hold anybody who sees `side` or whom it sees. */
struct box side_box(const struct grid *grid, const struct side *side);
struct side side_of(const struct grid *grid, uint32_t handle);

/* Reports and books what the change of one entity does to all views; the others stay as they are. In AOI_BLOCK the
 * entity must be in no cell while this runs. */
void change_views(struct grid *grid, uint32_t handle, const struct side *before, const struct side *after,
                  aoi_sink *sink, void *context);

uint64_t view_max(const struct grid *grid); /* the largest radius plus hysteresis in use; 0: nobody sees */
void view_count_add(struct grid *grid, uint32_t radius);
void view_count_remove(struct grid *grid, uint32_t radius);
uint32_t view_reach(const struct grid *grid, uint32_t radius); /* in cells, at most REACH_COUNTED */

/* ---- grid.c ---- */

struct seat {
    struct page *page;
    struct cell *cell;
};
/* The cell for a place, with room for one more; cell NULL when memory ran out. */
struct seat seat_make(struct grid *grid, uint16_t layer, int32_t x, int32_t y);
/* The cell where an entity is. */
struct seat seat_of(const struct grid *grid, const struct side *side);
void seat_leave(struct grid *grid, struct seat seat, uint32_t handle);

/* Makes the z columns. */
bool z_make(struct grid *grid);
/* Grows *array to at least `need` members; false when memory ran out. */
bool grow(void *array, size_t *room, size_t need, size_t member_size);

/* ---- grid_stage.c, grid_tick.c, grid_block.c, grid_join.c ---- */

void tick_block(struct grid *grid);
void tick_join(struct grid *grid);
void mover_note(struct grid *grid, uint32_t handle);
struct side side_next(const struct grid *grid, uint32_t handle, const struct side *now);
/* Judges one entity with all others around its old place (UNSEES) or its new one (SEES). `joined`: only what a
 * join has left out. */
void mover_scan(struct grid *grid, uint32_t handle, unsigned first, bool joined);
/* Takes all whose staged place lies in another cell there. */
void crossers_reseat(struct grid *grid);
/* Makes the staged places the places. */
void moves_commit(struct grid *grid);
/* Where the entity will be after the tick (where it is, if nothing is staged). */
static inline struct position staged_of(const struct grid *grid, uint32_t handle)
{
    const struct body *body = &grid->bodies[handle];
    int32_t z = z_next_of(grid, handle);
    if (__builtin_expect(body->step_x == STEP_JUMP, 0)) {
        const struct jump *jump = &grid->jumps[grid->jump_of[handle]];
        return (struct position){.x = jump->x, .y = jump->y, .z = z};
    }
    return (struct position){.x = body->x + body->step_x, .y = body->y + body->step_y, .z = z};
}

static inline bool staged_any(const struct grid *grid, uint32_t handle)
{
    const struct body *body = &grid->bodies[handle];
    return body->step_x || body->step_y || z_next_of(grid, handle) != z_of(grid, handle);
}

void staged_clear(struct grid *grid, uint32_t handle);
void join_close(struct grid *grid);
size_t join_memory_bytes(const struct grid *grid);

#endif
