#!/usr/bin/env python3
"""Provokes the faults of cases.tsv on hosts in network namespaces, and compares what dtrun says with the labels.

    DTRUN_BIN=build/test/bin tests/verdicts/verdicts.py run [--only FAULT ...] [--case N ...] [--each K] [--seconds S] [--workers W]
    DTRUN_BIN=build/test/bin tests/verdicts/verdicts.py check --case N ...
    tests/verdicts/verdicts.py report > docs/verdicts.md

`run` appends to results.tsv: case, cause right, rank right, node right, seconds to the end, what was said; a case that is
there already is not run again (--again, --wrong). It needs root and what tests/net/net.sh needs. --each K takes every Kth case. `check` fails if a verdict is wrong, and
records nothing.
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import queue
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NET = ROOT / "tests" / "net" / "net.sh"
FIELDS = ["case", "cause", "rank", "node", "seconds", "state", "said"]
PATIENCE = 150  # seconds until a verdict is missing

# What the reason of a run must contain; {detail}, {rank} and {node} are those of the case.
SIGNALS = {"segv": 11, "abort": 6, "kill": 9, "bus": 7}
CAUSES = {
    "signal": r"killed by signal {signal}\b",
    "told": r"received a stop signal that dtrun did not send",
    "stopped": r"stopped by a signal",
    "agent": r"agent on {node} died|agent",
    "cut": r"node {node} is gone: nothing was heard",
    "reboot": r"was rebooted",
    "full": r"[Nn]o space left|disk|space|failed to",
    "prepare": r"[Rr]ead-only|cannot (create|write)|not writable|no writable",
    "unreachable": r"unreachable|refused|timed out|does not answer|cannot be reached|[Nn]o route|not reachable|cannot connect",
    "data": r"train|data|corpus",
    "diverged": r"diverge|not finite|not a number|nan|inf",
    "recipe": r"{field}",
    "exit": r"exited with code {detail}\b",
    "early": r"ended with code 0",
    "exception": r"exited with code 1: .*{detail}",
    "asleep": r"slept|sleep|no output",
    "stop": r"^stopped by request",
    "healthy": r"^$",
}
ENGINE = """
name: case
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 2, heads: 2, embed: 32}
data: {train: corpus.txt, tokens: char}
batch: {sequences: 2, tokens: 32}
schedule: {kind: constant, steps: 100000000}
optimizer: {lr: 1e-3}
checkpoint: {every: 0}
evaluate: {every: 0}
log: {every: 1}
grace_seconds: 2
failure: {max_restarts: 0}
"""


def cases():
    with open(HERE / "cases.tsv") as file:
        return list(csv.DictReader(file, delimiter="\t"))


class Broken(Exception):
    """The case could not be made: it says nothing about dtrun."""


class Net:
    """Hosts, and a dtrun with a state of its own."""

    def __init__(self, count):
        env = {**os.environ, "NET_HOME_SIZE": "256m"}
        done = subprocess.run([NET, "up", str(count)], capture_output=True, text=True, env=env)
        if done.returncode != 0:
            print(f"no hosts: {done.stderr}")
            sys.exit(done.returncode)
        self.path = done.stdout.strip()
        words = subprocess.run(["bash", "-c", '. "$1/env"; env -0', "env", self.path], check=True, capture_output=True)
        self.env = dict(word.split("=", 1) for word in words.stdout.decode().split("\0") if word)
        self.env["OMP_NUM_THREADS"] = "1"
        self.folder = pathlib.Path(self.path) / "launch" / "work"
        self.folder.mkdir(parents=True)
        (self.folder / "corpus.txt").write_text("".join(f"line {i} of a text that can be learned\n" for i in range(2000)))
        (self.folder / "r.yaml").write_text(ENGINE)
        shutil.copy(HERE / "program.py", self.folder)
        self.dtrun_path = str(pathlib.Path(os.environ["DTRUN_BIN"]).resolve() / "dtrun")

    def sh(self, *words, check=True):
        done = subprocess.run([NET, *map(str, words)], capture_output=True, text=True)
        if check and done.returncode != 0:
            raise Broken(f"net.sh {words}: {done.stderr}")
        return done.stdout

    def on(self, host, *words, check=True):
        return self.sh("on", self.path, host, *words, check=check)

    def dtrun(self, *words, seconds=PATIENCE):
        try:
            return subprocess.run([self.dtrun_path, *map(str, words)], capture_output=True, text=True, env=self.env, cwd=self.folder,
                                  stdin=subprocess.DEVNULL, timeout=seconds)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", "")

    def show(self, run):
        done = self.dtrun("show", run, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def ended_ms(self, run):
        store = sqlite3.connect(f"file:{self.env['XDG_STATE_HOME']}/dtrun/store.db?mode=ro", uri=True, timeout=30)
        try:
            return store.execute("SELECT max(ended_ms) FROM attempts JOIN runs USING (run) WHERE id = ?", (run,)).fetchone()[0]
        finally:
            store.close()

    def status(self, run):
        done = self.dtrun("status", run, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def processes(self, host, *words):
        """Process ids here of processes there whose command line has all the words."""
        found = []
        for pid in self.sh("pids", self.path, host).split():
            try:
                line = open(f"/proc/{pid}/cmdline").read().replace("\0", " ")
            except OSError:
                continue
            if all(word in line for word in words):
                found.append(int(pid))
        return found

    def rank_pid(self, run, rank):
        for node in self.status(run).get("nodes", []):
            for item in node["ranks"]:
                if item["rank"] == rank and item["pid"]:
                    return int(self.sh("pid", self.path, node["host"], item["pid"]).strip())
        raise Broken(f"rank {rank} has no process")

    def down(self):
        subprocess.run([NET, "down", self.path], capture_output=True)


def await_true(seconds, what, check):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.2)
    raise Broken(f"never: {what}")


def is_terminal(state):
    return state in ("finished", "failed", "stopped")


# --- faults: each returns the time at which it was done; None: the program says it itself


def victim_of(net, case):
    return net.rank_pid(case["name"], int(case["victim"]))


def do_kill(net, case):
    pid = victim_of(net, case)
    at = time.time()
    os.kill(pid, int(case["detail"]))
    return at


def do_freeze(net, case):
    pid = victim_of(net, case)
    at = time.time()
    os.kill(pid, 19)
    return at


def do_agent(net, case):
    pids = net.processes(case["node"], "dtrun-agent")
    if not pids:
        raise Broken("no agent")
    at = time.time()
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    return at


def do_cut(net, case):
    at = time.time()
    net.sh("cut", net.path, case["node"])
    return at


def do_reboot(net, case):
    """Another boot id, and no process of a run is left."""
    pids = net.processes(case["node"], "dtrun-")
    at = time.time()
    net.on(case["node"], "sh", "-c", "umount /proc/sys/kernel/random/boot_id 2>/dev/null; cat /proc/sys/kernel/random/uuid > /root/boot_id"
           " && mount --bind /root/boot_id /proc/sys/kernel/random/boot_id")
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    return at


def do_full(net, case):
    net.on(case["node"], "sh", "-c", "cat /dev/zero > /root/filler 2>/dev/null; true")
    return time.time()


def do_stop(net, case):
    at = time.time()
    net.dtrun("stop", case["name"])
    return at


def do_supervisor(net, case):
    at = time.time()
    for pid in subprocess.run(["pgrep", "-f", "dtrun supervise"], capture_output=True, text=True).stdout.split():
        try:
            if f"XDG_STATE_HOME={net.env['XDG_STATE_HOME']}".encode() in open(f"/proc/{pid}/environ", "rb").read().split(b"\0"):
                os.kill(int(pid), 9)
        except OSError:
            pass
    return at


def every_rank(net, case, number):
    for rank in range(int(case["hosts"]) * int(case["ranks"])):
        os.kill(net.rank_pid(case["name"], rank), number)


def do_pause(net, case):
    at = time.time()
    every_rank(net, case, 19)
    time.sleep(float(case["detail"]))
    every_rank(net, case, 18)
    return at


def do_slow_network(net, case):
    at = time.time()
    device = next(line.split(": ")[1].split("@")[0] for line in net.on("host1", "ip", "-o", "link").splitlines() if ": lo:" not in line)
    net.on("host1", "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{case['detail']}kbit", "burst", "16kb", "latency", "500ms")
    time.sleep(20)
    net.on("host1", "tc", "qdisc", "del", "dev", device, "root", check=False)
    return at


def do_short_cut(net, case):
    at = time.time()
    net.sh("cut", net.path, "host2")
    time.sleep(float(case["detail"]))
    net.sh("heal", net.path, "host2")
    return at


AFTER = {name[3:]: function for name, function in globals().items() if name.startswith("do_")}


# --- what precedes a launch


def prepare(net, case):
    words = []
    if case["fault"] == "readonly":
        net.on(case["node"], "mount", "-o", "remount,ro", "/root")
    elif case["fault"] == "gone":
        net.sh("cut", net.path, case["node"])
    elif case["fault"] == "recipe":
        words += ["--set", case["detail"]]
    elif case["fault"] == "diverge":
        words += ["--set", "optimizer.kind=sgd", "--set", "optimizer.lr=100", "--set", "clip=0", "--set", f"seed={case['detail']}"]
    elif case["fault"] == "full":
        words += ["--set", "checkpoint.every=40"]
    elif case["fault"] == "data":
        path = net.folder / "bad.txt"
        path.unlink(missing_ok=True)
        if case["detail"] == "empty":
            path.write_text("")
        elif case["detail"] == "short":
            path.write_text("a")
        elif case["detail"] == "differs":
            path.write_bytes(b"\xff\xfe\x00" * 1000)
            words += ["--set", "data.tokens=char"]
        words += ["--set", "data.train=bad.txt"]
    return words


def repair(net, case):
    if case["fault"] == "readonly":
        net.on(case["node"], "mount", "-o", "remount,rw", "/root", check=False)
    if case["fault"] in ("gone", "cut"):
        net.sh("heal", net.path, case["node"], check=False)
        for path in pathlib.Path(net.path, "run", "dtrun").glob("*"):
            if path.is_socket():
                subprocess.run(["ssh", "-S", path, "-O", "exit", "x"], capture_output=True, env=net.env)
    if case["fault"] == "full":
        net.on(case["node"], "rm", "-f", "/root/filler", check=False)


# --- one case


def begin(net, case):
    """Launches. Returns the result of the command."""
    nodes = ",".join(f"host{i + 1}" for i in range(int(case["hosts"])))
    if case["fault"] in ("exit", "early", "raise", "crash", "program_freeze", "program_sleep"):
        hang = ["--set", "failure.hang_seconds=10"] if case["fault"] in ("early", "program_freeze", "program_sleep") else []
        return net.dtrun("run", "--detach", "--name", case["name"], "--set", "grace_seconds=2", "--set", "failure.max_restarts=0",
                         "--processes", case["ranks"], "--nodes", nodes, *hang, "--", "/usr/bin/python3", "program.py",
                         case["fault"], case["detail"], case["victim"], case["when"])
    return net.dtrun("launch", "r.yaml", "--detach", "--name", case["name"], "--set", f"nodes=[{nodes}]", "--set",
                     f"ranks={case['ranks']}", *prepare(net, case))


def healthy(net, case):
    """A run that must not be ended goes on: it makes steps afterwards."""
    step = net.status(case["name"]).get("step", 0)
    await_true(60, "steps after it", lambda: net.status(case["name"]).get("step", 0) > step)
    shown = net.show(case["name"])
    return shown.get("state"), shown.get("reason", "") if shown.get("attempt") == 1 else f"attempt {shown.get('attempt')}", None


def disk(net, case):
    """Training goes on while saves fail, and the run says on which node and why."""
    said = await_true(60, "a word about the disk", lambda: (o := net.status(case["name"]).get("unsaved")) and f"{o['node']}: {o['message']}")
    state, ended, _ = healthy(net, case)
    return state, said + ended, None


def logged(net, case):
    found = re.findall(r"fault at ([0-9.]+)", net.dtrun("logs", case["name"]).stdout)
    return min(map(float, found)) if found else None


def provoke(net, case):
    """Returns the state, what was said, and the seconds that it took."""
    done = begin(net, case)
    if done.returncode != 0:
        return "refused", done.stderr.strip(), None
    if case["when"] != "0" and case["fault"] in AFTER:
        await_true(90, f"step {case['when']}", lambda: is_terminal((now := net.status(case["name"])).get("state"))
                   or now.get("step", 0) >= int(case["when"]))
    elif case["fault"] == "program_freeze":
        await_true(60, "running", lambda: net.status(case["name"]).get("state") == "running")
        time.sleep(2)
    at = None
    if case["fault"] == "program_freeze":
        at = do_freeze(net, case)
    elif case["fault"] in AFTER:
        at = AFTER[case["fault"]](net, case)
    if case["cause"] == "healthy":
        return healthy(net, case)
    if case["fault"] == "full":
        return disk(net, case)
    net.dtrun("wait", case["name"])
    shown = net.show(case["name"])
    if at is None:
        at = logged(net, case)
    ended = net.ended_ms(shown["run"]) if shown else None
    return shown.get("state"), shown.get("reason", ""), round(ended / 1000 - at, 2) if at and ended else None


def judge(case, said):
    detail = case["detail"]
    pattern = CAUSES[case["cause"]].format(
        node=case["node"], detail=re.escape(detail), signal=SIGNALS.get(detail, detail), field=re.escape(detail.split("=")[0].split(".")[-1]))
    return {
        "cause": bool(re.search(pattern, said)),
        "rank": case["rank"] == "-" or bool(re.search(rf"\brank {case['rank']}\b", said)),
        "node": case["node"] == "-" or bool(re.search(rf"\b{case['node']}\b", said)),
    }


def run_case(net, case):
    case = {**case, "name": f"case-{case['case']}"}
    try:
        state, said, seconds = provoke(net, case)
        row = {name: int(right) for name, right in judge(case, said).items()}
    except (Broken, OSError) as problem:
        state, said, seconds, row = "broken", str(problem), None, {"cause": "", "rank": "", "node": ""}
    finally:
        repair(net, case)
        net.dtrun("stop", case["name"], "--now", seconds=60)
    return {"case": case["case"], **row, "seconds": "" if seconds is None else seconds, "state": state, "said": " ".join(said.split())[:400]}


def read_results():
    path = HERE / "results.tsv"
    if not path.exists():
        return {}
    with open(path) as file:
        return {row["case"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def write_results(rows):
    with open(HERE / "results.tsv", "w") as file:
        print("\t".join(FIELDS), file=file)
        for number in sorted(rows, key=int):
            print("\t".join(str(rows[number][name]).replace("\t", " ") for name in FIELDS), file=file)


def work(wanted, size, results, lock, end):
    net = None
    try:
        while time.monotonic() < end:
            try:
                case = wanted.get_nowait()
            except queue.Empty:
                break
            net = net or Net(size)
            row = run_case(net, case)
            with lock:
                results[case["case"]] = row
                write_results(results)
                print("\t".join(str(row[name]) for name in FIELDS)[:230], case["fault"], flush=True)
    finally:
        if net is not None:
            net.down()


def run(args):
    results = {} if args.again else read_results()
    small, large, lock = queue.Queue(), queue.Queue(), threading.Lock()
    for i, case in enumerate(cases()):
        if (args.only and case["fault"] not in args.only) or (args.case and int(case["case"]) not in args.case):
            continue
        before = results.get(case["case"], {"cause": ""})
        wrong = args.wrong and "0" in (before["cause"], before.get("rank"), before.get("node"))
        if i % args.each == 0 and (before["cause"] == "" or wrong):
            (large if int(case["hosts"]) > 4 else small).put(case)
    end = time.monotonic() + args.seconds
    threads = [threading.Thread(target=work, args=(small, 4, results, lock, end)) for _ in range(args.workers if small.qsize() else 0)]
    if large.qsize():
        threads.append(threading.Thread(target=work, args=(large, 8, results, lock, end)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(numbers):
    net, wrong = Net(4), 0
    try:
        for case in cases():
            if int(case["case"]) not in numbers:
                continue
            row = run_case(net, case)
            print("\t".join(str(row[name]) for name in FIELDS), case["fault"], flush=True)
            wrong += [row["cause"], row["rank"], row["node"]] != [1, 1, 1]
    finally:
        net.down()
    sys.exit(wrong > 0)


# --- the page


def share(rows, name):
    judged = [row for row in rows if row[name] != ""]
    return sum(int(row[name]) for row in judged), len(judged)


def report():
    results, all_cases = read_results(), cases()
    by_fault = {}
    for case in all_cases:
        by_fault.setdefault(case["fault"], []).append(case)
    done = [results[case["case"]] for case in all_cases if case["case"] in results]
    today = datetime.date.fromtimestamp((HERE / "results.tsv").stat().st_mtime).isoformat()
    print(f"""# Verdicts

