"""A node's cache and the folder of a run as tests of `dtrun-agent node` use them; sys.argv[1] is the folder of the
programs."""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

work = tempfile.mkdtemp()
cache = work + '/cache'
folder = work + '/nodes/run/workdir-1'
os.makedirs(cache + '/agents')
os.makedirs(cache + '/files')
agent = shutil.copy(sys.argv[1] + '/dtrun-agent', cache + '/agents/dtrun-agent')
empty_stream = bytes.fromhex('28b52ffd2000010000')  # zstd frame without bytes


def ask(*words, given=b'', limit=None):
    def before():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return subprocess.run([agent, 'node', *words], input=given, capture_output=True, preexec_fn=before)


def put(texts):
    """Puts contents into the store, and returns bytes and digest of each."""
    paths = [work + '/content-%d' % i for i in range(len(texts))]
    for path, text in zip(paths, texts):
        with open(path, 'wb') as file:
            file.write(text)
    said = ask('talk', given=b''.join(b'digest\0' + path.encode() + b'\0\0' for path in paths)).stdout
    digests = [line[3:].decode() for line in said.splitlines() if line.startswith(b'is ')]
    for path, digest in zip(paths, digests, strict=True):
        os.rename(path, cache + '/files/' + digest)
    return [(len(text), digest) for text, digest in zip(texts, digests)]


time_ns = 1700000000 * 10**9


def tree(**files):
    """Returns a list of files, folders (None) and links (a list) with these contents."""
    entries, texts = [], []
    for name, text in files.items():
        path = name.replace('__', '/')
        if text is None:
            entries.append(['folder', path, 0o755])
        elif isinstance(text, list):
            entries.append(['link', path, text[0]])
        else:
            entries.append(['file', path, 0o644])
            texts.append(text if isinstance(text, bytes) else text.encode())
    stored = put(texts)
    for entry in entries:
        if entry[0] == 'file':
            size, digest = stored.pop(0)
            entry += [size, time_ns, digest]
    entries.sort(key=lambda entry: entry[1].replace('/', '\0'))
    return {'tree': 1, 'entries': entries}


def request(what, separators=(',', ':')):
    """Returns what `node tree` reads: a list of files as dtrun writes it, and no contents."""
    text = json.dumps(what, separators=separators).encode()
    return b'%d\n' % len(text) + text + empty_stream


def build(what, *mode, limit=None, code=0, separators=(',', ':')):
    done = ask('tree', folder, *mode, given=request(what, separators), limit=limit)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stderr.decode()


def read(name):
    with open(folder + '/' + name) as file:
        return file.read()


def write(name, text):
    with open(folder + '/' + name, 'w') as file:
        file.write(text)


def forget():
    done = ask('forget', work + '/nodes/run/attempt-1/node-0', '-', folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.decode().split('files ')[1].split(' ', 2)[2])
