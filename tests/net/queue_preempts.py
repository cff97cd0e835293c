"""Preempts runs of the queue at random, and compares their weights with those of undisturbed runs.

    queue_preempts.py DTRUN FOLDER PREEMPTIONS SEED
"""
import contextlib
import glob
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

dtrun, net, wanted, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
state = os.environ["XDG_STATE_HOME"] + "/dtrun"
random.seed(seed)
PLACES = [["host1"], ["host2", "host3"], ["host4"], ["host1", "host2", "host3", "host4"]]
LIMIT = 240 + 20 * wanted


def call(*words, codes=(0,)):
    done = subprocess.run([dtrun, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in codes:
        sys.exit(f"{words}: {done.returncode}: {done.stderr}")
    return done.stdout.strip()


def launch(name, nodes, *words):
    return call("launch", f"{net}/launch/r.yaml", "--set", f"name={name}", "--set", "nodes=" + json.dumps(nodes),
                "--detach", *words)


def weights(run):
    folder = max(glob.glob(f"{state}/runs/{run}/checkpoints/step-*"))
    files = sorted(f for f in glob.glob(folder + "/**", recursive=True) if f.endswith(".safetensors") or f.endswith(".dtc"))
    assert files, folder
    return [hashlib.sha256(open(f, "rb").read()).hexdigest() for f in files]


def rows(sql, *values):
    store = sqlite3.connect(f"file:{state}/store.db?mode=ro", uri=True, timeout=30)
    try:
        return store.execute(sql, values).fetchall()
    finally:
        store.close()


def count_preemptions():
    return rows("SELECT count(*) FROM attempts WHERE reason LIKE 'preempted by %'")[0][0]


def processes(words):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if open(path, "rb").read().split(b"\0")[1:len(words) + 1] == [w.encode() for w in words]:
                found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def kill_some(runs):
    kind = random.random()
    if kind < 0.25:
        targets = processes(["arbiter"])
    elif kind < 0.5:
        targets = processes(["supervise", random.choice(runs)])
    else:
        return
    for process in targets:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(process, signal.SIGKILL)
    call("queue", "--json")  # any command starts what is missing


def state_of(run):
    return json.loads(call("status", run, "--json", codes=range(256)))["state"]


end = time.time() + LIMIT
alone = {}
for i, place in enumerate(PLACES):
    run = launch(f"alone{i}", place)
    call("wait", run)
    alone[i] = weights(run)

queued = [launch(f"own{i}", place, "--queue") for i, place in enumerate(PLACES)]
urgent = 0
while count_preemptions() < wanted and time.time() < end:
    listed = json.loads(call("queue", "--json"))
    running = [r["run"] for r in listed if r["state"] == "running" and r["priority"] == 0]
    if not running and all(state_of(run) == "finished" for run in queued):
        more = random.randrange(len(PLACES))  # all are done: once more
        queued.append(launch(f"own{more}", PLACES[more], "--queue"))
        continue
    if running and sum(r["priority"] > 0 for r in listed) < 3:
        urgent += 1
        launch(f"urgent{urgent}", [random.choice(["host1", "host2", "host3", "host4"])], "--queue", "--priority",
               str(random.randrange(1, 4)), "--set", "schedule.steps=20")
    kill_some(queued)
    time.sleep(random.random() * 0.3)

for run in queued:
    while state_of(run) not in ("finished", "failed", "stopped"):
        assert time.time() < end, f"{run} does not end: {call('queue')}"
        time.sleep(0.2)
for run in queued:
    name = rows("SELECT name FROM runs WHERE id = ?", run)[0][0]
    assert state_of(run) == "finished", f"{run}: {call('show', run)}"
    assert weights(run) == alone[int(name[3:])], f"{run} ({name}) has other weights"
lost = rows("""
    SELECT r.id, a.attempt, (SELECT max(m.step) FROM metrics m JOIN series s USING (series)
        WHERE s.run = a.run AND s.name = 'loss' AND m.attempt = a.attempt) AS last, n.start_step
    FROM attempts a JOIN runs r USING (run) JOIN attempts n ON n.run = a.run AND n.attempt = a.attempt + 1
    WHERE a.reason LIKE 'preempted by %' AND last > n.start_step""")
assert not lost, f"steps were lost: {lost}"
doubled = rows("SELECT r.id, a.attempt FROM attempts a JOIN runs r USING (run) WHERE a.state = 'failed'")
print(f"{count_preemptions()} preemptions of {len(queued)} runs, {urgent} urgent runs, {len(doubled)} failed attempts")
assert not doubled, doubled
assert count_preemptions() >= wanted, "too few preemptions in the time"
