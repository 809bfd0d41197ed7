/* How a full node is cut in two: the R*-tree's way (N. Beckmann, H.-P. Kriegel, R. Schneider and B. Seeger, "The
 * R*-tree", 1990). The entries are sorted along each axis; the axis is the one whose cuts have the least margins in
 * sum, the cut on it the one whose halves overlap least, then the one with the least area. */
#include "aoi/rtree.h"

#define ENTRIES (RTREE_SLOTS + 1)
#define LEAST   6u /* entries in each half: 40%, as the paper found best */

struct order {
    uint8_t of[ENTRIES];
};

static struct order sorted_along(const struct rtree_box *boxes, unsigned axis)
{
    struct order order;
    for (unsigned i = 0; i < ENTRIES; i++) {
        int64_t middle = (int64_t)boxes[i].min[axis] + boxes[i].max[axis];
        unsigned at = i;
        for (; at > 0; at--) {
            const struct rtree_box *before = &boxes[order.of[at - 1]];
            if ((int64_t)before->min[axis] + before->max[axis] <= middle) break;
            order.of[at] = order.of[at - 1];
        }
        order.of[at] = (uint8_t)i;
    }
    return order;
}

static double margin(const struct rtree_box *b)
{
    return ((double)b->max[0] - b->min[0]) + ((double)b->max[1] - b->min[1]);
}

static double overlap(const struct rtree_box *a, const struct rtree_box *b)
{
    double area = 1;
    for (unsigned axis = 0; axis < 2; axis++) {
        double low = a->min[axis] > b->min[axis] ? a->min[axis] : b->min[axis];
        double high = a->max[axis] < b->max[axis] ? a->max[axis] : b->max[axis];
        if (high < low) return 0;
        area *= high - low + 1;
    }
    return area;
}

struct cut {
    double margins, overlap, area;
    unsigned behind; /* the first so many stay */
};

static struct cut best_cut(const struct rtree_box *boxes, const struct order *order)
{
    struct rtree_box before[ENTRIES], behind[ENTRIES];
    before[0] = boxes[order->of[0]];
    behind[ENTRIES - 1] = boxes[order->of[ENTRIES - 1]];
    for (unsigned i = 1; i < ENTRIES; i++) {
        before[i] = before[i - 1];
        rtree_box_add(&before[i], &boxes[order->of[i]]);
        behind[ENTRIES - 1 - i] = behind[ENTRIES - i];
        rtree_box_add(&behind[ENTRIES - 1 - i], &boxes[order->of[ENTRIES - 1 - i]]);
    }
    struct cut best = {0};
    double margins = 0;
    for (unsigned count = LEAST; count <= ENTRIES - LEAST; count++) {
        const struct rtree_box *a = &before[count - 1], *b = &behind[count];
        struct cut cut = {.overlap = overlap(a, b), .area = rtree_area(a) + rtree_area(b), .behind = count};
        margins += margin(a) + margin(b);
        bool better = cut.overlap < best.overlap || (cut.overlap == best.overlap && cut.area < best.area);
        if (!best.behind || better) best = cut;
    }
    best.margins = margins;
    return best;
}

uint32_t rtree_split(const struct rtree_box boxes[ENTRIES])
{
    struct order order[2] = {sorted_along(boxes, 0), sorted_along(boxes, 1)};
    struct cut cuts[2] = {best_cut(boxes, &order[0]), best_cut(boxes, &order[1])};
    unsigned axis = cuts[1].margins < cuts[0].margins;
    uint32_t moved = 0;
    for (unsigned i = cuts[axis].behind; i < ENTRIES; i++) moved |= UINT32_C(1) << order[axis].of[i];
    return moved;
}
