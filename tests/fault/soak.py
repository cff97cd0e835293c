#!/usr/bin/env python3
"""Many short runs of the real engine, 2 nodes x 2 ranks by ddp and by fsdp, with random faults.

  soak.py [--faults 200] [--seed S] [--steps 500] [--longest-cut 30] [--kinds rank,cut]

DTRUN_BIN names the folder of the programs.

The nodes are the hosts of tests/net: network namespaces with an sshd each, or, where those are not
allowed, several sshd on 127.0.0.1 (then no network is cut, and the output says so).

A fault is one of
  rank        kill -9 of a rank              pause   SIGSTOP of a rank, for a moment or for good
  agent       kill -9 of a node's agent      cut     the network of a node, 1 s to --longest-cut
  supervisor  kill -9, and no supervisor for a while, until a command takes the run
  disk        that of the store, the journals and the checkpoints is full for some seconds
  throttle    every process of the run gets about a tenth of a processor, 5 s to a minute: a slow run is never ended, so
              that one attempt does where a run has no other fault
  stalled     SIGSTOP of the supervisor, 5 to 30 s
  key         logins to a node are refused for 10 to 60 s, and the existing connections are gone
  held        another process holds the run store's write lock, 5 to 30 s
and damage to files:
  journal     one bit of a node's journal, and its agent is killed
  plan        the plan is flipped, cut, emptied or gone, and the supervisor is killed
  wiped       a node loses its state folder, and the supervisor is killed
  unlinked    the store is deleted, whether or not a process has it open
  older       the store is set back to a copy of some seconds ago, and the supervisor is killed
After these a point may be lost where a journal was damaged or the store was lost or set back, and only
where the history says that there is a gap.
One run gets one to four of them, which may overlap, but never both copies of its plan are lost: no
`plan` where the store goes too. One in five is also stopped and resumed.

After each run: it is finished (or stopped, where it was), with code 0 and every step; no process of
it is left on any host; every point that the store ever showed is still there; each step has one
loss, and it has the same bits as in an undisturbed run.

SIGTERM ends it after the current run, with the figures so far.

The seed fixes which faults come and when, but not what the machine does in between. A run that breaks a promise is
reported, its folder is kept, and the exit code is 1."""
import argparse, collections, contextlib, glob, os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
NET = os.path.join(HERE, '..', 'net', 'net.sh')
DTRUN = os.path.join(os.environ['DTRUN_BIN'], 'dtrun')
ENDED = ('finished', 'failed', 'stopped')
STORE_SECONDS = 20
MISSING_SECONDS = 60 # a process that holds the store may be halted or delayed, or the store may be missing
RUN_SECONDS = 600  # no run may take longer, whatever happens to it
DISK_MIB = 192

RECIPE = """nodes: [host1, host2]
ranks: 2
threads: 1
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: cosine, warmup_steps: 5, steps: %d}
checkpoint: {every: 50, keep: 2}
log: {every: 1}
grace_seconds: 5
failure: {max_restarts: 50, hang_seconds: 3}
"""


