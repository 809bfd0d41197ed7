#!/usr/bin/env python3
"""libterrane-aoi from Python by ctypes alone: a crowd of each of the benchmark's workloads, and what it sees.

Usage: aoi.py [LIBRARY] (libterrane-aoi.so, found by the loader unless told)

For every index that can, entities walk for some ticks, and what the index has told is added up to views. In the end they
must be the views that it holds, and those of plain Python."""
import ctypes
import math
import random
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int32, c_size_t, c_uint16, c_uint32, \
    c_uint64, c_void_p

SIDE, RADIUS, ENTITIES, TICKS = 4000, 200, 60, 20
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
    lib.terrane_aoi_stage.argtypes = [c_void_p, c_uint32, Position]
    lib.terrane_aoi_tick.argtypes = [c_void_p, Sink, c_void_p]
    lib.terrane_aoi_id.restype = Id
    lib.terrane_aoi_id.argtypes = [c_void_p, c_uint32]
    lib.terrane_aoi_view.restype = c_size_t
    lib.terrane_aoi_view.argtypes = [c_void_p, c_uint32, POINTER(c_uint32), c_size_t]
    return lib


class World:
    """One index; `views` is what it has told: pairs of (observer, subject)."""

    def __init__(self, lib, index):
        self.lib, self.aoi, self.views, self.told = lib, c_void_p(), set(), 0
        self.sink = Sink(self.changed)
        options = Options(index=index, mode=RADIUS_MODE, cell_size=RADIUS, max_x=SIDE, max_y=SIDE, z_range=0xFFFFFFFF)
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
        place = Place(position=Position(x, y, 0), radius=RADIUS)
        error = self.lib.terrane_aoi_enter(self.aoi, Id(number), byref(place), self.sink, None, byref(handle))
        assert error == 0, error
        return handle.value

    def stage(self, handle, x, y):
        assert self.lib.terrane_aoi_stage(self.aoi, handle, Position(x, y, 0)) == 0

    def tick(self):
        self.lib.terrane_aoi_tick(self.aoi, self.sink, None)

    def view(self, handle):
        room = (c_uint32 * ENTITIES)()
        count = self.lib.terrane_aoi_view(self.aoi, handle, room, ENTITIES)
        return {self.lib.terrane_aoi_id(self.aoi, other).v for other in room[:count]}


def inside(value):
    return max(0, min(SIDE - 1, int(value)))


def steps(workload, dice):
    """Where everybody is, tick by tick: the benchmark's workloads, small."""
    spread = SIDE // 10 if workload == "hot spot" else SIDE
    middle = (SIDE - spread) / 2
    at = [(middle + dice.random() * spread, middle + dice.random() * spread) for _ in range(ENTITIES)]
    for tick in range(TICKS):
        yield [(inside(x), inside(y)) for x, y in at]
        for i, (x, y) in enumerate(at):
            turn = dice.random() * 2 * math.pi
            if workload in ("random walk", "hot spot"):
                at[i] = (x + RADIUS / 4 * math.cos(turn), y + RADIUS / 4 * math.sin(turn))
            elif workload == "linear march":
                at[i] = ((x + RADIUS / 4) % SIDE, y)
            elif workload == "circle patrol":
                angle = tick / 5 + i
                at[i] = (SIDE / 2 + SIDE / 4 * math.cos(angle), SIDE / 2 + SIDE / 4 * math.sin(angle))
            elif workload == "teleport":
                at[i] = (dice.random() * SIDE, dice.random() * SIDE)


def pairs(at):
    """Who sees whom, by plain Python."""
    return {(i + 1, j + 1) for i, (x, y) in enumerate(at) for j, (u, v) in enumerate(at)
            if i != j and (x - u) ** 2 + (y - v) ** 2 <= RADIUS ** 2}


def run(lib, index, workload):
    world, handles = World(lib, index), []
    for at in steps(workload, random.Random(7)):
        for i, (x, y) in enumerate(at):
            if len(handles) <= i:
                handles.append(world.enter(i + 1, x, y))
            else:
                world.stage(handles[i], x, y)
        world.tick()
        assert world.views == pairs(at), f"{index.decode()}, {workload}: wrong views"
    for i, handle in enumerate(handles):
        assert world.view(handle) == {other for one, other in world.views if one == i + 1}, "the index holds other views"
    told = world.told
    world.close()
    return told


def main():
    lib = library(sys.argv[1] if len(sys.argv) > 1 else "libterrane-aoi.so")
    at = 0
    while info := lib.terrane_aoi_index_list(at):
        at += 1
        if info.contents.abilities & PLANE_AND_RADIUS != PLANE_AND_RADIUS:
            continue
        for workload in ["random walk", "hot spot", "linear march", "circle patrol", "teleport"]:
            told = run(lib, info.contents.name, workload)
            print(f"{info.contents.name.decode()}: {workload}: {told} changes, all views right")
            assert told > 0


if __name__ == "__main__":
    main()
