/* The R-tree of this project next to Boost.Geometry's (which is the better known), as bare indexes: no views, no
 * events. One JSON object a line, as bench_aoi. Usage: bench_rtree_peer [ENTITIES...]; 10000 and 100000 unless told.
 *
 * Boost's has no operation that moves: an entry is taken out and put in again. */
extern "C" {
#include "aoi/aoi.h"
#include "bench/bench_aoi.h"
#include "bench/kit.h"
#include "bench/workload.h"
}

#include <boost/geometry.hpp>
#include <boost/geometry/geometries/box.hpp>
#include <boost/geometry/geometries/point.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

namespace bg = boost::geometry;
using point = bg::model::point<int32_t, 2, bg::cs::cartesian>;
using box = bg::model::box<point>;
using entry = std::pair<point, uint32_t>;
using boost_rtree = bg::index::rtree<entry, bg::index::rstar<16>>;

namespace
{

point point_of(const struct position &p)
{
    return point(p.x, p.y);
}

void figure(const std::string &name, const char *figure, double ours, double boost)
{
    struct record record = {};
    record.name = name.c_str();
    record.index = "rtree";
    record.figure = figure;
    record.unit = "ns";
    record.value = ours;
    record.reference = "boost_rstar";
    record.reference_value = boost;
    record_print(&record, false);
}

size_t boost_query(const boost_rtree &tree, const struct position &centre, std::vector<uint32_t> &out)
{
    out.clear();
    box around(point(centre.x - BENCH_CELL, centre.y - BENCH_CELL),
               point(centre.x + BENCH_CELL, centre.y + BENCH_CELL));
    for (auto it = tree.qbegin(bg::index::intersects(around)); it != tree.qend(); ++it) {
        int64_t dx = it->first.get<0>() - centre.x, dy = it->first.get<1>() - centre.y;
        if (dx * dx + dy * dy <= (int64_t)BENCH_CELL * BENCH_CELL) out.push_back(it->second);
    }
    return out.size();
}

void compare_queries(const std::string &name, struct aoi *aoi, const boost_rtree &tree, struct workload &load)
{
    enum { QUERIES = 10000 };
    std::vector<uint32_t> found(load.options.count), out;
    size_t ours = 0, theirs = 0;
    std::vector<struct position> centres;
    for (int i = 0; i < QUERIES; i++) centres.push_back(load.at[workload_draw(&load) % load.options.count]);
    double start = kit_cpu_ns();
    for (const auto &centre : centres) {
        ours += aoi_query_circle(aoi, centre, BENCH_CELL, -1, found.data(), found.size());
    }
    double middle = kit_cpu_ns();
    for (const auto &centre : centres) theirs += boost_query(tree, centre, out);
    double end = kit_cpu_ns();
    if (ours != theirs) kit_fail(1, "%s: queries found %zu and %zu", name.c_str(), ours, theirs);
    figure(name, "query", (middle - start) / QUERIES, (end - middle) / QUERIES);
}

void compare(uint32_t count, const char *workload)
{
    std::string name = "index/" + std::to_string(count) + "/" + workload;
    struct workload_options options = {};
    options.name = workload;
    options.count = count;
    options.side = BENCH_SIDE;
    options.cell = BENCH_CELL;
    options.step = BENCH_STEP;
    struct workload load;
    workload_open(&load, &options);
    struct aoi_options index = {};
    index.index = "rtree";
    index.mode = AOI_RADIUS;
    index.cell_size = BENCH_CELL;
    index.max_x = index.max_y = BENCH_SIDE;
    index.z_range = UINT32_MAX;
    index.capacity = count;
    index.direct = true;
    struct aoi *aoi;
    kit_check(aoi_create(&index, &aoi));
    std::vector<uint32_t> handles(count);
    boost_rtree tree;

    double start = kit_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        struct aoi_place place = {};
        place.position = load.at[i];
        place.radius = BENCH_CELL;
        kit_check(aoi_enter(aoi, kit_id(i), &place, nullptr, nullptr, &handles[i]));
    }
    double middle = kit_cpu_ns();
    for (uint32_t i = 0; i < count; i++) tree.insert(entry(point_of(load.at[i]), i));
    double end = kit_cpu_ns();
    figure(name, "enter", (middle - start) / count, (end - middle) / count);
    compare_queries(name, aoi, tree, load);
    for (int round = 0; round < 3; round++) {
        workload_step(&load);
        start = kit_cpu_ns();
        for (uint32_t i = 0; i < count; i++) kit_check(aoi_move(aoi, handles[i], load.next[i], nullptr, nullptr));
        middle = kit_cpu_ns();
        for (uint32_t i = 0; i < count; i++) {
            tree.remove(entry(point_of(load.at[i]), i));
            tree.insert(entry(point_of(load.next[i]), i));
        }
        end = kit_cpu_ns();
        workload_accept(&load);
    }
    figure(name, "move", (middle - start) / count, (end - middle) / count);
    compare_queries(name + "/moved", aoi, tree, load);
    aoi_destroy(aoi);
    workload_close(&load);
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<uint32_t> counts;
    for (int i = 1; i < argc; i++) {
        long count = std::strtol(argv[i], nullptr, 10);
        if (count < 1 || count > 10000000) kit_fail(2, "'%s' is no number of entities from 1 to 10000000", argv[i]);
        counts.push_back((uint32_t)count);
    }
    if (counts.empty()) counts = {10000, 100000};
    for (uint32_t count : counts) {
        for (const char *workload : {"uniform", "hotspot"}) compare(count, workload);
    }
    return 0;
}