HOLD = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
store.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()
store.execute('ROLLBACK')
"""


def call(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    if check and done.returncode != 0:
        raise RuntimeError(f'{" ".join(words)}: exit {done.returncode}: {done.stderr.strip()}')
    return done


class Place:
    """Makes the hosts, the state folder on a small disk, and the recipe; removes all of it at the end."""

    def __init__(self, steps):
        global ENVIRONMENT
        self.state = tempfile.mkdtemp(prefix='dtrun-soak.')
        self.disk = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_MIB}m', 'none',
                                    self.state], capture_output=True).returncode == 0
        up = subprocess.run(['bash', NET, 'up', '2'], stdout=subprocess.PIPE, text=True)
        if up.returncode != 0:
            self.leave()
            sys.exit(up.returncode)
        self.net = up.stdout.strip()
        shell = subprocess.run(['bash', '-c', f'. {self.net}/env; env -0; printf "kind=$net_kind"'],
                               capture_output=True, text=True, check=True)
        ENVIRONMENT = dict(line.split('=', 1) for line in shell.stdout.split('\0'))
        self.cable = ENVIRONMENT.pop('kind') == 'namespace'
        ENVIRONMENT['XDG_STATE_HOME'] = self.state
        ENVIRONMENT['OMP_NUM_THREADS'] = '1'
        with open(self.state + '/corpus.txt', 'w') as file:
            file.writelines(f'line {i} of a text that can be learned\n' for i in range(1, 4001))
        with open(self.state + '/tiny.yaml', 'w') as file:
            file.write(RECIPE % steps)

    def query(self, text, *values):
        """Returns rows. A fault of the store that lasts longer than STORE_SECONDS counts as damage."""
        path = f'file:{self.state}/dtrun/store.db?mode=ro'
        until = time.monotonic() + STORE_SECONDS
        while True:
            try:
                with contextlib.closing(sqlite3.connect(path, uri=True, timeout=30)) as store:
                    return store.execute(text, values).fetchall()
            except sqlite3.Error:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def hosts(self, verb, host):
        call('bash', NET, verb, self.net, host)

    def leave(self):
        if self.disk:
            subprocess.run(['umount', '-l', self.state])
        shutil.rmtree(self.state, ignore_errors=True)

    def down(self):
        subprocess.run(['bash', NET, 'down', self.net])
        self.leave()


def processes(run):
    """Returns {pid: command} of the living processes that belong to the run, wherever they are."""
    found = {}
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        try:
            with open(f'/proc/{name}/cmdline', 'rb') as file:
                command = file.read().replace(b'\0', b' ').decode(errors='replace')
            with open(f'/proc/{name}/environ', 'rb') as file:
                environment = file.read()
            with open(f'/proc/{name}/stat') as file:
                zombie = file.read().rpartition(')')[2].split()[0] == 'Z'
        except OSError:
            continue
        ours = f'DTRUN_RUN_ID={run}\0'.encode() in environment or (
            'dtrun' in command and run in command and 'soak.py' not in command)
        if ours and not zombie and int(name) != os.getpid():
            found[int(name)] = command
    return found


class Run:
    def __init__(self, place, name, strategy):
        self.place, self.name = place, name
        self.later = []  # (when, what) to undo
        self.seen = {}   # (step, attempt) -> loss, everything that the store has ever shown
        self.told = []
        self.flipped = self.set_back = 0 # faults that may have lost points: damage to a journal, to the store
        self.lenient_until = 0           # the store is being created again
        self.filler = place.state + '/filler'
        call(DTRUN, 'launch', '--detach', place.state + '/tiny.yaml', '--set', 'name=' + name,
             '--set', 'strategy=' + strategy)
        self.id = self.row()[0]

    def row(self):
        rows = self.place.query(
            'SELECT r.id, a.state, a.attempt, r.step, a.exit_code, a.reason FROM runs r JOIN'
            ' attempts a ON a.run = r.run AND a.attempt = r.attempt WHERE r.name = ?', self.name)
        if not rows:
            raise AssertionError('the history lacks the run')
        return rows[0]

    def lost_rows(self):
        self.set_back += 1
        self.lenient_until = time.monotonic() + MISSING_SECONDS

    def gaps(self):
        (count,), = self.place.query('SELECT count(*) FROM events e JOIN runs r USING (run)'
                                     " WHERE r.name = ? AND e.kind = 'gap'", self.name)
        return count

    def look(self):
        """Reads what the store shows now; what it showed before must still be there."""
        points = dict(((step, attempt), value) for step, attempt, value in self.place.query(
            'SELECT m.step, m.attempt, m.value FROM metrics m JOIN series s USING (series)'
            " JOIN runs r USING (run) WHERE r.name = ? AND s.name = 'loss'", self.name))
        lost = [key for key, value in self.seen.items() if points.get(key) != value]
        if lost and not (self.set_back > 0 and self.gaps() > 0):
            raise AssertionError(f'{len(lost)} points that the store had shown are lost: {lost[:3]}')
        self.seen = points

    def say(self, text):
        self.told.append(f'{time.monotonic() - BEGUN:.1f} s: {text}')

    def pids(self, what):
        return [pid for pid, command in processes(self.id).items() if what in command]

    def kill(self, pids, number, draw, what):
        if not pids:
            self.say(f'no {what} there to be hit')
            return None
        pid = draw.choice(sorted(pids))
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return None
        self.say(f'{signal.Signals(number).name} to {what} {pid}')
        return pid

    def after(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    # --- the faults

    def rank(self, draw):
        self.kill(self.pids('dtrun-engine'), signal.SIGKILL, draw, 'a rank')

    def agent(self, draw):
        self.kill(self.pids('dtrun-agent serve'), signal.SIGKILL, draw, 'an agent')

    def supervisor(self, draw):
        seconds = draw.choice([0, draw.uniform(0, 2), draw.uniform(2, 10)])
        self.kill(self.pids('dtrun supervise'), signal.SIGKILL, draw, 'the supervisor')

        self.after(seconds, self.meet)

    def meet(self):
        """Runs commands until one has started a supervisor. They are refused while the disk is full, and a command that
        runs while the killed supervisor still holds its lock assumes that it is alive."""
        met = call(DTRUN, 'status', self.id, '--json', check=False).returncode == 0
        if not met or not (self.pids('dtrun supervise') or self.has_ended()):
            self.after(0.5, self.meet)

    def has_ended(self):
        try:
            return self.row()[1] in ENDED
        except (AssertionError, sqlite3.Error): # the store is being created again
            return False

    def pause(self, draw):
        seconds = draw.choice([0, draw.uniform(0.2, 2)])
        pid = self.kill(self.pids('dtrun-engine'), signal.SIGSTOP, draw, 'a rank')

        def go_on():
            if pid in processes(self.id):
                os.kill(pid, signal.SIGCONT)
        if pid is not None and seconds > 0:
            self.after(seconds, go_on)

    def cut(self, draw):
        host = draw.choice(['host1', 'host2'])
        seconds = draw.choice([draw.uniform(1, 12), draw.uniform(1, OPTIONS.longest_cut)])
        seconds = min(seconds, OPTIONS.longest_cut)
        self.place.hosts('cut', host)
        self.say(f'{host} is cut off for {seconds:.1f} s')

        def heal():
            self.place.hosts('heal', host)
            self.say(f'{host} is back')
        self.after(seconds, heal)

    def disk(self, draw):
        seconds = draw.uniform(0.5, 5)
        self.say(f'the disk is full for {seconds:.1f} s')
        try:
            with open(self.filler, 'ab', buffering=0) as file:
                while file.write(bytes(1 << 16)) > 0:
                    pass
        except OSError:
            pass

        def free():
            if os.path.exists(self.filler):
                os.unlink(self.filler)
        self.after(seconds, free)

    def throttle(self, draw):
        seconds = draw.uniform(5, 60)
        pids = list(processes(self.id))
        self.say(f'{len(pids)} processes get a tenth of a processor for {seconds:.1f} s')
        halting = subprocess.Popen([sys.executable, os.path.join(HERE, 'throttle.py'), '0.1',
                                    str(seconds)] + [str(pid) for pid in pids])

        def go_on():
            halting.terminate()
            halting.wait()
            self.say('they get what they want')
        self.after(seconds, go_on)

    def stalled(self, draw):
        seconds = draw.uniform(5, 30)
        pid = self.kill(self.pids('dtrun supervise'), signal.SIGSTOP, draw, 'the supervisor')

        def go_on():
            self.say('the supervisor continues')
            if pid in processes(self.id):
                os.kill(pid, signal.SIGCONT)
        if pid is not None:
            self.after(seconds, go_on)

    def key(self, draw):
        host = draw.choice(['host1', 'host2'])
        seconds = draw.uniform(10, 60)
        keys, away = (f'{self.place.net}/{host}/{name}' for name in ('authorized_keys', 'away'))
        if not os.path.exists(keys):
            return
        os.rename(keys, away)
        first = int(open(f'{self.place.net}/{host}/sshd.pid').read())
        for pid in map(int, call('bash', NET, 'pids', self.place.net, host).stdout.split()):
            with contextlib.suppress(OSError):
                if open(f'/proc/{pid}/cmdline', 'rb').read().startswith(b'sshd: ') and pid != first:
                    os.kill(pid, signal.SIGTERM)
        self.say(f'nobody may sign in to {host} for {seconds:.1f} s')

        def give_back():
            os.rename(away, keys)
            self.say(f'{host} lets us in again')
        self.after(seconds, give_back)

    def held(self, draw):
        seconds = draw.uniform(5, 30)
        holder = subprocess.Popen([sys.executable, '-c', HOLD, self.place.state + '/dtrun/store.db'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        self.say(f'the store is held for {seconds:.1f} s')

        def let_go():
            holder.communicate()
            self.say('the store is let go of')
        self.after(seconds, let_go)

    # --- damage to files

    def node_folders(self):
        """Returns where agents keep their journals, seen from outside the mounts of their hosts."""
        found = []
        for pid in self.pids('dtrun-agent serve'):
            words = processes(self.id).get(pid, '').split()
            if len(words) > 2:
                found.append(f'/proc/{pid}/root{words[2]}')
        return [folder for folder in found if os.path.isdir(folder)]

    def journal(self, draw):
        """Damages one byte of a journal and kills its agent, so that another agent reads it."""
        folders = self.node_folders()
        path = draw.choice(sorted(folders)) + '/journal.jsonl' if folders else ''
        try:
            with open(path, 'r+b') as file:
                data = file.read()
                used = [i for i, byte in enumerate(data) if byte != 0]  # else its space was released already
                if not used:
                    return
                at = draw.choice(used)
                file.seek(at)
                file.write(bytes([data[at] ^ 1 << draw.randrange(8)]))
        except OSError:
            return
        self.say(f'byte {at} of {path} is another')
        self.flipped += 1
        self.agent(draw)

    def plan(self, draw):
        """Flips a bit of the plan, cuts it, empties it or removes it, and kills the supervisor."""
        paths = glob.glob(f'{self.place.state}/dtrun/runs/{self.id}/attempt-*/plan.json')
        path = max(paths, key=lambda name: int(name.split('attempt-')[1].split('/')[0]))
        how = draw.choice(['flipped', 'cut', 'empty', 'gone'])
        with contextlib.suppress(OSError):
            data = bytearray(open(path, 'rb').read())
            if data: # else the previous fault emptied it
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            if how == 'gone':
                os.unlink(path)
            else:
                with open(path, 'wb') as file:
                    file.write({'flipped': data, 'cut': data[:len(data) // 2], 'empty': b''}[how])
            self.say(f'{path} is {how}')
        self.supervisor(draw)

    def wiped(self, draw):
        """Removes a node's state folder under its agent, and kills the supervisor."""
        folders = self.node_folders()
        if folders:
            folder = draw.choice(sorted(folders))
            shutil.rmtree(folder, ignore_errors=True)
            self.say(f'{folder} is wiped')
        self.supervisor(draw)

    def unlinked(self, draw):
        """Deletes the store; a command takes the run a moment later."""
        for path in glob.glob(f'{self.place.state}/dtrun/store.db*'):
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.say('the store is deleted')
        self.lost_rows()
        self.after(draw.uniform(0, 3), self.meet)

    def older(self, draw):
        """The launch machine loses its power: the store is set back by some seconds."""
        database, copy = self.place.state + '/dtrun/store.db', self.place.state + '/older.db'
        with contextlib.suppress(OSError):
            os.unlink(copy)
        try:
            self.row() # or it is missing at this moment
            with contextlib.closing(sqlite3.connect(database, timeout=30)) as old, \
                    contextlib.closing(sqlite3.connect(copy)) as new:
                old.backup(new)
        except (AssertionError, sqlite3.Error):
            return

        def lose_power():
            for pid in self.pids('dtrun supervise'):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for path in glob.glob(database + '*'):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            with contextlib.suppress(OSError): # two files were copied: the first was moved there
                shutil.move(copy, database)
            self.say('the store is an older copy, and the supervisor was killed')
            self.seen = {} # later points return once the agents have sent them
            self.lost_rows()
            self.meet()
        self.after(draw.uniform(0.5, 4), lose_power)

    # --- the life of a run

    def undo(self, all_of_it=False):
        now = time.monotonic()
        due = [item for item in self.later if all_of_it or item[0] <= now]
        self.later = [item for item in self.later if item not in due]
        for _, what in due:
            what()

    def until_ended(self, faults=(), draw=None, stop_after=None):
        begun = time.monotonic()
        due = begun + draw.uniform(0, 1.5) if draw else 0
        faults = list(faults)
        asked = None
        while True:
            self.undo()
            if os.path.exists(self.filler): # even a reader of the store may need space
                time.sleep(0.05)
                continue
            try:
                _, state, attempt, step, _, _ = self.row()
                self.look()
            except (AssertionError, sqlite3.Error):
                if time.monotonic() > self.lenient_until:
                    raise
                time.sleep(0.05)
                continue
            if state in ENDED and not self.later:
                break
            if state in ENDED:
                self.undo(all_of_it=True) # this fault may set the store back, too
                continue
            # A rank that is halted during set-up is found hanging only after minutes.
            fit = state == 'running' or (state == 'starting' and faults[:1] != ['pause'])
            if faults and fit and time.monotonic() >= due:
                getattr(self, faults.pop(0))(draw)
                COUNT['faults'] += 1
                due = time.monotonic() + draw.choice([0, draw.uniform(0, 4)])
            if stop_after is not None and state == 'running' and step >= stop_after:
                asked = asked or subprocess.Popen([DTRUN, 'stop', self.id], env=ENVIRONMENT,
                                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if time.monotonic() - begun > RUN_SECONDS:
                raise AssertionError(f'{state} at step {step} of attempt {attempt} after'
                                     f' {RUN_SECONDS} s')
            time.sleep(0.05)
        if asked:
            asked.communicate()
        return asked is not None

    def check_end(self, wanted):
        _, state, attempt, step, code, reason = self.row()
        self.say(f'{state} ({code}) at step {step} of attempt {attempt} {reason}')
        if (state, code) not in wanted:
            raise AssertionError(f'it ended {state} ({code}): {reason}')
        if code == 5: # nodes that could not be asked can be asked now
            call(DTRUN, 'stop', self.id)
        deadline = time.monotonic() + 20
        while processes(self.id):
            if time.monotonic() > deadline:
                raise AssertionError(f'processes are left: {processes(self.id)}')
            time.sleep(0.1)
        return state

    def may_have_lost(self, count):
        """Points that no journal has any more, and for which the history reports a gap."""
        return self.gaps() > 0 and (self.set_back > 0 or count <= self.flipped)

    def losses(self):
        return call(DTRUN, 'metrics', self.id, '--name', 'loss').stdout.splitlines()[1:]


def undisturbed(place, strategy, steps):
    run = Run(place, f'golden-{strategy}', strategy)
    begun = time.monotonic()
    run.until_ended()
    run.check_end([('finished', 0)])
    losses = [line.split(',')[3] for line in run.losses()]
    assert len(losses) == steps, f'{len(losses)} losses of {steps} steps'
    print(f'{strategy}: {steps} steps undisturbed, {time.monotonic() - begun:.1f} s', flush=True)
    return losses


def disturbed(place, name, strategy, golden, faults, draw):
    """Returns what is wrong, or None."""
    run = Run(place, name, strategy)
    stop_after = draw.randrange(1, len(golden)) if draw.random() < 0.2 else None
    try:
        # A fault at the same time as the stop may have ended the attempt before it. Then the run has failed, or a node
        # could not be asked whether anything is left.
        wanted = [('finished', 0)]
        if run.until_ended(faults, draw, stop_after):
            wanted += [('stopped', 4), ('failed', 1), ('failed', 3), ('stopped', 5), ('failed', 5),
                       ('finished', 5)] # every step was done, and then the stop could not ask the nodes
        if run.check_end(wanted) != 'finished':
            call(DTRUN, 'resume', '--detach', run.id)
            COUNT['resumed'] += 1
            run.until_ended()
            run.check_end([('finished', 0)])
        attempts = run.row()[2]
        assert attempts == 1 or stop_after is not None or set(faults) != {'throttle'}, \
            f'{attempts} attempts of a run that was only slow'
        run.look()
        rows = [line.split(',') for line in run.losses()]
        steps = [int(row[1]) for row in rows]
        lost = sorted(set(range(1, len(golden) + 1)) - set(steps))
        assert steps == sorted(set(steps)) and set(steps) <= set(range(1, len(golden) + 1)), \
            f'{len(rows)} points, and not each step once'
        assert not lost or run.may_have_lost(len(lost)), f'no point of the steps {lost[:5]} ...'
        COUNT['lost'] += len(lost)
        other = [row[1] for row in rows if row[3] != golden[int(row[1]) - 1]]
        assert not other, f'{len(other)} losses differ, from step {other[0]} on'
        COUNT['attempts'] += run.row()[2]
        COUNT['points'] += len(run.seen)
    except (AssertionError, RuntimeError, sqlite3.Error) as problem:
        run.undo(all_of_it=True)
        subprocess.run([DTRUN, 'stop', '--now', run.id], env=ENVIRONMENT, capture_output=True)
        kept = tempfile.mkdtemp(prefix=f'dtrun-soak-{name}.')
        shutil.copytree(f'{place.state}/dtrun/runs/{run.id}', kept + '/run', symlinks=True,
                        ignore=shutil.ignore_patterns('*.sock', 'checkpoints'))
        for path in glob.glob(f'{place.state}/dtrun/store.db*'):
            shutil.copy(path, kept)
        for pid in processes(run.id):
            os.kill(pid, signal.SIGKILL)
        return f'{name} ({strategy}): {problem}\n  ' + '\n  '.join(run.told) + f'\n  kept in {kept}'
    shutil.rmtree(f'{place.state}/dtrun/runs/{run.id}')
    return None


def main():
    place = Place(OPTIONS.steps)
    kinds = ['rank', 'agent', 'supervisor', 'pause', 'throttle', 'stalled', 'held']
    kinds += ['journal', 'plan', 'wiped', 'unlinked', 'older']
    kinds += ['cut', 'key'] * place.cable + ['disk'] * place.disk
    kinds = [kind for kind in kinds if not OPTIONS.kinds or kind in OPTIONS.kinds]
    draw = random.Random(OPTIONS.seed)
    problems, runs = [], 0
    print(f'seed {OPTIONS.seed}, {OPTIONS.faults} faults of {", ".join(kinds)}; hosts are '
          + ('network namespaces' if place.cable else 'several sshd on 127.0.0.1'), flush=True)
    try:
        golden = {s: undisturbed(place, s, OPTIONS.steps) for s in ('ddp', 'fsdp')}
        planned = 0
        while planned < OPTIONS.faults and not ASKED_TO_END:
            faults = [draw.choice(kinds) for _ in range(draw.randint(1, 4))][:OPTIONS.faults - planned]
            if 'unlinked' in faults or 'older' in faults:
                faults = [fault for fault in faults if fault != 'plan']
            planned += len(faults)
            runs += 1
            strategy = draw.choice(['ddp', 'fsdp'])
            # Each run has its own generator: how many numbers one draws does not change the next.
            problem = disturbed(place, f'run-{runs}', strategy, golden[strategy], faults,
                                random.Random(f'{OPTIONS.seed} {runs}'))
            print(f'{time.monotonic() - BEGUN:6.0f} s  run {runs} {strategy:4} {" ".join(faults)}'
                  + (f'\nWRONG {problem}' if problem else ''), flush=True)
            problems += [problem] if problem else []
        (good,), = place.query('PRAGMA integrity_check')
        if good != 'ok':
            problems.append(f'the store: {good}')
            print('WRONG', problems[-1])
    finally:
        place.down()
    print(f'{COUNT["faults"]} faults in {runs} runs: {COUNT["attempts"]} attempts, {COUNT["resumed"]}'
          f' resumed after a stop, {COUNT["points"]} points, each of its bits, {COUNT["lost"]} lost and'
          f' said to be;'
          f' {len(problems)} runs broke a promise')
    return 1 if problems else 0


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--faults', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--steps', type=int, default=500)
    parser.add_argument('--kinds', type=lambda text: text.split(','), default=[],
                        help='of these only')
    parser.add_argument('--longest-cut', type=float, default=30)
    OPTIONS = parser.parse_args()
    BEGUN, COUNT, ENVIRONMENT = time.monotonic(), collections.Counter(), dict(os.environ)
    ASKED_TO_END = []
    signal.signal(signal.SIGTERM, lambda *_: ASKED_TO_END.append(True))
    sys.exit(main())
