#!/usr/bin/env python3
"""The folder of a command as a node builds it (`dtrun-agent node tree`): interrupted builds, files of a setup, holes, a
small disk, and files that the command changed meanwhile. Usage: workdir_builds.py FOLDER-OF-THE-PROGRAMS"""
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


def put(text):
    """Puts a content into the store, and returns its bytes and digest."""
    path = work + '/content'
    with open(path, 'wb') as file:
        file.write(text)
    said = ask('talk', given=b'digest\0' + path.encode() + b'\0\0').stdout
    digest = next(line[3:] for line in said.splitlines() if line.startswith(b'is ')).decode()
    os.rename(path, cache + '/files/' + digest)
    return len(text), digest


time_ns = 1700000000 * 10**9


def tree(**files):
    """Returns a list of files, folders (None) and links (a list) with these contents."""
    entries = []
    for name, text in files.items():
        path = name.replace('__', '/')
        if text is None:
            entries.append(['folder', path, 0o755])
        elif isinstance(text, list):
            entries.append(['link', path, text[0]])
        else:
            size, digest = put(text if isinstance(text, bytes) else text.encode())
            entries.append(['file', path, 0o644, size, time_ns, digest])
    entries.sort(key=lambda entry: entry[1].replace('/', '\0'))
    return {'tree': 1, 'entries': entries}


def build(what, *mode, limit=None, code=0):
    text = json.dumps(what).encode()
    done = ask('tree', folder, *mode, given=b'%d\n' % len(text) + text + empty_stream, limit=limit)
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


big = 'x' * 3000000
# a build that ends while it places a file, as if it was killed, and then a build of another content
build(tree(a='a 1', b='b 1', c=big), limit=1000000, code=3)
assert read('a') == 'a 1' and not os.path.exists(folder + '/c')
with open(folder + '.placing', 'w') as file:
    file.write('a part')
build(tree(a='a 2', b='b 1', c='c 1'))
assert (read('a'), read('b'), read('c')) == ('a 2', 'b 1', 'c 1')
# the command changes a file and makes one; a build of new content that ends early keeps both, and so does the next
# build
write('a', 'of the command')
write('made', 'of the command')
build(tree(a='a 2', b='b 2', d=big), limit=1000000, code=3)
assert (read('a'), read('b'), read('made')) == ('of the command', 'b 2', 'of the command')
assert not os.path.exists(folder + '/c')  # this file was sent, and is not sent any more
build(tree(a='a 2', b='b 3', d='d 3'))
assert (read('a'), read('b'), read('d'), read('made')) == ('of the command', 'b 3', 'd 3', 'of the command')
# twice, with the contents of two builds
build(tree(a='a 2', b='b 4', d=big), limit=1000000, code=3)
build(tree(a='a 2', b='b 5', d=big), limit=1000000, code=3)
assert "'a', 'made'" in build(tree(a='a 3', b='b 6', d='d 6', made='sent'), code=4)
assert (read('a'), read('b'), read('made')) == ('of the command', 'b 5', 'of the command')
assert "'a'" in build(tree(a='a 3', b='b 6'), 'check', code=4)
build(tree(a='a 2', b='b 6', d='d 6'), 'check')
assert read('b') == 'b 5'
# the document of the sent files is lost: nothing counts as sent, so that files that differ are not replaced
build(tree(a='a 2', b='b 6', d='d 6'))
os.unlink(folder + '.tree')
assert "'a', 'b'" in build(tree(a='a 2', b='b 7', d='d 6'), code=4)
build(tree(a='of the command', b='b 6', d='d 6'))
# the end removes files that were sent and are unchanged; a resume knows this
write('b', 'of the command too')
assert sorted(forget()) == ['a', 'b', 'made'], forget()
build(tree(a='of the command', b='b 6', d='d 6'))
assert (read('b'), read('d')) == ('of the command too', 'd 6')
# nothing is placed or removed through a link, and a file in place of a folder stays
shutil.rmtree(work + '/nodes')
os.mkdir(work + '/elsewhere')
build(tree(sub=None, sub__x='x 1', sub__y='y 1', other=None, other__z='z 1', same=['target']))
shutil.move(folder + '/sub', work + '/elsewhere/sub')
os.symlink(work + '/elsewhere/sub', folder + '/sub')
shutil.rmtree(folder + '/other')
write('other', 'a file')
os.unlink(folder + '/same')
os.symlink('made', folder + '/same')
build(tree(sub=None, sub__x='x 1', other=None, other__z='z 1', same=['target']))
assert sorted(os.listdir(work + '/elsewhere/sub')) == ['x', 'y']
assert read('other') == 'a file' and os.readlink(folder + '/same') == 'made'
assert "'other/z', 'same', 'sub/x'" in build(
    tree(other=None, other__z='z 2', same=['target 2'], sub=None, sub__x='x 2'), code=4)
