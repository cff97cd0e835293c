"""Shared code of the tests that speak the agent's protocol themselves: one agent in a separate folder, with fake_engine
as its ranks. No process is left when the test ends, however it ends."""
import atexit, json, os, queue, shutil, signal, subprocess, sys, tempfile, threading, time

BIN = os.environ['DTRUN_BIN']


def fail(text):
    print('FAILED: ' + text, file=sys.stderr)
    sys.exit(1)


def figure(number, what, limit, seen):
    """Records a measured figure for ten.sh, as lib.sh does."""
    print(f'{what}: {seen} (limit {limit})')
    if os.environ.get('FAULT_FIGURES'):
        with open(os.environ['FAULT_FIGURES'], 'a') as file:
            file.write(f'{number}\t{what}\t{limit}\t{seen}\n')


def check(good, text):
    if not good:
        fail(text)


def plan(ranks, device='cpu', run='talk'):
    return {'run': run, 'attempt': 1, 'world_size': ranks, 'nodes': [{'name': 'localhost'}],
            'ranks': [{'rank': r, 'node': 0, 'local_rank': r, 'threads': 1,
                       'device': 'cpu' if device == 'cpu' else f'{device}:{r}'} for r in range(ranks)]}


class Agent:
    def __init__(self, folder=None, environment=()):
        self.top = tempfile.mkdtemp(prefix='dtrun-talk.')
        self.folder = folder or os.path.join(self.top, 'node-0')
        self.environment = dict(os.environ, **dict(environment))
        self.seen = []
        self.next = 0
        self.bridge = None
        self.answers_alive = True
        atexit.register(self.clean)

    def connect(self):
        self.bridge = subprocess.Popen([BIN + '/dtrun-agent', 'connect', self.folder, '--start'],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=self.environment)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, args=(self.bridge, self.lines), daemon=True).start()
        self.send(command='attach', protocol=1, run='talk', attempt=1, **{'from': self.next})
        hello = self.wait('hello')
        self.pid = hello['pid']
        return hello

    @staticmethod
    def _read(bridge, lines):
        for line in bridge.stdout:
            if line.endswith('\n'):  # otherwise its agent died while it wrote the line
                lines.put(json.loads(line))
        lines.put(None)

    def disconnect(self):
        if self.bridge is not None:
            self.bridge.stdin.close()
            self.bridge.wait(10)
            self.bridge = None

    def send(self, **command):
        self.bridge.stdin.write(json.dumps(command) + '\n')
        self.bridge.stdin.flush()

    def start(self, ranks=1, environment=(), device='cpu', engine='fake_engine', **more):
        self.send(command='start', engine=f'{BIN}/{engine}', plan=plan(ranks, device), node=0,
                  environment=dict(environment), **more)

    def hear(self, seconds):
        """Returns the next event, or None if the connection has ended."""
        try:
            event = self.lines.get(timeout=seconds)
        except queue.Empty:
            fail(f'nothing was heard for {seconds} s after {self.seen[-3:]}')
        if event is not None:
            self.seen.append(event)
            if 'sequence' in event:
                # A jump is the first line that an agent writes when it continues another agent's journal.
                follows = event['sequence'] == self.next or event.get('after', -2) + 1 == self.next
                check(follows or self.next is None, f'event {event} is not number {self.next}')
                self.next = event['sequence'] + 1
        return event

    def wait(self, kind, seconds=20, **fields):
        """Returns the first event with these fields; answers the rendezvous of all ranks meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            event = self.hear(seconds)
            if event is None:
                fail(f'the connection ended before {kind}: {self.bridge.stderr.read()}')
            if event['event'] == 'alive' and self.answers_alive:
                self.send(command='alive')
            if event['event'] == 'rendezvous':
                offers = [e for e in self.seen
                          if e['event'] == 'rendezvous' and e['name'] == event['name']]
                started = sum(e['event'] == 'started' for e in self.seen)
                if len({e['rank'] for e in offers}) >= started:
                    self.send(command='rendezvous', name=event['name'],
                              values=[e['value'] for e in offers])
            if event['event'] == kind and all(event.get(k) == v for k, v in fields.items()):
                return event
        fail(f'no {kind} {fields} within {seconds} s, but {self.seen[-5:]}')

    def journal(self):
        with open(self.folder + '/journal.jsonl') as file:
            return [json.loads(line) for line in file]

    def is_alive(self):
        try:
            with open(f'/proc/{self.pid}/stat') as file:
                return file.read().rpartition(')')[2].split()[0] != 'Z'  # a zombie is dead, too
        except OSError:
            return False

    def clean(self):
        mark = f'DTRUN_NODE_DIR={self.folder}'.encode()
        if self.bridge is not None:
            self.bridge.kill()
        try:
            pid = int(open(self.folder + '/agent.lock').read().split()[0])
            if b'dtrun-agent' in open(f'/proc/{pid}/cmdline', 'rb').read():
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if mark in open(f'/proc/{pid}/environ', 'rb').read().split(b'\0'):
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.top, ignore_errors=True)
