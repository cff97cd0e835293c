"""Measures how soon a run starts and how soon its faults are named, compared with torchrun with gloo.

Both train the same small model with two ranks. The hosts are those of tests/net/net.sh (network namespaces with a real
sshd), each with its own core. PyTorch is installed there, nothing of dtrun is. Torchrun and gloo keep their defaults.
"""

import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import statistics
import subprocess
import threading
import time

from measures_hosts import NET, Hosts
from runs import BUILD, ROOT, Failed, when

median = statistics.median
PEER = ROOT / "tests" / "bench" / "peer_ddp.py"
STEPS = 20
PORT = 29417
NAMES = re.compile(r"error|exception|fail|signal|closed|reset by|timed? ?out", re.IGNORECASE)


def own_environment():
    return {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}


def recipe(steps):
    """A model so small that its steps cost almost nothing; peer_ddp.py has the same one."""
    sets = [f"schedule.steps={steps}", "schedule.warmup_steps=0", "log.every=1", "checkpoint.every=0", "evaluate.every=0",
            "evaluate.sequences=2", "model.layers=2", "model.heads=2", "model.embed=64", "batch.sequences=4", "batch.tokens=32"]
    return ["launch", ROOT / "examples" / "quickstart.yaml", *(word for one in sets for word in ("--set", one))]


def dtrun(env, *args):
    done = subprocess.run([BUILD / "bin" / "dtrun", *map(str, args)], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise Failed(f"dtrun {args[0]}: exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def our_start(env, *sets):
    """Returns the seconds to the first step, and of the whole command."""
    begun, asked = time.monotonic(), time.time()
    end = json.loads(dtrun(env, *recipe(STEPS), "--wait", "--json", *sets))
    taken = time.monotonic() - begun
    points = map(json.loads, dtrun(env, "metrics", end["run"], "--format", "jsonl").splitlines())
    return min(when(point["time"]) for point in points if point["name"] == "loss") - asked, taken


class Torchrun:
    """Starts one torchrun on each host, by ssh; without hosts, one here. Puts all lines into `lines` as (host,
    line)."""

    def __init__(self, python, hosts, steps):
        self.lines, self.begun = queue.Queue(), time.time()
        torchrun = [python, "-m", "torch.distributed.run"]
        script = [str(PEER), "--steps", str(steps)]
        if hosts is None:
            commands, env = [[*torchrun, "--nproc_per_node", "2", *script]], None
        else:
            script[0] = f"{hosts.net}/peer_ddp.py"  # this repository must not be visible there
            pathlib.Path(script[0]).write_text(PEER.read_text())
            commands, env = [["ssh", f"host{node + 1}", "env", "GLOO_SOCKET_IFNAME=eth0", *torchrun, "--nnodes", "2", "--nproc_per_node", "1", "--node_rank",
                              str(node), "--master_addr", hosts.address, "--master_port", str(PORT), *script]
                             for node in (0, 1)], hosts.env
        self.processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
                          for command in commands]
        for host, process in enumerate(self.processes, 1):
            threading.Thread(target=self.read, args=(host, process), daemon=True).start()

    def read(self, host, process):
        for line in process.stdout:
            self.lines.put((host, line.rstrip()))
        self.lines.put((host, None))

    def first_step(self, seconds=300):
        """Time at which the last rank made this step."""
        seen, at, told, last = 0, 0, [], ""
        while seen < 2:
            try:
                _, line = self.lines.get(timeout=seconds)
            except queue.Empty:
                raise Failed("torchrun makes no step") from None
            if line is None:
                raise Failed("torchrun ended: " + (" ".join(told) or last or "it printed nothing; hosts do not see /root")[:400])
            last = line or last
            told += [line] if NAMES.search(line) else []
            found = re.findall(r"step 1 at ([0-9.]+)", line)  # both ranks write to one pipe, sometimes in one line
            seen, at = seen + len(found), max(at, *map(float, found), 0)
        return at

    def wait(self):
        if any([process.wait() for process in self.processes]):
            raise Failed("torchrun failed")

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()


def their_start(python, hosts, tries=5):
    """A rank of PyTorch 2.15 with gloo sometimes aborts while it exits; such a run does not count."""
    peer = Torchrun(python, hosts, STEPS)
    try:
        first = peer.first_step() - peer.begun
        peer.wait()
        return first, time.time() - peer.begun
    except Failed:
        if tries <= 1:
            raise
    finally:
        peer.kill()
    return their_start(python, hosts, tries - 1)


def start_row(where, bar, ours, theirs):
    rows = []
    for what, at in (("launch to first step", 0), (f"{STEPS} steps from start to end", 1)):
        mine = median(one[at] for one in ours)
        beside = ""
        if theirs:
            peer = median(one[at] for one in theirs)
            beside = f"torchrun {peer:.2f} s, {peer / mine:.1f}× ours"
        rows.append((f"{what}, two ranks, {where}", bar, f"{mine:.2f} s", beside, len(ours)))
    return rows


def startup(settings):
    rounds = settings.rounds
    env, rows, theirs = own_environment(), [], []
    ours = []
    for _ in range(rounds):
        ours.append(our_start(env))
        if settings.torch:
            theirs.append(their_start(settings.torch, None))
    rows += start_row("this machine", "≥ 10× sooner", ours, theirs)
    warm, empty, theirs = [], [], []
    for _ in range(rounds):
        hosts = Hosts(2)
        try:
            nodes = ("--set", "nodes=[host1, host2]", "--set", "ranks=1")
            empty.append(our_start(hosts.env, *nodes))
            warm.append(our_start(hosts.env, *nodes))
            if settings.torch:
                theirs.append(their_start(settings.torch, hosts))
        finally:
            hosts.down()
    rows += start_row("two warm hosts", "≥ 10× sooner", warm, theirs)
    rows += start_row("two empty hosts (torchrun: PyTorch is there)", "≤ torchrun", empty, theirs)
    return rows


# --- faults

def ranks_on(hosts, host, what):
    """Returns the processes there whose command line has this word, the youngest last."""
    pids = subprocess.run([NET, "pids", hosts.net, host], check=True, capture_output=True, text=True).stdout.split()
    found = []
    for pid in map(int, pids):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.endswith(what.encode()) for word in words[:2] + words[2:4]):
            found.append(pid)
    return sorted(found)


