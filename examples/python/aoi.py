#!/usr/bin/env python3
"""libterrane-aoi from Python by ctypes alone, driven by the benchmark's workloads.

Usage: aoi.py [LIBRARY [BENCH_AOI]] (libterrane-aoi.so, found by the loader, and bench_aoi unless told)

For every index that can, entities do what `bench_aoi --steps` prints, and what the index tells is added up to views. After
each tick they must be those of plain Python, and in the end the views that the index holds."""
import ctypes
import json
import random
import subprocess
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int32, c_size_t, c_uint16, c_uint32, \
    c_uint64, c_void_p

ENTITIES, TICKS, CELLS = 60, 20, 10
RADIUS_MODE, PLANE_AND_RADIUS = 1, 2 | 4
SEE, SEEN_BY, UNSEE, UNSEEN_BY = 1, 2, 4, 8


class Id(Structure):
    _fields_ = [("v", c_uint64)]


class Position(Structure):
    _fields_ = [("x", c_int32), ("y", c_int32), ("z", c_int32)]


class Info(Structure):
    _fields_ = [("name", c_char_p), ("about", c_char_p), ("abilities", c_uint32)]


class Options(Structure):
    _fields_ = [("index", c_char_p), ("mode", c_int), ("cell_size", c_int32), ("min_x", c_int32), ("min_y", c_int32),
                ("max_x", c_int32), ("max_y", c_int32), ("radius_max", c_int32), ("hysteresis", c_int32),
                ("z_range", c_uint32), ("capacity", c_uint32), ("dimensions", c_uint32), ("min_z", c_int32),
                ("max_z", c_int32), ("direct", c_bool)]


class Place(Structure):
    _fields_ = [("position", Position), ("radius", c_uint32), ("extent_x", c_uint32), ("extent_y", c_uint32),
                ("layer", c_uint16)]


class Span(Structure):
    _fields_ = [("subject", c_uint32), ("change", c_uint32), ("others", POINTER(c_uint32)), ("count", c_uint32)]


Sink = CFUNCTYPE(None, c_void_p, POINTER(Span), c_size_t)


def library(path):
    lib = ctypes.CDLL(path)
    lib.terrane_aoi_index_list.restype = POINTER(Info)
    lib.terrane_aoi_index_list.argtypes = [c_size_t]
    lib.terrane_aoi_options_fault.restype = c_char_p
    lib.terrane_aoi_create.argtypes = [POINTER(Options), POINTER(c_void_p)]
    lib.terrane_aoi_destroy.argtypes = [c_void_p]
    lib.terrane_aoi_enter.argtypes = [c_void_p, Id, POINTER(Place), Sink, c_void_p, POINTER(c_uint32)]
    lib.terrane_aoi_leave.argtypes = [c_void_p, c_uint32, Sink, c_void_p]
    lib.terrane_aoi_move.argtypes = [c_void_p, c_uint32, Position, Sink, c_void_p]
    lib.terrane_aoi_query_circle.restype = c_size_t
    lib.terrane_aoi_query_circle.argtypes = [c_void_p, Position, c_uint32, c_int32, POINTER(c_uint32), c_size_t]
    lib.terrane_aoi_stage.argtypes = [c_void_p, c_uint32, Position]
    lib.terrane_aoi_tick.argtypes = [c_void_p, Sink, c_void_p]
    lib.terrane_aoi_id.restype = Id
    lib.terrane_aoi_id.argtypes = [c_void_p, c_uint32]
    lib.terrane_aoi_view.restype = c_size_t
    lib.terrane_aoi_view.argtypes = [c_void_p, c_uint32, POINTER(c_uint32), c_size_t]
    return lib


