#!/usr/bin/env python3
"""Writes the scripted seeds of the fuzz corpus: the vectors for the codec, told stories for the cores.

Usage: seeds.py CORPUS_DIR (the folder that holds codec/, cellserver/, coordinator/, gateway/). The stories speak the
operations of stage.c and the choices of forge.c; where those change, the seeds only become other stories."""
import glob
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEADER = open(os.path.join(ROOT, "proto", "messages.h"), encoding="utf-8").read()
KINDS = re.findall(r"X\([A-Z_]+, (\w+), \d+, \w+\)", HEADER)
COORDINATOR, PEER, SECOND, GATEWAY = range(4)
FAST = 192  # added to a remote: on the fast lane
NEXT = 0    # the next request or sequence


def message(remote, kind, *choices):
    return bytes([5, remote, KINDS.index(kind), *choices])


def tick(times=1):
    return bytes([1, 1]) * times


def record(entity, x, y, radius=60):
    return (entity - 1, 5, 0, x, y, 0, radius, 0)


def enter(entity, x, y, radius=60):
    return message(GATEWAY, "enter", NEXT, NEXT, *record(entity, x, y, radius))


def moves(*moved):
    return message(FAST + GATEWAY, "moves", len(moved), NEXT, *[v for e, x, y in moved for v in (e - 1, x, y, 0)])


def snapshot(remote, leaf, ghost, *records):
    items = [v for r in records for v in (1, *r)]
    return message(remote, "snapshot", leaf, ghost, 0, 0, 0, len(records), *items)


def frame(leaf, ghost, *moved):
    return bytes([9, ghost, leaf, len(moved), *[v for gap, dx, dy in moved for v in (gap, dx & 255, dy & 255)], 7])


FEED_UP, PEER_UP = bytes([13, 3]), bytes([13, 0])
ACCEPT, REFUSE = bytes([3, PEER, 0]), bytes([3, PEER, 1])
CROWD = b"".join(enter(e, 110 + e, 60) for e in range(1, 7))
STREAMS = (
    message(GATEWAY, "subscribe", 0, 1) + FEED_UP + message(PEER, "subscribe", 1, 1) + FEED_UP
    + snapshot(PEER, 2, 1, record(20, 130, 60), record(21, 131, 61)) + tick(2)
)