def harm(hosts, fault, pid):
    """Causes the fault, and returns the time."""
    at = time.time()
    if fault == "cut":
        subprocess.run([NET, "cut", hosts.net, "host2"], check=True)
    else:
        os.kill(pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
    return at


def heal(hosts, fault, pid):
    if fault == "cut":
        subprocess.run([NET, "heal", hosts.net, "host2"], check=True)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def ours_named(fault, most):
    """Returns the seconds until the history names the fault, and its message."""
    hosts = Hosts(2)
    try:
        run = json.loads(dtrun(hosts.env, *recipe(10**8), "--set", "nodes=[host1, host2]", "--set", "ranks=1", "--set",
                               "failure.max_restarts=0", "--detach", "--json"))["run"]
        step = f"SELECT coalesce(step, 0) FROM runs WHERE run = '{run}'"
        await_(lambda: int(dtrun(hosts.env, "sql", step).split()[-1]) >= 20, 120, "dtrun makes no steps")
        pid = ranks_on(hosts, "host2", "/dtrun-engine")[-1]
        at = harm(hosts, fault, pid)
        why = f"SELECT json_extract(detail, '$.message') FROM events WHERE run = '{run}' AND event = 'failing'"
        try:
            words = await_(lambda: dtrun(hosts.env, "sql", why).splitlines()[1:], most, "")
            return time.time() - at, words[0].strip('"')
        except Failed:
            return None, ""
        finally:
            heal(hosts, fault, pid)
            with contextlib.suppress(Failed):  # the run has failed already
                dtrun(hosts.env, "stop", run, "--now")
    finally:
        hosts.down()


def await_(is_so, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = is_so()
        if found:
            return found
        time.sleep(0.05)
    raise Failed(what)


def theirs_named(python, fault, most):
    """Returns the seconds until the torchrun on host1 prints a line that names an error, and the line."""
    hosts = Hosts(2)
    peer = Torchrun(python, hosts, 10**8)
    try:
        peer.first_step()
        time.sleep(2)
        pid = ranks_on(hosts, "host2", "peer_ddp.py")[-1]
        at = harm(hosts, fault, pid)
        while time.time() < at + most:
            try:
                host, line = peer.lines.get(timeout=max(0.05, at + most - time.time()))
            except queue.Empty:
                break
            if host == 1 and line and NAMES.search(line):
                heal(hosts, fault, pid)
                return time.time() - at, line
        heal(hosts, fault, pid)
        return None, ""
    finally:
        peer.kill()
        hosts.down()


def told(seconds, words, most):
    if seconds is None:
        return f"> {most} s: nothing is said"
    return f"{seconds:.1f} s: " + words.replace("|", "/")[:300]


def faults(settings):
    most = 20 if settings.quick else 300
    for fault, what, bar in (("killed", "a rank on the second host is killed (SIGKILL)", "< 1 s"),
                             ("cut", "the second host's network is cut", "< 20 s"),
                             ("hung", "a rank on the second host is stopped (SIGSTOP)", "")):
        mine = told(*ours_named(fault, most), most)
        peer = told(*theirs_named(settings.torch, fault, most), most) if settings.torch else ""
        yield f"time until it is named: {what}", bar, mine, peer, 1


MEASURES = {"startup": startup, "faults": faults}