assert sorted(forget()) == ['other', 'same', 'sub'] and len(os.listdir(work + '/elsewhere/sub')) == 2
# a folder becomes a file, if no file in it belongs to the command
shutil.rmtree(work + '/nodes')
build(tree(d=None, d__x='x'))
build(tree(d='now a file'))
assert read('d') == 'now a file'
build(tree(d=None, d__x='x'))
write('d/own', 'mine')
assert "'d'" in build(tree(d='now a file'), code=4) and read('d/x') == 'x'
# holes stay holes, and no second copy is made
shutil.rmtree(work + '/nodes')
shutil.rmtree(cache + '/files')
os.mkdir(cache + '/files')
hole = work + '/hole'
with open(hole, 'wb') as file:
    file.truncate(50000000)
    file.seek(30000000)
    file.write(b'data')
holes = tree(hole=open(hole, 'rb').read())
stored = cache + '/files/' + holes['entries'][0][5]
os.replace(hole, stored)
holes['entries'][0].append(os.stat(stored).st_blocks * 512)
build(holes)
info = os.stat(folder + '/hole')
assert info.st_size == 50000000 and info.st_blocks * 512 < 1000000, info
assert open(folder + '/hole', 'rb').read()[30000000:30000005] == b'data\0'
# files that are added to others: missing ones are placed, those that differ are refused
shutil.rmtree(work + '/nodes')
os.makedirs(folder + '/out')
write('out/mine', 'of the command')
build(tree(out=None, out__shard='from another node', out__two='from another node'), 'add')
assert read('out/shard') == read('out/two') == 'from another node' and read('out/mine') == 'of the command'
write('out/shard', 'newer')
assert "'out/shard'" in build(tree(out=None, out__shard='from another node'), 'add', code=4)
assert read('out/shard') == 'newer' and sorted(os.listdir(folder + '/out')) == ['mine', 'shard', 'two']
assert sorted(os.listdir(work + '/nodes/run')) == ['workdir-1']
# a setup changes a file that was sent, and makes one: both are placed, and neither belongs to the command
shutil.rmtree(work + '/nodes')
request = json.dumps({'command': 'echo by the setup >a; echo by the setup >new', 'folder': '-', 'env': {}}) + '\n'


def set_up(entry):
    run = subprocess.Popen([agent, 'node', 'setup', cache + '/setups/' + entry, folder], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
    run.stdin.write(request.encode())
    run.stdin.flush()
    out = run.stdout.read()
    assert run.wait() == 0 and out.endswith(b'end 0\n'), out
    run.stdin.close()


build(tree(a='a 1', b='b 1'))
set_up('one')
assert read('a') == read('new') == 'by the setup\n'
build(tree(a='a 2', b='b 1'))
assert read('a') == 'a 2' and not os.path.exists(folder + '/new')
set_up('two')
assert read('a') == 'by the setup\n'
write('a', 'of the command')
os.unlink(folder + '/new')
write('new', 'of the command')
build(tree(a='a 2', b='b 1'))
set_up('two')
assert read('a') == read('new') == 'of the command'
assert sorted(forget()) == ['a', 'new'] and sorted(os.listdir(folder)) == ['a', 'new']
shutil.rmtree(work)
print('good')
