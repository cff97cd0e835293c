#!/usr/bin/env python3
"""plants.py: plants faults into the programs, and counts the schedules until each is found.

    tests/sim/plants.py [--build DIR] [--most N] [--base N] [--jobs N] [--profile P] [NAME...]
    tests/sim/plants.py --apply           only checks that each can still be planted (test sim.plants_apply)

Each plant is one edit of one file, made in a copy of the sources that is built separately; the product has
no plants. If the text to replace is missing in its file, or is there twice, the program fails: update the plant
when the code changes. Plants are tried one after the other; each builds only what it changes. The seeds start at
--base: with the same base the same schedule finds the same plant. Exit code 1 if one is not found within --most
schedules (20000).
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name, what is broken, the file, the text, its replacement
PLANTS = [
    ("ack before durable", "events are acknowledged before they are synced",
     "runner/supervisor/collect/store_writer.c",
     "    st = sync_all(writer, &err);\n", "    st = DT_OK;\n"),
    ("double start", "a second supervisor ignores the held lock",
     "runner/supervisor/session/supervise.c",
     "        st = dt_file_lock(&lock, lock_path, err);\n",
     "        st = dt_file_lock(&lock, lock_path, err);\n        if (st == DT_ERR_BUSY)\n            st = DT_OK;\n"),
    ("stale lock", "a lock outlives its holder", "base/file.c",
     "    if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {\n",
     "    struct stat before;\n    if (fstat(*fd, &before) == 0 && before.st_size > 0)\n        errno = EWOULDBLOCK;\n"
     "    if (before.st_size > 0 || write(*fd, \"x\", 1) != 1) {\n"),
    ("forgotten stop", "the next supervisor does not know of the requested stop",
     "runner/supervisor/session/load.c",
     'if (strcmp(event->kind, "stop") == 0)', 'if (strcmp(event->kind, "stop ") == 0)'),
    ("restart while ranks live", "a node is released, and what is left on it is not reported",
     "runner/agent/rank/ending.c",
     "    if (over || (count == 0 && !dt_agent_ranks_running(agent)))\n        enter_proof(agent, left);\n",
     "    if (true)\n        enter_proof(agent, json_array());\n"),
    ("pause counts as silence", "the time in which the supervisor was paused counts as silence",
     "runner/channel/poll_clock.c",
     "took < most ? took : most", "took"),
    ("line written twice", "the log of a rank is not cut to the length in the history",
     "runner/supervisor/collect/run_rows.c",
     "    if (ftruncate(log->fd, log->bytes) != 0)\n", "    if (false)\n"),
    ("finished without last save", "a run ends before its checkpoints are on the launch machine",
     "runner/supervisor/session/outcome.c",
     "    if (!dt_checkpoint_fetcher_is_idle(session->fetcher))\n", "    if (false)\n"),
    ("forgotten node", "the end of an attempt does not wait for the first node",
     "runner/supervisor/session/state.c",
     "        released = released && dt_node_link_has_ended(session->nodes[i].link);\n",
     "        released = released && (i == 0 || dt_node_link_has_ended(session->nodes[i].link));\n"),
    ("no fence", "processes of an earlier attempt on a node are not ended",
     "runner/agent/connect.c",
     "            end_holder(folder.data);\n", "            ;\n"),
    ("half a fence", "the process that ends an earlier attempt is killed, and the attempt counts as ended",
     "runner/agent/connect.c",
     "    if (!dt_agent_run_in_child(end_agent, folder) &&", "    if (dt_agent_run_in_child(end_agent, folder) && false &&"),
    ("numbers used again", "a restarted agent reuses numbers",
     "runner/agent/journal/journal.c",
     "        journal->next_sequence = (journal->next_sequence / DT_JOURNAL_JUMP + 1) * DT_JOURNAL_JUMP;\n    journal->opened_again",
     "        ;\n    journal->opened_again"),
    ("unknown resume point", "a run continues from a checkpoint that its history does not know",
     "runner/supervisor/folder/resume_point.c",
     "    return false;\n}\n\ndt_status dt_run_newest_checkpoint(",
     "    return true;\n}\n\ndt_status dt_run_newest_checkpoint("),
    ("given up too soon", "a node that finished with the others is given up after 16 s",
     "runner/supervisor/policy/liveness.c",
     "    if (facts->peers != DT_PEERS_HEARD)\n", "    if (facts->peers == DT_PEERS_SILENT)\n"),
    ("replaced too soon", "an unreachable agent is treated as hung",
     "runner/supervisor/policy/liveness.c",
     "    heard = later(facts->heard, facts->reached);\n", "    heard = facts->heard;\n"),
    ("taken for an older store", "a store that lacks only the end is treated as an older copy",
     "runner/supervisor/rebuild/rebuild.c",
     "        out->what = all ? DT_STORE_LAG_END : DT_STORE_LAG_ROWS;\n", "        out->what = DT_STORE_LAG_ROWS;\n"),
    ("hung probe proves all", "a probe that hung during a cut counts as proof of a reachable node",
     "runner/supervisor/policy/liveness.c",
     "since - proven > dt_times()->unproven_seconds ? since : reached", "since - proven > 1e9 ? since : reached"),
    ("stop is a failure", "a rank whose peer was stopped counts as failed",
     "runner/supervisor/policy/verdict.c",
     "verdict->stop_asked && cause == DT_CAUSE_PEER", "verdict->asked_there && cause == DT_CAUSE_PEER"),
]


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"plants.py: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def planted(tree, name, file, old, new):
    """Returns the text of the file with the plant applied."""
    text = (tree / file).read_text()
    if text.count(old) != 1 or old == new:
        raise SystemExit(f"plants.py: cannot plant '{name}': its text occurs {text.count(old)} times in {file}")
    return text.replace(old, new)


def prepare(build):
    """Copies the sources, and configures a build of the simulator in the copy."""
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
        if copy.is_file() and "build" not in copy.relative_to(tree).parts and not (ROOT / copy.relative_to(tree)).is_file():
            copy.unlink()
    cache = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run(["cmake", "-S", tree, "-B", tree / "build/test", "-G", "Ninja", "-DDT_CUDA=OFF", *cache])
    return tree


def search(tree, options):
    """Returns (number of schedules, seed, broken promise, seconds); (None, ...) if none broke."""
    run(["cmake", "--build", tree / "build/test", "--target", "sim", "-j", str(options.jobs)])
    begun = time.monotonic()
    output = subprocess.run([tree / "build/test/bin/sim", "--base", str(options.base), "--count", str(options.most),
                             "--until-broken", "--jobs", str(options.jobs), "--profile", options.profile],
                            stdout=subprocess.PIPE, text=True).stdout
    found = [(int(seed), promise) for seed, promise in re.findall(r"^seed (\d+): (.*)$", output, re.M)]
    seconds = time.monotonic() - begun
    if not found:
        return None, None, "", seconds
    seed, promise = min(found)
    return seed - options.base + 1, seed, promise, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/plants")
    parser.add_argument("--most", type=int, default=20000)
    parser.add_argument("--base", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--profile", default="mixed", help="as the simulator's")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    unknown = set(options.names) - {name for name, *_ in PLANTS}
    if unknown:
        raise SystemExit(f"plants.py: no plant is named {', '.join(sorted(unknown))}")
    for name, _, file, old, new in PLANTS:
        planted(ROOT, name, file, old, new)
    if options.apply:
        print(f"{len(PLANTS)} plants, all apply")
        return 0
    tree, missed = prepare(options.build.resolve()), 0
    print("| plant | in | found after | seconds | the promise that broke | seed |\n|---|---|---|---|---|---|", flush=True)
    for name, what, file, old, new in PLANTS:
        if options.names and name not in options.names:
            continue
        (tree / file).write_text(planted(ROOT, name, file, old, new))
        try:
            after, seed, promise, seconds = search(tree, options)
        finally:
            (tree / file).write_text((ROOT / file).read_text())
        missed += after is None
        print(f"| {name}: {what} | {file} | {after or 'not found'} | {seconds:.1f} | {promise[:110]} | {seed or ''} |", flush=True)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
