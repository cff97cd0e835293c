#!/usr/bin/env python3
"""Spare folders of a node (runner/node_setup/remote_helper/spare.h): what the next run takes over, what a command
changed and so must not be taken over, and processes that are killed at any moment. Usage: spare_folders.py
FOLDER-OF-THE-PROGRAMS"""
import copy
import mmap
import os
import random
import shutil
import subprocess
import time

from node_folder import agent, ask, build, cache, folder, forget, read, request, tree, work, write

KEY = '0123456789abcdef' * 2
FILES = 150  # a smaller folder is not worth it
spare = cache + '/spare'


def numbered(**more):
    files = {'sub': None, 'sub__deep': None, 'link': ['f0'], 'empty': None}
    for i in range(FILES):
        files[('sub__deep__' if i % 3 else '') + 'f%d' % i] = 'content %d' % i
    return tree(**{**files, **more})


def at(where):
    """Returns for each path its kind, permissions, time and content."""
    found = {}
    for above, folders, files in os.walk(where):
        for name in folders + files:
            path = os.path.join(above, name)
            info = os.lstat(path)
            if os.path.islink(path):
                about = ('link', os.readlink(path))
            elif os.path.isdir(path):
                about = ('folder', info.st_mode)
            else:
                with open(path, 'rb') as file:
                    about = ('file', info.st_mode, info.st_mtime_ns, file.read())
            found[os.path.relpath(path, where)] = about
    return found


def inodes():
    return {os.path.join(above, name): os.lstat(os.path.join(above, name)).st_ino
            for above, _, files in os.walk(folder) for name in files}


def spares():
    return sorted(os.listdir(spare)) if os.path.isdir(spare) else []


def fresh(what):
    """Returns what a build without a spare folder makes."""
    other = work + '/nodes/fresh/workdir-1'
    done = ask('tree', other, given=request(what))
    assert done.returncode == 0, done.stderr
    found = at(other)
    shutil.rmtree(work + '/nodes/fresh')
    return found


def same_as(what):
    got, expected = at(folder), fresh(what)
    assert got == expected, {path: (got.get(path), expected.get(path)) for path in {**got, **expected}
                             if got.get(path) != expected.get(path)}


def reset():
    for path in (work + '/nodes', spare):
        shutil.rmtree(path, ignore_errors=True)


def taken(before, after):
    """Returns how many files are those that were there. A new file can have the number of a removed one."""
    return sum(after.get(path) == inode for path, inode in before.items())


first = numbered()
build(first, KEY)
same_as(first)
at_first = at(folder).keys()
before = inodes()
assert forget() == [] and spares() == [KEY + '-0'] and not os.path.exists(work + '/nodes/run'), spares()

# the next run takes the folder, and has what a build of its own would make: other contents, times, permissions and
# kinds, and fewer and more files
second = copy.deepcopy(first)
for entry in second['entries']:
    if entry[1] == 'f3':
        entry[4] += 5 * 10**9
    if entry[1] == 'f6':
        entry[2] = 0o755
    if entry[1] == 'sub/deep':
        entry[2] = 0o750
second['entries'] = [entry for entry in second['entries'] if entry[1] not in ('f9', 'empty', 'f12', 'link')]
changed = tree(f9='now another', new=None, new__file='new', f12=None, f12__x='a folder now', link=['f3'], empty='a file now')
second['entries'] += changed['entries']
second['entries'].sort(key=lambda entry: entry[1].replace('/', '\0'))
build(second, KEY)
same_as(second)
assert taken(before, inodes()) >= FILES - 2 and spares() == [], (taken(before, inodes()), spares())
assert sorted(os.listdir(work + '/nodes/run')) == ['workdir-1', 'workdir-1.stamps', 'workdir-1.tree']
# without a key, as for a checkpoint, and for a folder that exists, nothing is taken
assert forget() == [] and spares() == [KEY + '-0']
build(first)
assert spares() == [KEY + '-0']
assert forget() == [] and spares() == [KEY + '-0']
os.makedirs(folder)
write('mine', 'of the command')
build(first, KEY)
assert spares() == [KEY + '-0'] and read('mine') == 'of the command'

# whatever a command does to a file that was sent, the next run has the content that is sent
reset()


def set_back(path, change):
    info = os.lstat(path)
    change(path)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)


def rewrite(path):
    with open(path, 'r+') as file:
        file.write('C')


def by_mapping(path):
    with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as view:
        view[0] = 67


def replace(path):
    with open(path + '~', 'w') as file:
        file.write('C' * os.path.getsize(path))
    os.rename(path + '~', path)


deeds = [rewrite, by_mapping, replace, lambda path: os.link(path, work + '/elsewhere-' + os.path.basename(path)),
         lambda path: os.chmod(path, 0o600), lambda path: os.truncate(path, os.path.getsize(path)), os.unlink]