CELLSERVER = {
    "enter_move_leave": CROWD + tick() + moves((1, 100, 60), (2, 90, 70)) + tick()
    + message(GATEWAY, "leave", NEXT, NEXT, 0) + tick(3),
    "crossing_accepted": CROWD + STREAMS + moves((1, 140, 60), (2, 150, 50)) + tick() + ACCEPT
    + message(GATEWAY, "set_state", NEXT, NEXT, 0, 2, 9, 9) + moves((1, 145, 60)) + tick(3),
    "commands_wait": CROWD + STREAMS + moves((1, 140, 60), (2, 150, 50), (3, 150, 52)) + tick()
    + message(GATEWAY, "set_state", NEXT, NEXT, 0, 2, 9, 9) + message(GATEWAY, "set_radius", NEXT, NEXT, 1, 90)
    + message(GATEWAY, "leave", NEXT, NEXT, 2) + moves((1, 141, 60)) + ACCEPT + tick(2)
    + message(GATEWAY, "set_state", NEXT, NEXT, 0, 2, 9, 9) + tick(2),
    "commands_wait_refused": CROWD + moves((1, 140, 60), (2, 150, 50)) + tick()
    + message(GATEWAY, "set_state", NEXT, NEXT, 0, 2, 9, 9) + message(GATEWAY, "leave", NEXT, NEXT, 1) + REFUSE + tick(9),
    "alone": CROWD + STREAMS + bytes([4, 0, 0, 0, 4 + 8, 0]) + tick(3) + moves((1, 140, 60)) + tick(3),
    "crossing_refused": CROWD + moves((1, 140, 60)) + tick() + moves((1, 142, 61)) + REFUSE + tick(12),
    "offered_to_us": STREAMS + message(PEER, "offer", 2, 1, 0, 0, 2, *record(20, 120, 60), 5, NEXT, NEXT, NEXT, 1, 20,
                                       *record(22, 121, 61), 5, NEXT, NEXT, NEXT, 0) + tick()
    + message(PEER, "forward", 0, NEXT, NEXT, 19, 5, 1) + tick(2),
    "ghosts": CROWD + STREAMS + frame(2, 1, (1, 5, -5), (0, 1, 1)) + tick() + frame(2, 1, (1, 9, 9)) + tick(30),
    "ghosts_gap": CROWD + STREAMS + bytes([9, 0x91, 2, 1, 1, 5, 5, 7]) + tick()
    + snapshot(PEER, 2, 1, record(21, 128, 61)) + tick(2),
    "map_changes": CROWD + STREAMS + bytes([4, 0, 0b01010101, 0, 8, 0]) + tick() + bytes([4, 0, 0, 0, 16, 0]) + tick(2)
    + bytes([4, 0, 0xff, 0x1b, 24, 0]) + tick(2),
    "gateway_gone": CROWD + STREAMS + bytes([4, 0, 0b11100100, 0b00110011, 64 + 8, 5]) + tick(40),
    "questions": CROWD + tick() + message(GATEWAY, "query", 100, 50, 0, 120, 70, 0, NEXT, 0, 0, 90)
    + message(GATEWAY, "query", 100, 50, 0, 120, 70, 0, NEXT, 0, 1)
    + message(GATEWAY, "lookup", NEXT, 0) + message(GATEWAY, "lookup", NEXT, 23)
    + message(GATEWAY, "emit", 5, NEXT, 1, 200, 0, 112, 60, 0, 2, 1, 2)
    + message(PEER, "event_relay", 5, NEXT, 1, 200, 0, 130, 60, 0, 0) + tick(2)
    + b"".join(bytes([12, KINDS.index(k), *([1] * 8)]) for k in ("status_request", "snapshot_request", "query", "lookup")),
    "radius_and_state": CROWD + message(GATEWAY, "set_radius", NEXT, NEXT, 0, 128) + tick()
    + message(GATEWAY, "set_radius", NEXT, NEXT, 1, 255) + message(GATEWAY, "set_state", NEXT, NEXT, 1, 5, *b"hello")
    + tick(2),
    "teleports": CROWD + STREAMS + moves((1, 200, 200), (2, 10, 200), (3, 250, 10)) + tick() + ACCEPT + tick(4),
}

HELLO = b"\xe0"  # the harness's own operation: the remote follows
def done(*choices):
    """The store answers; with 8, by what it holds."""
    return bytes([15, *choices])


def staged(*each):
    return b"".join(bytes([0]) + o for o in each)


BEAT = message(FAST + PEER, "heartbeat", 1, 1, 2, 1, 1, 0, 0, 0, 9, 2, 1, 0, 0, 0, 5)
COORDINATOR_STORIES = {
    "storeless": b"\x01" + HELLO + b"\x02" + staged(
        bytes([0, 200]), BEAT, message(GATEWAY, "map_request", 0), bytes([1, 60]), message(PEER, "bye"), bytes([1, 90]),
        bytes([13, 7]), *[bytes([12, KINDS.index("status_request")])]),
    "first_start": b"\x00" + staged(done(0), bytes([0, 5]), done(0), bytes([1, 5]), BEAT, done(0), bytes([1, 5]))
    + HELLO + b"\x02" + staged(bytes([13, 0]), bytes([1, 50]), done(0), bytes([1, 5]), message(SECOND, "map_request", 1)),
    "restart": b"\x00" + staged(
        done(8, 0b01010, 4, 2, 16, 17, 16, 17), bytes([0, 5]), done(0), bytes([1, 100]), done(0), BEAT, bytes([1, 200]),
        bytes([1, 200]), bytes([13, 7]), done(0), bytes([1, 100]), done(0)),
    "restart_split": b"\x00" + staged(
        done(8, 0b10001010, 4, 1, 16, 17, 16, 17, 16, 20, 16), bytes([0, 5]), done(0), bytes([1, 250]), done(0), bytes([13, 7])),
    "restart_alone": b"\x02" + staged(done(8, 0b01001, 2, 2, 16, 19), done(0), bytes([1, 250]), bytes([1, 250]), done(0)),
    "conflict": b"\x00" + staged(done(3), bytes([1, 90]), done(1), bytes([1, 90]), done(0), bytes([1, 90]), done(3)),
}


