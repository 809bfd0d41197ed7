"""Smaller screenshots: the same picture with 6 bits a channel, packed hard. Enough of PNG for what Chromium writes."""
import struct
import zlib


def _chunks(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += 12 + size


def _paeth(a, b, c):
    p = a + b - c
    da, db, dc = abs(p - a), abs(p - b), abs(p - c)
    return a if da <= db and da <= dc else b if db <= dc else c


def _unfilter(kind, line, above, step):
    line = bytearray(line)
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        up, corner = above[i], above[i - step] if i >= step else 0
        line[i] = (line[i] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]) & 255
    return line


def shrink(path):
    with open(path, "rb") as file:
        chunks = list(_chunks(file.read()))
    head = dict(chunks)[b"IHDR"]
    width, height, depth, colours = struct.unpack(">IIBB", head[:10])
    if depth != 8 or colours not in (2, 6):
        raise ValueError(f"{path}: {depth} bits, colour type {colours}: not what Chromium writes")
    step, raw = (3 if colours == 2 else 4), zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    coarse = bytes((v & 0xfc) | (v >> 6) for v in range(256))
    above, out = bytes(width * step), bytearray()
    for y in range(height):
        at = y * (width * step + 1)
        above = _unfilter(raw[at], raw[at + 1:at + 1 + width * step], above, step)
        line = above.translate(coarse)
        if step == 4:
            del line[3::4]
        out.append(0)
        out += line
    body = zlib.compress(bytes(out), 9)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", body), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
