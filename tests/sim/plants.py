#!/usr/bin/env python3
"""plants.py: faults that are planted into the programs, and after how many schedules each is found.

    tests/sim/plants.py [--build DIR] [--most N] [NAME...]

Each plant is one edit of one file, made in a copy of the sources that is built beside; the product has
none of it. A text that is in no file any more, or in several, is told: the plant must follow the code.
Exit code 1 where one is not found within --most schedules (20000).
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name, what is broken, the text, what stands there instead
PLANTS = [
    ("ack before durable", "an agent is told that its events are safe before they are synced",
     "    st = sync_all(writer, &err);\n", "    st = DT_OK;\n"),
    ("double start", "a second supervisor does not mind that the lock is held",
     "        st = dt_file_lock(&lock, lock_path, err);\n",
     "        st = dt_file_lock(&lock, lock_path, err);\n        if (st == DT_ERR_BUSY)\n            st = DT_OK;\n"),
    ("stale lock", "a lock outlives its holder",
     "    if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {\n",
     "    struct stat before;\n    if (fstat(*fd, &before) == 0 && before.st_size > 0)\n        errno = EWOULDBLOCK;\n"
     "    if (before.st_size > 0 || write(*fd, \"x\", 1) != 1) {\n"),
    ("forgotten stop", "the next supervisor does not know that a stop was asked for",
     'if (strcmp(event->kind, "stop") == 0)', 'if (strcmp(event->kind, "stop ") == 0)'),
    ("restart while ranks live", "a node is released without a look whether anything is left",
     "    if (over || (count == 0 && !dt_agent_ranks_running(agent)))\n", "    if (true)\n"),
    ("pause counts as silence", "the time in which the supervisor was paused counts as silence",
     "took < DT_POLL_CLOCK_TURN_SECONDS ? took : DT_POLL_CLOCK_TURN_SECONDS", "took"),
    ("line written twice", "the log of a rank is not cut to what the history has of it",
     "    if (ftruncate(log->fd, log->bytes) != 0)\n", "    if (false)\n"),
    ("finished without last save", "a run ends before its checkpoints are home",
     "    if (!dt_checkpoint_fetcher_is_idle(session->fetcher))\n", "    if (false)\n"),
    ("forgotten node", "the end of an attempt does not wait for the first node",
     "        released = released && dt_node_link_has_ended(session->nodes[i].link);\n",
     "        released = released && (i == 0 || dt_node_link_has_ended(session->nodes[i].link));\n"),
    ("no fence", "what an earlier attempt left on a node is not ended",
     "            dt_agent_apart(end_agent, folder.data);\n", "            ;\n"),
    ("numbers used again", "an agent that was restarted gives numbers a second time",
     "        journal->next_sequence = (journal->next_sequence / DT_JOURNAL_JUMP + 1) * DT_JOURNAL_JUMP;\n    journal->opened_again",
     "        ;\n    journal->opened_again"),
    ("unknown resume point", "a run goes on from a checkpoint that its history does not know",
     "        if (strcmp(name_of(all->rows[i].path), name_of(path)) == 0)\n            return true;\n    return false;\n",
     "        if (strcmp(name_of(all->rows[i].path), name_of(path)) == 0)\n            return true;\n    return true;\n"),
    ("given up too soon", "a node that finished with the others is given up after 16 s",
     "    if (facts->peers != DT_PEERS_HEARD)\n", "    if (facts->peers == DT_PEERS_SILENT)\n"),
    ("replaced too soon", "an agent that could not be reached is taken for one that hangs",
     "    heard = later(facts->heard, facts->reached);\n", "    heard = facts->heard;\n"),
    ("stop is a failure", "a rank whose peer a stop took has failed",
     "verdict->stop_asked && cause == DT_CAUSE_PEER", "verdict->asked_there && cause == DT_CAUSE_PEER"),
]


def run(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more).stdout


def sources(tree):
    for part in ("base", "runner", "store"):
        yield from sorted((tree / part).rglob("*.c"))


def plant(tree, name, old, new):
    """The file that was changed, and what it was before."""
    found = [path for path in sources(tree) if path.read_text().count(old) == 1]
    if len(found) != 1:
        raise SystemExit(f"plants.py: '{name}' cannot be planted: its text is in {len(found)} files")
    before = found[0].read_text()
    found[0].write_text(before.replace(old, new))
    return found[0], before


def prepare(build):
    """A copy of the sources, and a build of the simulator beside it."""
    tree = build / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    files = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT).split("\0")
    for name in filter(None, files):
        source, copy = ROOT / name, tree / name
        if source.is_file() and (not copy.is_file() or copy.read_bytes() != source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
            copy.chmod(source.stat().st_mode)
    for copy in sorted(tree.rglob("*.[ch]")):
        if "build" not in copy.relative_to(tree).parts and not (ROOT / copy.relative_to(tree)).is_file():
            copy.unlink()
    run(["cmake", "-S", str(tree), "-B", str(tree / "build/test"), "-G", "Ninja", "-DDT_CUDA=OFF"])
    return tree


def make(build):
    run(["cmake", "--build", str(build / "tree/build/test"), "--target", "sim"])
    return build / "tree/build/test/bin/sim"


def search(sim, most):
    """(after how many schedules, which promise); (None, '') where none was broken."""
    begun = time.monotonic()
    told = subprocess.run([sim, "--count", str(most), "--until-broken", "--jobs", str(os.cpu_count())],
                          stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"^seed (\d+): (.*)$", told, re.M)
    done = re.search(r"^(\d+) schedules", told, re.M)
    return (int(done.group(1)) if found and done else None, found.group(2) if found else "", time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/plants")
    parser.add_argument("--most", type=int, default=20000)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tree, missed = prepare(options.build), 0
    print(f"{'planted':28} {'found after':>11} {'seconds':>8}  the promise that broke")
    for name, _, old, new in PLANTS:
        if options.names and name not in options.names:
            continue
        path, before = plant(tree, name, old, new)
        try:
            after, promise, seconds = search(make(options.build), options.most)
        finally:
            path.write_text(before)
        missed += after is None
        print(f"{name:28} {after if after is not None else 'never':>11} {seconds:8.1f}  {promise[:90]}", flush=True)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