What dtrun said of {len([row for row in done if row['cause'] != ''])} of {len(all_cases)} labelled cases, on hosts in network namespaces
with real sshd ({today}). Written by `tests/verdicts/verdicts.py report` from
`tests/verdicts/results.tsv`; `tests/verdicts/cases.tsv` has the cases.

Cause, rank and node are right if the reason of the run (`dtrun show`), or the message of the launch, names them; for a full
disk, what `dtrun status` says of the save. Seconds are from the fault to the recorded end of the run, with all its processes
gone: a frozen rank counts as hanging after `failure.hang_seconds`, 30 by default and 10 for the programs here. Healthy runs
must continue. The first run of all cases was on a busy machine.

Not among the cases: slow ranks, inputs and networks ([slow.md](slow.md)), memory that runs out, clocks that jump, and PyTorch
([command.md](command.md)).

| fault | cases | cause | rank | node | median s | worst s |
|---|---|---|---|---|---|---|""")
    for fault, of in by_fault.items():
        rows = [results[case["case"]] for case in of if case["case"] in results]
        seconds = [float(row["seconds"]) for row in rows if row["seconds"] != ""]
        cells = [f"{right} of {count}" for right, count in (share(rows, name) for name in ("cause", "rank", "node"))]
        middle, worst = (f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}") if seconds else ("-", "-")
        print(f"| {fault} | {len(of)} | {' | '.join(cells)} | {middle} | {worst} |")
    totals = [share(done, name) for name in ("cause", "rank", "node")]
    print("| all | " + str(len(all_cases)) + " | " + " | ".join(f"{right} of {count}" for right, count in totals) + " | | |")
    wrong = [(case, results[case["case"]]) for case in all_cases if case["case"] in results
             and "0" in [results[case["case"]][name] for name in ("cause", "rank", "node")]]
    if wrong:
        print("\n## Wrong\n\n| case | fault | expected | said |\n|---|---|---|---|")
        for case, row in wrong:
            print(f"| {case['case']} | {case['fault']} {case['detail']} | {case['cause']} {case['rank']} {case['node']} | {row['said'].replace('|', '/')} |")
    broken = [row for row in done if row["cause"] == ""]
    if broken:
        print(f"\n{len(broken)} cases could not be made.")


def main():
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(dest="what", required=True)
    one = sub.add_parser("run")
    one.add_argument("--only", nargs="*")
    one.add_argument("--case", nargs="*", type=int)
    one.add_argument("--each", type=int, default=1)
    one.add_argument("--seconds", type=float, default=1e6)
    one.add_argument("--workers", type=int, default=3)
    one.add_argument("--again", action="store_true", help="all of them")
    one.add_argument("--wrong", action="store_true", help="also those that were wrong")
    sub.add_parser("check").add_argument("--case", nargs="+", type=int, required=True)
    sub.add_parser("report")
    args = parser.parse_args()
    if args.what == "run":
        run(args)
    elif args.what == "check":
        check(args.case)
    else:
        report()


if __name__ == "__main__":
    main()
