#!/usr/bin/python3
"""`dtrun top` on a pseudo-terminal: the keys, other sizes, and every way to leave it.

    tests/cli/top.py DTRUN            with XDG_STATE_HOME as tests/cli/top.sh fills it
    tests/cli/top.py DTRUN watched    while two runs, long1 and long2, continue (tests/cli/concurrent_launches.sh)
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

DTRUN = sys.argv[1]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
PATIENCE = float(os.environ.get("PATIENCE", 60))  # seconds, on a busy machine


class Terminal:
    def __init__(self, *arguments, rows=30, columns=110):
        self.ours, self.theirs = pty.openpty()
        self.resize(rows, columns, None)
        self.before = termios.tcgetattr(self.theirs)
        self.seen = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)
            for number in 0, 1, 2:
                os.dup2(self.theirs, number)
            os.execv(DTRUN, [DTRUN, *arguments])

    def resize(self, rows, columns, tell=signal.SIGWINCH):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            os.kill(self.pid, tell)

    def press(self, keys):
        self.seen = b""
        os.write(self.ours, keys)

    def read(self):
        if select.select([self.ours], [], [], 0.2)[0]:
            self.seen += os.read(self.ours, 1 << 16)

    def frame(self):
        """Returns the newest complete frame as lines of text."""
        frames = self.seen.split(b"\x1b[H")[1:]
        text = re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]", b"", frames[-1]).decode("utf-8", "replace") if frames else ""
        return text.split("\r\n")

    def wait(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds(self):
            if time.monotonic() > end:
                sys.exit(f"FAILED: {what}; the screen:\n" + "\n".join(self.frame()))
            self.read()

    def shows(self, *texts):
        self.wait(f"wants {texts}", lambda t: all(text in "\n".join(t.frame()) for text in texts))

    def ends(self, what, code=None, killed_by=None):
        end = time.monotonic() + PATIENCE
        while True:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                sys.exit(f"FAILED: {what}: it does not end")
        self.read()
        good = os.WIFSIGNALED(status) and os.WTERMSIG(status) == killed_by if killed_by else \
            os.WIFEXITED(status) and os.WEXITSTATUS(status) == code
        if not good:
            sys.exit(f"FAILED: {what}: it ended with {status}")
        self.is_as_before(what)
        os.close(self.ours)
        os.close(self.theirs)

    def is_as_before(self, what):
        if self.seen.rfind(LEAVE) < self.seen.rfind(ENTER) or b"\x1b[?25h" not in self.seen:
            sys.exit(f"FAILED: {what}: the screen was not given back")
        if termios.tcgetattr(self.theirs) != self.before:
            sys.exit(f"FAILED: {what}: the terminal is not as it was")


def selected(t):
    return next((line for line in t.frame() if line.startswith(">")), "")


def keys():
    t = Terminal("top")
    t.shows("3 ended", "river", "table", "?[2Jsly", "▁", "quit")
    t.wait("the newest is selected", lambda t: "sly" in selected(t))
    t.press(b"j")
    t.wait("j moves", lambda t: "table" in selected(t))
    t.press(b"\x1b[B")
    t.wait("an arrow moves", lambda t: "river" in selected(t))
    t.press(b"k")
    t.wait("k moves", lambda t: "table" in selected(t))
    t.press(b"sss")
    t.shows("sort: state", "state ↑")
    t.wait("what was selected stays so", lambda t: "table" in selected(t))
    t.press(b"a")
    t.shows("early", "4 ended")
    t.press(b"/")
    t.shows("Esc clear")
    t.press(b"GPU\xc3\xa9\x7f\x7f\x7f\x7fa f")  # a character of two bytes goes at once; both words must be there
    t.shows("2 of 4 have 'a f'", "/a f_", "early", "table")
    t.wait("others are hidden", lambda t: "river" not in "\n".join(t.frame()))
    t.press(b"\x1b[A\rq")  # arrows move; after Enter keys are keys again
    t.ends("q", code=0)

    t = Terminal("top", "--all", "--sort", "loss", columns=78)
    order = ["table", "early", "sly", "river"]

    def names(t):
        return [name for line in t.frame()[3:] for name in order if name in line]
    t.wait("by loss", lambda t: names(t) == order)
    t.press(b"r")
    t.wait("reversed", lambda t: names(t) == order[::-1])
    t.shows("loss ↓")
    t.press(b"/nobody\r")
    t.shows("no run has all of these words")
    t.press(b"\x1b")
    t.wait("Esc shows all", lambda t: names(t) == order[::-1])
    t.press(b"SS")
    t.shows("sort: state")
    t.press(b"sssss")
    t.shows("sort: metric")
    t.press(b"sr")
    t.shows("sort: newest")
    t.wait("by time", lambda t: names(t) == ["sly", "table", "river", "early"])
    t.press(b"g  j j ")  # marks and unmarks; then the two after it
    t.wait("two are marked", lambda t: [line[:2] for line in t.frame()[3:6]] == ["  ", " *", ">*"])
    t.press(b"\r")
    t.shows("river bbb333 finished", "━━ bbb333  last 0.025  lowest 0.025  highest 1  river", "━━ ccc444", "u this run alone")
    t.press(b"u")
    t.wait("alone", lambda t: "━━ ccc444" not in "\n".join(t.frame()))
    t.press(b"\x1b")
    t.wait("no marks", lambda t: "*" not in "\n".join(t.frame()) and "river" in selected(t))
    t.press(b"q")
    t.ends("q", code=0)


def without_colours():
    os.environ["NO_COLOR"] = "1"
    t = Terminal("top", "--all", rows=24, columns=80)
    t.shows("early")
    t.press(b" j \r")
    t.shows("a ccc444  last", "b ddd555  last")
    t.wait("the first curve is on top", lambda t: any(set(line.partition("|")[2].strip()) == {"a"} for line in t.frame()))
    t.press(b"q")
    t.ends("q", code=0)
    del os.environ["NO_COLOR"]


def metrics():
    t = Terminal("top", "--all")
    t.shows("early")
    t.press(b"jsss")
    t.wait("table is selected", lambda t: "table" in selected(t))
    t.press(b"m")
    t.shows("quality")
    t.press(b"\r")
    t.shows("table ccc444 finished", "quality (2 of 2)", "40 of 40", "step 40/40", "rows/s", "⠤")
    t.press(b"\x1b[D")
    t.shows("loss (1 of 2)")
    t.resize(12, 40)
    t.wait("all fits a small window", lambda t: t.frame()[-1].startswith("Esc back") and
           len(t.frame()) == 12 and all(len(line) <= 40 for line in t.frame()))
    t.press(b"\x1b")
    t.wait("the list fits, too", lambda t: t.frame()[-1].startswith("q quit") and "table" in selected(t) and
           all(len(line) <= 40 for line in t.frame()))
    t.resize(3, 9)
    t.wait("so does hardly any", lambda t: len(t.frame()) == 3 and all(len(line) <= 9 for line in t.frame()))
    t.press(b"q")
    t.ends("q", code=0)


def opened():
    t = Terminal("top", "river")
    t.shows("river bbb333 finished")
    t.press(b"\x03")
    t.ends("Ctrl-C", code=130)


def stopped():
    t = Terminal("top")
    t.shows("river")
    t.press(b"\x1a")
    _, status = os.waitpid(t.pid, os.WUNTRACED)
    t.read()
    if not os.WIFSTOPPED(status):
        sys.exit("FAILED: Ctrl-Z does not stop it")
    t.is_as_before("Ctrl-Z")
    t.seen = b""
    os.kill(t.pid, signal.SIGCONT)
    t.shows("river")
    os.kill(t.pid, signal.SIGTERM)
    t.ends("SIGTERM", code=130)


def crashed():
    t = Terminal("top")
    t.shows("river")
    os.kill(t.pid, signal.SIGSEGV)
    t.ends("a crash", killed_by=signal.SIGSEGV)


def without_store():
    t = Terminal("top")
    t.shows("river")
    store = os.path.join(os.environ["XDG_STATE_HOME"], "dtrun", "store.db")
    os.rename(store, store + ".away")
    with open(store, "w", encoding="utf-8") as file:
        file.write("this is no history" * 100)
    t.wait("says what is wrong, and keeps what it had", lambda t: "store" in t.frame()[-1] and "river" in "\n".join(t.frame()))
    os.rename(store + ".away", store)
    t.wait("continues once it is there", lambda t: t.frame()[-1].startswith("q quit"))
    t.press(b"q")
    t.ends("q", code=0)


def watched():
    t = Terminal("status", "--watch")
    t.shows("dtrun top", "long1", "long2", "quit")
    t.press(b"\r")
    t.shows("long2", "elapsed")
    t.press(b"q")
    t.ends("q", code=0)


if sys.argv[2:] == ["watched"]:
    watched()
else:
    keys()
    metrics()
    without_colours()
    opened()
    stopped()
    crashed()
    without_store()
