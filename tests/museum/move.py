"""Replaces the path OLD by NEW in unpacked runs of the museum: move.py STATE OLD NEW. Changes the paths in a run's
folder and in the history, as if the state folder and the programs had been moved. Recomputes the checksums of journal
lines."""

import pathlib
import re
import sqlite3
import sys

SUM = re.compile(rb',"sum":"[0-9a-f]{8}"}$')


def checksum(text):
    """The checksum of runner/channel/protocol.c."""
    value = 2166136261
    for byte in text:
        value = (value ^ byte) * 16777619 % 2**32
    return value


def move_line(line):
    signed = SUM.search(line)
    line = line.replace(old, new)
    if signed:
        body = SUM.sub(b"", line)
        line = body + b',"sum":"%08x"}' % checksum(body)
    return line


def move_store(path):
    store = sqlite3.connect(path)
    for (table,) in store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for column in store.execute(f"PRAGMA table_info({table})").fetchall():
            if column[2] == "TEXT":
                name = column[1]
                store.execute(f"UPDATE {table} SET {name} = replace({name}, ?, ?) WHERE instr({name}, ?)",
                              (old.decode(), new.decode(), old.decode()))
    store.commit()
    store.close()


state = pathlib.Path(sys.argv[1])
old, new = sys.argv[2].encode(), sys.argv[3].encode()
for pattern in "environment", "attempt-*/plan.json", "attempt-*/node-*/*.json":
    for path in state.glob(f"dtrun/runs/*/{pattern}"):
        path.write_bytes(path.read_bytes().replace(old, new))
for path in state.glob("dtrun/runs/*/attempt-*/node-*/journal.jsonl"):
    path.write_bytes(b"\n".join(map(move_line, path.read_bytes().split(b"\n"))))
move_store(state / "dtrun/store.db")
