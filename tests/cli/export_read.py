"""Reads the files that export.sh wrote, and compares them with `dtrun metrics --json`.

    export_read.py FOLDER RUN RUN      FOLDER: points.json, a.csv, a.jsonl, wide.csv, a.parquet, board/
"""
import csv
import json
import math
import os
import struct
import sys
from datetime import datetime

folder, runs = sys.argv[1], sys.argv[2:]
path = lambda name: os.path.join(folder, name)


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def key(number):
    return "nan" if math.isnan(number) else number


# NaN and infinity are null in JSON; these are the three steps that export.sh changed:
SPECIAL = {(runs[1], "loss", 3): math.nan, (runs[1], "loss", 4): math.inf, (runs[1], "loss", 5): -math.inf}
wanted = []
for p in json.load(open(path("points.json")), parse_constant=refuse)["metrics"]:
    value = SPECIAL.get((p["run"], p["name"], p["step"]), p["value"])
    ms = round(datetime.fromisoformat(p["time"].replace("Z", "+00:00")).timestamp() * 1000)
    wanted.append((p["run"], p["attempt"], p["step"], p["name"], key(value), ms))
HOSTILE = '@SUM(1),"<b>\u00e4'
assert len(wanted) > 500 and any(p[3] == HOSTILE for p in wanted)


def same(name, found):
    assert found == wanted, (name, len(found), len(wanted), [p for p in zip(found, wanted) if p[0] != p[1]][:3])


def iso(text):
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def unescaped(cell):  # a text that looks like a formula gets an apostrophe in front
    assert cell[0] not in "=+-@", cell
    return cell[1:] if cell[0] == "'" else cell


rows = list(csv.DictReader(open(path("a.csv"), newline="")))
same("csv", [(r["run"], int(r["attempt"]), int(r["step"]), unescaped(r["name"]), key(float(r["value"])), iso(r["time"]))
             for r in rows])
assert {unescaped(r["run_name"]) for r in rows} == {"tiny", '=cmd("<script>")'}
objects = [json.loads(line, parse_constant=refuse) for line in open(path("a.jsonl"))]
same("jsonl", [(o["run"], o["attempt"], o["step"], o["name"],
                key(float(o["not_finite"]) if o["value"] is None else o["value"]), iso(o["time"])) for o in objects])
wide = list(csv.DictReader(open(path("wide.csv"), newline="")))
assert len(wide) == 120 and "'" + HOSTILE in wide[0] and wide[63]["loss"] == "inf", wide[0]


# --- Parquet: the footer by Thrift's compact protocol, pages without levels
def varint(b, at):
    value = shift = 0
    while True:
        value |= (b[at] & 127) << shift
        shift += 7
        at += 1
        if b[at - 1] < 128:
            return value, at


def thrift(b, at):
    """Returns a struct as {field: value}."""
    fields, last = {}, 0
    while b[at]:
        kind, last, at = b[at] & 15, last + (b[at] >> 4), at + 1
        fields[last], at = thrift_value(b, at, kind)
    return fields, at + 1


def thrift_value(b, at, kind):
    if kind in (5, 6):
        value, at = varint(b, at)
        return value >> 1 ^ -(value & 1), at
    if kind == 8:
        length, at = varint(b, at)
        return b[at:at + length].decode(), at + length
    if kind == 9:
        count, item, at = b[at] >> 4, b[at] & 15, at + 1
        if count == 15:
            count, at = varint(b, at)
        values = []
        for _ in range(count):
            value, at = thrift_value(b, at, item)
            values.append(value)
        return values, at
    assert kind == 12, kind
    return thrift(b, at)


def plain(b, kind, count):
    if kind == 6:
        values, at = [], 0
        for _ in range(count):
            length, = struct.unpack_from("<I", b, at)
            values.append(b[at + 4:at + 4 + length].decode())
            at += 4 + length
        assert at == len(b)
        return values
    assert len(b) == count * (4 if kind == 1 else 8)
    return list(struct.unpack(f"<{count}{ {1: 'i', 2: 'q', 5: 'd'}[kind] }", b))


def runs_of(b, count):
    bits, at, values = b[0], 1, []
    width = (bits + 7) // 8
    while at < len(b):
        head, at = varint(b, at)
        assert head & 1 == 0
        values += [int.from_bytes(b[at:at + width], "little")] * (head >> 1)
        at += width
    assert len(values) == count
    return values


b = open(path("a.parquet"), "rb").read()
assert b[:4] == b[-4:] == b"PAR1"
length, = struct.unpack_from("<I", b, len(b) - 8)
footer, end = thrift(b, len(b) - 8 - length)
assert end == len(b) - 8
names = [s[4] for s in footer[2][1:]]
assert names == ["run", "run_name", "attempt", "step", "name", "value", "time"] and footer[3] == len(wanted)
columns = {name: [] for name in names}
for group in footer[4]:
    for name, chunk in zip(names, group[1]):
        meta, words = chunk[3], None
        if 11 in meta:
            header, at = thrift(b, meta[11])
            words = plain(b[at:at + header[2]], 6, header[7][1])
        header, at = thrift(b, meta[9])
        page = b[at:at + header[2]]
        assert at + header[2] == (meta.get(11) or meta[9]) + meta[6]
        columns[name] += ([words[i] for i in runs_of(page, header[5][1])] if words
                          else plain(page, meta[1], header[5][1]))
same("parquet", list(zip(columns["run"], columns["attempt"], columns["step"], columns["name"],
                         map(key, columns["value"]), columns["time"])))


# --- TensorBoard
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def proto(b):
    at, fields = 0, {}
    while at < len(b):
        head, at = varint(b, at)
        if head & 7 == 0:
            value, at = varint(b, at)
        else:
            if head & 7 == 2:
                size, at = varint(b, at)
            else:
                size = {1: 8, 5: 4}[head & 7]
            value, at = b[at:at + size], at + size
        fields[head >> 3] = value
    return fields


found = []
assert masked(b"123456789") == ((0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8) & 0xffffffff
for name in sorted(os.listdir(path("board")), key=lambda n: runs.index(n.split("-")[-1])):
    file, = os.listdir(path("board/" + name))
    b, at = open(path(f"board/{name}/{file}"), "rb").read(), 0
    events = []
    while at < len(b):
        size, = struct.unpack_from("<Q", b, at)
        assert struct.unpack_from("<I", b, at + 8)[0] == masked(b[at:at + 8])
        assert struct.unpack_from("<I", b, at + 12 + size)[0] == masked(b[at + 12:at + 12 + size])
        events.append(proto(b[at + 12:at + 12 + size]))
        at += 16 + size
    assert events[0][3] == b"brain.Event:2"
    for e in events[1:]:
        value = proto(proto(e[5])[1])
        found.append((name.split("-")[-1], e.get(2, 0), value[1].decode(), key(struct.unpack("<f", value[2])[0]),
                      round(struct.unpack("<d", e[1])[0] * 1000)))
single = lambda v: v if v == "nan" else struct.unpack("<f", struct.pack("<f", v))[0]
assert found == [(p[0], p[2], p[3], single(p[4]), p[5]) for p in wanted]
assert sorted(os.listdir(path("board"))) == sorted([f"tiny-{runs[0]}", f"_cmd___script___-{runs[1]}"]), os.listdir(path("board"))
