"""Gives processes a share of the processor time that they would get: halts and continues them in turn.

  throttle.py SHARE SECONDS PID...

A turn ends when each process that wants processor time has used some, not after a fixed time: on a busy machine they
get their share too. SIGTERM ends it; whatever ends it, they continue afterwards."""
import os, signal, sys, time

LONGEST_TURN = 0.5  # if the machine is so busy that no process gets any
LONGEST_HALT = 1.5  # a process that is halted for as long as a limit counts as stopped, not slow
TICK = 1 / os.sysconf('SC_CLK_TCK')


def look(pid):
    """Returns the seconds of processor time, and whether the process wants more; None if it is gone."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
    except OSError:
        return None
    return None if fields[0] in 'ZX' else ((int(fields[11]) + int(fields[12])) * TICK,
                                           fields[0] not in 'SD')


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def is_served(pid, before):
    now = look(pid)
    return now is None or before is None or not now[1] or now[0] > before[0]


def turn(pids, share):
    """Continues the processes until each that wants it has had some time, then halts them. Returns for how long."""
    before, begun = {pid: look(pid) for pid in pids}, time.monotonic()
    signal_all(pids, signal.SIGCONT)
    time.sleep(TICK)
    while time.monotonic() - begun < LONGEST_TURN and \
            not all(is_served(pid, before[pid]) for pid in pids):
        time.sleep(TICK / 2)
    ran = time.monotonic() - begun
    signal_all(pids, signal.SIGSTOP)
    return min(ran * (1 - share) / share, LONGEST_HALT)


def throttle(pids, share, seconds):
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until and pids:
            time.sleep(turn(pids, share))
            pids = [pid for pid in pids if look(pid)]
    finally:
        signal_all(pids, signal.SIGCONT)


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    throttle([int(word) for word in sys.argv[3:]], float(sys.argv[1]), float(sys.argv[2]))
