#!/usr/bin/env python3
"""bench_aoi and bench/plot say what they promise: names, lines, charts, advice. Usage: test_aoi.py BENCH_AOI PLOT"""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

BENCH, PLOT = sys.argv[1:3]
FIGURES = {"enter", "leave", "query", "move_one", "move", "tick", "bytes"}


def run(*arguments, code=0, program=BENCH, given=""):
    done = subprocess.run([program, *arguments], input=given, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


INDEXES = [name for name in run("--list").split() if name != "textbook"]
WORKLOADS = [line.split()[0] for line in run("--list-workloads").splitlines()]


class Tools(unittest.TestCase):
    def test_every_index_and_workload_gives_every_figure(self):
        rows = lines_of(run("--quick", "--index", "all", "--workload", "all", "--entities", "120"))
        told = {(r["case"], r["index"]): set() for r in rows}
        for row in rows:
            self.assertEqual(row["bench"], "aoi")
            self.assertGreater(row["value"], 0)
            self.assertAlmostEqual(row["ratio"], row["reference_value"] / row["value"], delta=0.02 * row["ratio"])
            told[row["case"], row["index"]].add(row["figure"])
        radius = {index for case, index in told if case == "radius/120/uniform"}
        self.assertLessEqual({"brute", "grid", "quadtree", "rtree"}, radius)
        for workload in WORKLOADS:
            want = {"mixed", "bytes"} if workload == "mixed" else FIGURES
            for index in radius:
                self.assertEqual(told[f"radius/120/{workload}", index], want, (workload, index))
        self.assertEqual({index for _, index in told}, set(INDEXES) - self.only_in_space())

    def only_in_space(self):
        rows = lines_of(run("--quick", "--index", "all", "--workload", "uniform", "--entities", "50"))
        return set(INDEXES) - {r["index"] for r in rows}

    def test_space_has_its_indexes(self):
        rows = lines_of(run("--quick", "--index", "all", "--workload", "uniform", "--entities", "100", "--3d"))
        self.assertLessEqual({"brute", "octree", "bvh"}, {r["index"] for r in rows})
        self.assertNotIn("quadtree", {r["index"] for r in rows})
        self.assertEqual({r["case"] for r in rows}, {"block/100/uniform/3d", "radius/100/uniform/3d"})

    def test_the_duel_keeps_its_names(self):
        rows = lines_of(run("--quick", "--case", "radius/10k/uniform"))
        self.assertEqual({r["case"] for r in rows}, {"radius/10k/uniform"})
        self.assertEqual({r["figure"] for r in rows},
                         {"enter", "leave", "move", "move_inside", "query", "tick", "bytes"})
        self.assertEqual({r["reference"] for r in rows}, {"textbook"})

    def test_csv_says_the_same(self):
        arguments = ["--quick", "--index", "quadtree", "--workload", "march", "--entities", "100", "--case", "radius"]
        rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv"))))
        self.assertEqual({r["figure"] for r in rows}, FIGURES)
        self.assertTrue(all(float(r["value"]) > 0 and r["case"] == "radius/100/march" for r in rows))

    def test_a_world_of_another_size_has_another_name(self):
        rows = lines_of(run("--quick", "--index", "grid", "--workload", "uniform", "--entities", "100", "--cells", "50"))
        self.assertEqual({r["case"] for r in rows}, {"block/100/uniform/50x50", "radius/100/uniform/50x50"})

    def test_steps_are_the_workload(self):
        for workload in WORKLOADS:
            world, *steps = lines_of(run("--steps", "30", "--workload", workload, "--entities", "40", "--cells", "10"))
            self.assertEqual(world, {"workload": workload, "entities": 40, "side": 81920, "radius": 8192})
            self.assertEqual([len(at) for at in steps], [40] * 30)
            self.assertTrue(all(0 <= v < world["side"] for at in steps for place in at for v in place))
            self.assertGreater(len({json.dumps(at) for at in steps}), 1, workload)

    def test_bad_usage_is_told(self):
        for arguments, word in [(["--index", "nosuch"], "nosuch"), (["--workload", "nosuch"], "nosuch"),
                                (["--entities", "x"], "'x'"), (["--case", "nosuch"], "nosuch"), (["--map", "5"], "--advise"),
                                (["--advise", "--map", "100"], "--entities"), (["more"], "more"), (["--steps", "2"], "--workload"), (["--steps", "0"], "steps"), (["--cells", "0"], "cells"),
                                (["--advise", "--map", "10", "--entities", "5", "--radius", "20"], "radius")]:
            self.assertIn(word, run(*arguments, code=2))

    def test_plot_draws_and_tabulates(self):
        said = run("--quick", "--index", "all", "--workload", "march", "--entities", "100,200", "--case", "radius")
        rows = lines_of(said)
        indexes = {r["index"] for r in rows}
        with tempfile.TemporaryDirectory() as folder:
            run("--out", folder, "--figure", "move,query", program=PLOT, given=said + "not a line of ours\n")
            self.assertEqual(set(os.listdir(folder)),
                             {f"radius-{what}-{figure}.svg" for what in ["100", "200", "march"]
                              for figure in ["move", "query"]} | {"report.md"})
            for name in os.listdir(folder):
                if name.endswith(".svg"):
                    texts = [t.text for t in xml.parse(os.path.join(folder, name)).iter() if t.text]
                    self.assertLessEqual(indexes, set(texts), name)
            with open(os.path.join(folder, "report.md"), encoding="utf-8") as file:
                report = file.read()
            for row in rows:
                self.assertRegex(report, rf"\| {row['index']} \| \**{re.escape(format(row['value'], '.3g'))}\** \|")
            if shutil.which("rsvg-convert"):
                run("--out", folder, "--figure", "move", "--png", program=PLOT, given=said)
                with open(os.path.join(folder, "radius-100-move.png"), "rb") as file:
                    self.assertEqual(file.read(4), b"\x89PNG")
        self.assertIn("no line", run(program=PLOT, given="nothing", code=2))
        self.assertIn("nosuch", run("--figure", "nosuch", program=PLOT, given=said, code=2))

    def test_advice_names_an_index_and_counts_the_traffic(self):
        arguments = ["--advise", "--quick", "--map", "2000", "--entities", "300", "--radius", "100", "--rate", "10",
                     "--bytes", "7"]
        advice = json.loads(run(*arguments, "--json"))
        self.assertIn(advice["advice"], INDEXES)
        shares = [p["core_share"] for p in advice["plans"]]
        self.assertEqual(shares, sorted(shares))
        self.assertLessEqual(advice["core_share"], shares[0] * 1.11)
        self.assertEqual([w["workload"] for w in advice["worlds"]], ["uniform", "hotspot"])
        for world in advice["worlds"]:
            self.assertAlmostEqual(world["messages_per_s"], 300 * 10 * world["visible"],
                                   delta=0.01 * world["messages_per_s"])
            self.assertAlmostEqual(world["bytes_per_s"], 7 * world["messages_per_s"], delta=0.01 * world["bytes_per_s"])
        # 300 in 4 km2: 2.4 within 100 m, somewhat fewer at the borders.
        self.assertAlmostEqual(advice["worlds"][0]["visible"], 2.4, delta=0.8)
        text = run(*arguments)
        self.assertIn("Take `", text)
        self.assertIn("updates/s", text)
        self.assertIn(json.loads(run(*arguments, "--json", "--3d"))["advice"], INDEXES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