class World:
    """One index; `views` is what it has told: pairs of (observer, subject)."""

    def __init__(self, lib, index, side, radius):
        self.radius = radius
        self.lib, self.aoi, self.views, self.told = lib, c_void_p(), set(), 0
        self.sink = Sink(self.changed)
        options = Options(index=index, mode=RADIUS_MODE, cell_size=radius, max_x=side, max_y=side, z_range=0xFFFFFFFF)
        if lib.terrane_aoi_create(byref(options), byref(self.aoi)):
            raise ValueError(lib.terrane_aoi_options_fault(byref(options)).decode())

    def close(self):
        self.lib.terrane_aoi_destroy(self.aoi)

    def changed(self, _, spans, count):
        for span in spans[:count]:
            subject = self.lib.terrane_aoi_id(self.aoi, span.subject).v
            for other in span.others[:span.count]:
                other = self.lib.terrane_aoi_id(self.aoi, other).v
                self.change(subject, other, span.change & SEE, span.change & UNSEE)
                self.change(other, subject, span.change & SEEN_BY, span.change & UNSEEN_BY)

    def change(self, observer, subject, sees, loses):
        if sees:
            assert (observer, subject) not in self.views, "told twice"
            self.views.add((observer, subject))
        if loses:
            self.views.remove((observer, subject))
        self.told += bool(sees) + bool(loses)

    def enter(self, number, x, y):
        handle = c_uint32()
        place = Place(position=Position(x, y, 0), radius=self.radius)
        error = self.lib.terrane_aoi_enter(self.aoi, Id(number), byref(place), self.sink, None, byref(handle))
        assert error == 0, error
        return handle.value

    def leave(self, handle):
        assert self.lib.terrane_aoi_leave(self.aoi, handle, self.sink, None) == 0

    def move(self, handle, x, y):
        assert self.lib.terrane_aoi_move(self.aoi, handle, Position(x, y, 0), self.sink, None) == 0

    def query(self, x, y):
        room = (c_uint32 * ENTITIES)()
        count = self.lib.terrane_aoi_query_circle(self.aoi, Position(x, y, 0), self.radius, -1, room, ENTITIES)
        return {self.lib.terrane_aoi_id(self.aoi, other).v for other in room[:count]}

    def stage(self, handle, x, y):
        assert self.lib.terrane_aoi_stage(self.aoi, handle, Position(x, y, 0)) == 0

    def tick(self):
        self.lib.terrane_aoi_tick(self.aoi, self.sink, None)

    def view(self, handle):
        room = (c_uint32 * ENTITIES)()
        count = self.lib.terrane_aoi_view(self.aoi, handle, room, ENTITIES)
        return {self.lib.terrane_aoi_id(self.aoi, other).v for other in room[:count]}


def recorded(bench, workload):
    """The world, and where all are, tick by tick, as the benchmark moves them."""
    told = subprocess.run([bench, "--steps", str(TICKS), "--workload", workload, "--entities", str(ENTITIES), "--cells",
                           str(CELLS)], capture_output=True, text=True, check=True)
    world, *steps = [json.loads(line) for line in told.stdout.splitlines()]
    return world, [[(x, y) for x, y, _ in at] for at in steps]


def near(at, x, y, radius):
    return {i + 1 for i, (u, v) in enumerate(at) if (x - u) ** 2 + (y - v) ** 2 <= radius ** 2}


def pairs(at, radius):
    """Who sees whom, by plain Python."""
    return {(i + 1, other) for i, (x, y) in enumerate(at) for other in near(at, x, y, radius) - {i + 1}}


def tick_all(world, handles, at):
    for handle, (x, y) in zip(handles, at):
        world.stage(handle, x, y)
    world.tick()
    return at


def one_at_a_time(world, handles, before, after, dice):
    """The benchmark's `mixed`: 70% moves, 20% queries, 10% leave and enter."""
    at = list(before)
    for i, (x, y) in enumerate(after):
        kind = dice.randrange(10)
        if 7 <= kind < 9:
            assert world.query(*at[i]) == near(at, *at[i], world.radius), "a query finds others"
            continue
        if kind < 7:
            world.move(handles[i], x, y)
        else:
            world.leave(handles[i])
            handles[i] = world.enter(i + 1, x, y)
        at[i] = (x, y)
    return at


def run(lib, index, workload, side, steps, radius):
    world, dice = World(lib, index, side, radius), random.Random(7)
    at = steps[0]
    handles = [world.enter(i + 1, x, y) for i, (x, y) in enumerate(at)]
    for after in steps[1:]:
        at = one_at_a_time(world, handles, at, after, dice) if workload == "mixed" else tick_all(world, handles, after)
        assert world.views == pairs(at, radius), f"{index.decode()}, {workload}: wrong views"
    for i, handle in enumerate(handles):
        assert world.view(handle) == {other for one, other in world.views if one == i + 1}, "the index holds other views"
    told = world.told
    world.close()
    return told


def indexes(lib):
    at = 0
    while info := lib.terrane_aoi_index_list(at):
        at += 1
        if info.contents.abilities & PLANE_AND_RADIUS == PLANE_AND_RADIUS:
            yield info.contents.name


def main():
    lib = library(sys.argv[1] if len(sys.argv) > 1 else "libterrane-aoi.so")
    bench = sys.argv[2] if len(sys.argv) > 2 else "bench_aoi"
    listed = subprocess.run([bench, "--list-workloads"], capture_output=True, text=True, check=True).stdout
    for workload in [line.split()[0] for line in listed.splitlines()]:
        world, steps = recorded(bench, workload)
        for index in indexes(lib):
            told = run(lib, index, workload, world["side"], steps, world["radius"])
            print(f"{index.decode()}: {workload}: {told} changes, all views right")
            assert told > 0


if __name__ == "__main__":
    main()