def calls(*each):
    return b"".join(bytes([150, *c]) for c in each)


FLUSH = b"\xf1"
GATEWAY_STORIES = {
    "see_and_unsee": b"\x00\x00" + calls((1, 60, 0, 40, 40), (2, 60, 0, 42, 40)) + FLUSH + staged(
        message(PEER, "result", 128 + 1, 1, 0, 5), message(PEER, "result", 128 + 2, 2, 0, 5),
        snapshot(PEER, 1, 0, record(2, 64, 64), record(3, 66, 64), record(6, 70, 64)),
        message(PEER, "views", 3, 1, 1, 5, 2, 2, 2, 2), bytes([1, 2]), frame(1, 0, (1, 4, 4), (0, 3, 3)),
        message(PEER, "event", 5, NEXT, 1, 200, 0, 64, 64, 0, 0, 1, 1),
        message(PEER, "views", 4, 1, 1, 5, 0, 1, 1, 5, 3), bytes([1, 2])) + calls((1, 0, 6), (2, 0, 6)) + FLUSH,
    "handed_over": b"\x00\x00" + calls((1, 60, 0, 70, 40)) + FLUSH + staged(
        message(PEER, "result", 128 + 1, 1, 0, 5), message(SECOND, "owner", 1, 6, 3),
        message(SECOND, "views", 1, 1, 1, 6, 2, 2, 2, 2), message(PEER, "moves_lost", 2), bytes([1, 9])) + calls(
        (1, 0, 2, 90, 90)) + FLUSH + staged(bytes([4, 0, 0b01010101, 0, 8, 0]), bytes([1, 90])),
    "questions": b"\x00\x02" + calls((0, 0, 8, 40, 40), (0, 0, 9, 10, 10, 60, 60), (3, 0, 10), (0, 0, 7, 40, 40)) + FLUSH + staged(
        message(PEER, "query_result", 128 + 1, 0, 0, 0, 2, 1, 5, 50, 50, 0, 2, 5, 51, 51, 0),
        message(SECOND, "query_result", 128 + 1, 0, 0, 0, 0), message(PEER, "lookup_result", 128 + 3, 3, 0, 5, 2, 9, 9, 0),
        bytes([1, 255]), bytes([1, 255])),
}


def main():
    if len(sys.argv) != 2:
        print("usage: seeds.py CORPUS_DIR", file=sys.stderr)
        return 2
    modes = {"": b"\0", "_block": b"\1"}
    stories = {name + suffix: mode + story for name, story in CELLSERVER.items() for suffix, mode in modes.items()}
    seeds = {"cellserver": stories, "coordinator": COORDINATOR_STORIES, "gateway": GATEWAY_STORIES, "codec": {}}
    lanes = {"message": 0, "packet": 1, "frame": 2}
    for path in sorted(glob.glob(os.path.join(ROOT, "proto", "vectors", "*.json"))):
        for number, vector in enumerate(json.load(open(path, encoding="utf-8"))):
            name = f"{os.path.basename(path)[:-5]}_{number}"
            seeds["codec"][name] = bytes([lanes[vector["lane"]]]) + bytes.fromhex(vector["hex"])
    for target, stories in seeds.items():
        os.makedirs(os.path.join(sys.argv[1], target), exist_ok=True)
        for name, content in stories.items():
            with open(os.path.join(sys.argv[1], target, name), "wb") as file:
                file.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
