#!/usr/bin/env python3
"""The folder of a command as a node builds it (`dtrun-agent node tree`): interrupted builds, files of a setup, holes, a
small disk, and files that the command changed meanwhile. Usage: workdir_builds.py FOLDER-OF-THE-PROGRAMS"""
import json
import os
import shutil
import subprocess

from node_folder import agent, build, cache, folder, forget, read, time_ns, tree, work, write

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
# files that were only touched on the launch machine still count as sent
shutil.rmtree(work + '/nodes')
touched = tree(a='a', link=['a'], sub=None, sub__b='b')
build(touched)
write('own', 'of the command')
for entry in touched['entries']:
    if entry[0] == 'file':
        entry[4] += 10**9
build(touched)
assert os.lstat(folder + '/a').st_mtime_ns == time_ns + 10**9
assert forget() == ['own']
# names that JSON escapes, and a list in another form
shutil.rmtree(work + '/nodes')
odd = {'q"uote': '1', 'back\\slash': '2', 'tab\t': '3', '\xe4': '4', 'plain': '5', 'link"': ['q"uote']}
for separators in ((', ', ': '), (',', ':')):
    build(tree(**odd), separators=separators)
    assert sorted(os.listdir(folder)) == sorted(odd) and read('plain') == '5' and read('link"') == '1'
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
setup = json.dumps({'command': 'echo by the setup >a; echo by the setup >new', 'folder': '-', 'env': {}}) + '\n'


def set_up(entry):
    run = subprocess.Popen([agent, 'node', 'setup', cache + '/setups/' + entry, folder], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
    run.stdin.write(setup.encode())
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