touched = ['f%d' % (30 + 3 * i) for i in range(len(deeds))]
build(first, KEY)
for name, deed in zip(touched, deeds):
    if deed is os.unlink:
        deed(folder + '/' + name)
    else:
        set_back(folder + '/' + name, deed)
forget()
given = at(spare + '/' + KEY + '-0/folder')
assert sorted(at_first - given.keys()) == sorted(touched), at_first - given.keys()
build(first, KEY)
same_as(first)
# the file with another name outside keeps its content when the run's one changes
for name in os.listdir(work):
    if name.startswith('elsewhere-'):
        assert os.lstat(work + '/' + name).st_nlink == 1, name

# what the command made stays where it is, and so does a file that it changed; the rest is taken
reset()
build(first, KEY)
before = inodes()
write('sub/deep/made', 'of the command')
write('f0', 'of the command')
assert sorted(forget()) == ['f0', 'sub/deep/made'], forget()
assert sorted(at(folder)) == ['f0', 'sub', 'sub/deep', 'sub/deep/made'] and read('f0') == 'of the command'
assert spares() == [KEY + '-0']
build(first, KEY)  # a resume: nothing is taken, and the command's files stay
assert read('f0') == read('sub/deep/made') == 'of the command' and spares() == [KEY + '-0']
os.rename(work + '/nodes/run', work + '/nodes/earlier')
build(first, KEY)
same_as(first)
assert taken(before, inodes()) >= FILES, taken(before, inodes())

# a folder in which somebody works is not given away
reset()
for how in ({'cwd': folder + '/sub'}, {'stdin': 'f0'}):
    build(first, KEY)
    opened = open(folder + '/f0') if 'stdin' in how else None
    if opened is not None:
        how = {'stdin': opened}
    sleeper = subprocess.Popen(['sleep', '1000'], **how)
    if opened is not None:
        opened.close()
    assert forget() == [] and spares() == [] and not os.path.exists(folder)
    sleeper.kill()
    sleeper.wait()

# a file that comes into a spare folder later, and a change there: neither reaches a run
for spoil in (lambda where: open(where + '/sub/stray', 'w').close(), lambda where: set_back(where + '/f0', rewrite)):
    build(first, KEY)
    forget()
    spoil(spare + '/' + KEY + '-0/folder')
    build(first, KEY)
    same_as(first)
    reset()

# another content of the same workdir leaves the folder for later; the newest one that fits is taken
build(first, KEY)
forget()
other = tree(**{'other%d' % i: 'other %d' % i for i in range(FILES)})
build(other, KEY)
same_as(other)
assert forget() == [] and spares() == [KEY + '-0', KEY + '-1']
build(first, KEY)
same_as(first)
assert spares() == [KEY + '-1']
forget()

# another boot: nothing is taken, since a power loss may have damaged the files
for name in spares():
    path = spare + '/' + name + '/stamps'
    with open(path) as file:
        words = file.read().split(' ', 2)
    with open(path, 'w') as file:
        file.write(' '.join([words[0], '01234567-89ab-cdef-0123-456789abcdef', words[2]]))
build(other, KEY)
same_as(other)
assert spares() == [], spares()

# killed at any moment, in a build and at the end: nothing of the command's is lost, and the next build is right
reset()
random.seed(1)
end = work + '/nodes/run/attempt-1/node-0'
times = {}
fresh_first, fresh_second = fresh(first), fresh(second)
for round in range(16):
    what = second if round % 2 else first
    words = ('tree', folder, KEY) if round % 4 < 2 else ('forget', end, '-', folder)
    if round % 4 >= 2:
        build(what, KEY)
        if round % 8 >= 6:
            write('made', 'of the command')
    start = time.monotonic()
    run = subprocess.Popen([agent, 'node', *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    if round >= 4:
        time.sleep(random.random() * times[words[0]])
        run.kill()
    try:
        run.communicate(request(what) if words[0] == 'tree' else b'')
    except BrokenPipeError:
        pass
    if round < 4:
        times[words[0]] = time.monotonic() - start
    build(what, KEY)
    got = at(folder)
    made = got.pop('made', None)
    assert got == (fresh_second if round % 2 else fresh_first), round
    assert round % 8 < 6 or made[3] == b'of the command', round
    if made is not None:
        os.unlink(folder + '/made')
    forget()
    assert not os.path.exists(work + '/nodes/run'), os.listdir(work + '/nodes/run')

# a spare folder of yesterday, and unfinished ones, are removed by the next build
old = time.time() - 100000
for name in spares():
    os.utime(spare + '/' + name, (old, old))
os.makedirs(spare + '/.new-old/folder')
os.utime(spare + '/.new-old', (old, old))
os.makedirs(spare + '/.taken-now/folder')
build(tree(a='a'))
assert spares() == ['.taken-now'], spares()
shutil.rmtree(work)
print('good')
