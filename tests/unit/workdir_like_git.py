#!/usr/bin/env python3
"""Checks which files of a command's folder are sent: those of `git ls-files -co --exclude-standard`, in every kind of
repository, as .dtrunignore changes them; and what is sent and reported where git does not answer.

    workdir_like_git.py TEST_PROGRAM

TEST_PROGRAM list FOLDER prints what dt_workdir_list finds. Skips (77) without git.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ENV = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}
failures = 0


def fail(text):
    global failures
    failures += 1
    print(text)


def git(folder, *words):
    return subprocess.run(['git', '-C', folder, '-c', 'user.name=x', '-c', 'user.email=x@y', '-c',
                           'protocol.file.allow=always', *words], check=True, capture_output=True, env=ENV).stdout


def write(folder, path, text=''):
    path = os.path.join(os.fsencode(folder), os.fsencode(path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as out:
        out.write(os.fsencode(text))


def listed(folder, env=None, fails=None):
    """Returns the files and links that are sent, the folders, and the notes."""
    done = subprocess.run([PROGRAM, 'list', folder], capture_output=True, env={**ENV, **(env or {})})
    notes = os.fsdecode(done.stderr)
    if (done.returncode != 0) != (fails is not None) or (fails is not None and fails not in notes):
        fail(f'{folder}: exit code {done.returncode}, {notes}')
    paths = [os.fsdecode(path) for path in done.stdout.split(b'\0') if path]
    return ({path for path in paths if path[-1] != '/'}, {path[:-1] for path in paths if path[-1] == '/'}, notes)


def by_git(folder):
    """Returns what git lists and the disk has; of a repository below, what git lists there."""
    out = set()
    for path in git(folder, 'ls-files', '-z', '-co', '--exclude-standard').split(b'\0'):
        full = os.path.join(folder, os.fsdecode(path))
        if path and os.path.isdir(full) and not os.path.islink(full):
            out.update(os.path.join(os.fsdecode(path), below) for below in by_git(full))
        elif path and os.path.lexists(full):
            out.add(os.fsdecode(path))
    return out


def same(name, got, wanted):
    if got != wanted:
        fail(f'{name}: sent too much: {sorted(got - wanted)}, too little: {sorted(wanted - got)}')


def says(name, notes, *texts):
    for text in texts:
        if text not in notes:
            fail(f'{name}: no {text!r} in {notes!r}')


def repository(folder):
    git('.', 'init', '-q', folder)
    write(folder, '.gitignore', 'data/\n*.log\n!keep.log\n/venv\n*.secret\n__pycache__/\n')
    for path in ['a.py', 'data/big', 'data/raw/x.log', 'data/raw/y', 'data/small', 'x.log', 'keep.log', 'venv/bin/p',
                 'pkg/m.py', 'pkg/__pycache__/m.pyc', 'pkg/only/x.log', 'deleted.py', 'moved/old.py',
                 'odd name\n"quoted"\t*.py', '-x', '"q"', ' blank ', '\u00e9.py', 'a\\b.log', 'two\nlines.log']:
        write(folder, path, path)
    os.symlink('data', os.path.join(folder, 'data-link'))
    os.symlink('nowhere.log', os.path.join(folder, 'dangling.log'))
    os.mkdir(os.path.join(folder, 'pkg', 'empty'))
    git(folder, 'add', '-f', 'data/small', 'deleted.py', 'a.py', 'moved/old.py', '.gitignore')
    git(folder, 'commit', '-qm', 'x')
    os.remove(os.path.join(folder, 'deleted.py'))
    shutil.rmtree(os.path.join(folder, 'moved'))
    write(folder, 'moved', 'a file where git tracks a folder')
    return folder


def ordinary(top):
    folder = repository(f'{top}/plain')
    files, folders, notes = listed(folder)
    same('plain', files, by_git(folder))
    for path in ['pkg/empty', 'pkg/only', 'data']:
        if path not in folders:
            fail(f'plain: no folder {path}')
    for path in ['venv', 'data/raw', 'pkg/__pycache__']:
        if path in folders:
            fail(f'plain: a folder {path}')
    says('plain', notes, "not sent by 'data/' of .gitignore: 3 files", "'/venv' of .gitignore: 1 file",
         "'*.log' of .gitignore: 4 files", "'__pycache__/' of .gitignore: 1 file")
    # whatever the caller's variables say
    os.mkdir(f'{top}/hook')
    other = {'GIT_DIR': f'{top}/nowhere', 'GIT_INDEX_FILE': f'{top}/nowhere', 'GIT_WORK_TREE': '/', 'GIT_PREFIX': 'pkg/',
             'GIT_LITERAL_PATHSPECS': '1', 'GIT_CEILING_DIRECTORIES': top, 'GIT_TRACE': f'{top}/hook/trace'}
    same('variables of a hook', listed(folder, other)[0], files)
    if os.listdir(f'{top}/hook'):
        fail('GIT_TRACE was followed')
    # a folder below the root, and one of which all files are ignored
    same('below', listed(f'{folder}/pkg')[0], by_git(f'{folder}/pkg'))
    same('all ignored', listed(f'{folder}/pkg/only')[0], set())
    # a folder that git ignores: git cannot list it
    write(folder, 'data/raw/.gitignore', '*.log\n')
    files, folders, notes = listed(f'{folder}/data/raw')
    same('an ignored folder', files, {'.gitignore', 'y'})
    says('an ignored folder', notes, 'git ignores the folder itself')
    os.remove(f'{folder}/data/raw/.gitignore')
    # other sources of rules, and settings
    write(folder, '.git/info/exclude', '*.py\n')
    write(top, 'global', 'keep.log\n')
    git(folder, 'config', 'core.excludesFile', f'{top}/global')
    git(folder, 'config', 'core.quotePath', 'true')
    git(folder, 'config', 'core.fsmonitor', f'touch {top}/monitor-ran; false')
    files, folders, notes = listed(folder)
    if 'pkg/m.py' in files or 'a.py' not in files or 'keep.log' not in files:
        fail(f'excludes: {files}')
    says('excludes', notes, "'*.py' of .git/info/exclude: ")
    if os.path.exists(f'{top}/monitor-ran'):
        fail('the fsmonitor of the repository was started')


def own_lines(top):
    folder = repository(f'{top}/lines')
    before = listed(folder)[0]
    write(folder, '.dtrunignore', '# more\n!data/\n/data/big\n!/venv/\na.py\n!x.log\n')
    write(folder, 'pkg/.dtrunignore', '/m.py\n!*.log\n')
    files, folders, notes = listed(folder)
    same('.dtrunignore', files, (before | {'.dtrunignore', 'pkg/.dtrunignore', 'data/raw/y', 'venv/bin/p', 'x.log',
                                           'pkg/only/x.log', 'data/raw/x.log'}) - {'a.py', 'pkg/m.py'})
    says('.dtrunignore', notes, "'/data/big' of .dtrunignore: 1 file", "'a.py' of .dtrunignore: 1 file",
         "'/m.py' of pkg/.dtrunignore: 1 file")
    # in a folder that is taken in, git's other rules apply, also in one below the root of the repository
    write(folder, '.dtrunignore', '!data/\n')
    os.remove(f'{folder}/pkg/.dtrunignore')
    same('taken in', listed(folder)[0], before | {'.dtrunignore', 'data/big', 'data/raw/y'})
    write(folder, 'pkg/data/raw/z')
    write(folder, 'pkg/data/raw/z.log')
    write(folder, 'pkg/.dtrunignore', '!/data\n')
    same('taken in below', listed(f'{folder}/pkg')[0], {'.dtrunignore', 'm.py', 'data/raw/z'})


def several(top):
    """Submodules, nested repositories, worktrees and sparse checkouts."""
    inner = repository(f'{top}/inner')
    outer = repository(f'{top}/outer')
    git(outer, 'submodule', 'add', '-q', inner, 'sub')
    git(outer, 'commit', '-qam', 'x')
    write(outer, 'sub/made.log')
    write(outer, 'sub/made.py')
    write(outer, 'sub/data/raw')
    shutil.copytree(inner, f'{outer}/nested', symlinks=True)
    write(outer, 'nested/x.secret')
    os.remove(f'{outer}/nested/.gitignore')
    write(outer, 'nested/.git/info/exclude', 'a.py\nkeep.log\n')
    shutil.copytree(inner, f'{outer}/venv/src', symlinks=True)
    files = listed(outer)[0]
    same('submodule and nested', files, by_git(outer))
    for path, sent in [('sub/made.py', True), ('sub/made.log', False), ('nested/x.secret', True), ('nested/keep.log', False),
                       ('sub/.git', False), ('venv/src/a.py', False), ('nested/data/big', True)]:
        if (path in files) != sent:
            fail(f'submodule and nested: {path} is {"not " * sent}sent')
    git(inner, 'worktree', 'add', '-q', f'{top}/tree')
    for path in ['x.log', 'y.py', 'data/big', 'pkg/empty/z.log']:
        write(f'{top}/tree', path)
    same('worktree', listed(f'{top}/tree')[0], by_git(f'{top}/tree'))
    for path in ['one/f', 'two/f', 'two/deep/f']:
        write(inner, path)
    git(inner, 'add', '.')
    git(inner, 'commit', '-qm', 'y')
    git(inner, 'sparse-checkout', 'set', '--cone', '--sparse-index', 'one')
    files = listed(inner)[0]
    same('sparse', files, by_git(inner))
    if 'one/f' not in files or 'two/f' in files:
        fail(f'sparse: {sorted(files)}')
    # a submodule whose repository is gone: its .gitignore is read without git
    shutil.rmtree(f'{outer}/.git/modules')
    files, _, notes = listed(outer)
    if 'sub/made.py' not in files or 'sub/made.log' in files or 'sub/data/raw' in files or 'venv/bin/p' in files:
        fail(f'broken submodule: {sorted(files)}')
    says('broken submodule', notes, f"git does not say what it ignores in '{outer}/sub': fatal: not a git repository")


def without_git(top):
    """git fails, hangs, is missing; there is no repository."""
    wanted = {'.gitignore', 'a.py', 'keep.log', 'pkg/m.py', 'moved', 'data-link', 'odd name\n"quoted"\t*.py', '-x', '"q"',
              ' blank ', '\u00e9.py'}
    folder = repository(f'{top}/broken')
    for name, text in [('HEAD', ''), ('index', 'DIRCdamaged'), ('config', '[core\n')]:
        shutil.copytree(folder, f'{top}/broken-{name}', symlinks=True)
        write(f'{top}/broken-{name}', f'.git/{name}', text)
        files, _, notes = listed(f'{top}/broken-{name}')
        same(f'broken {name}', files, wanted)
        says(f'broken {name}', notes, f"git does not say what it ignores in '{top}/broken-{name}': ",
             'the .gitignore files there are read without git')
    shutil.copytree(folder, f'{top}/none', symlinks=True)
    shutil.rmtree(f'{top}/none/.git')
    files, _, notes = listed(f'{top}/none')
    same('no repository', files, wanted)
    if 'git does not say' in notes:
        fail(f'no repository: {notes}')
    says('no repository', notes, "'data/' of .gitignore: 4 files")
    os.mkdir(f'{top}/bin')
    files, _, notes = listed(folder, {'PATH': f'{top}/bin'})
    same('no git', files, wanted)
    says('no git', notes, 'git is not installed')
    write(top, 'bin/git', '#!/bin/sh\necho "fatal: out of luck" >&2\necho more >&2\nexit 128\n')
    os.chmod(f'{top}/bin/git', 0o755)
    files, _, notes = listed(folder, {'PATH': f'{top}/bin:{os.environ["PATH"]}'})
    same('a failing git', files, wanted)
    says('a failing git', notes, f"in '{folder}': fatal: out of luck;")
    # somebody else's repository
    if os.getuid() == 0:
        shutil.copytree(folder, f'{top}/theirs', symlinks=True)
        for path in [f'{top}/theirs', f'{top}/theirs/.git']:
            os.chown(path, 4242, 4242)
        files, _, notes = listed(f'{top}/theirs')
        same('dubious', files, wanted)
        says('dubious', notes, 'dubious ownership', f"git config --global --add safe.directory '{top}/theirs'")
    # .dtrunignore comes last here too
    write(f'{top}/none', '.dtrunignore', '!data/\n!*.log\nraw/\n')
    write(f'{top}/none', 'data/.gitignore', 'big\n')
    same('no repository, .dtrunignore', listed(f'{top}/none')[0],
         wanted | {'.dtrunignore', 'data/.gitignore', 'data/small', 'x.log', 'pkg/only/x.log', 'a\\b.log', 'two\nlines.log',
                   'dangling.log'})


def odd_bytes(top):
    folder = repository(f'{top}/bytes')
    os.symlink(b'bad\xff.log', os.fsencode(folder) + b'/bad\xff.log')
    write(folder, os.fsdecode(b'worse\xfe.log'))
    before = listed(folder)[0]
    write(folder, os.fsdecode(b'worse\xfe.py'))
    listed(folder, fails='is not UTF-8: rename it, or name it in')
    write(folder, '.dtrunignore', 'worse?.py\n')
    same('odd bytes', listed(folder)[0], before | {'.dtrunignore'})


def by_chance(top):
    """Random rules, in a random tree with tracked files."""
    random.seed(7)
    names = ['a', 'b', 'a.c', 'x y', '.h']
    pieces = ['a', 'b', '*', '**/', '/', '?', '.c', '!', ' ', '[ab]', '/**']
    for number in range(25):
        folder = f'{top}/chance-{number}'
        git('.', 'init', '-q', folder)
        for _ in range(25):
            try:
                write(folder, '/'.join(random.choice(names) for _ in range(random.randint(1, 4))))
            except (IsADirectoryError, NotADirectoryError, FileExistsError):
                pass
        folders = [path for path, _, _ in os.walk(folder) if '/.git' not in path]
        for path in random.sample(folders, min(3, len(folders))):
            write(path, '.gitignore', '\n'.join(''.join(random.choice(pieces) for _ in range(random.randint(1, 4)))
                                                for _ in range(random.randint(1, 3))))
        files = [path for path in git(folder, 'ls-files', '-zo').decode().split('\0') if path]
        git(folder, 'add', '-f', '--', *random.sample(files, len(files) // 4 + 1))
        same(f'by chance, {number}', listed(folder)[0], by_git(folder))


def main():
    if shutil.which('git') is None:
        print('skipped: no git here')
        return 77
    with tempfile.TemporaryDirectory() as top:
        top = os.path.realpath(top)
        ENV.update(HOME=top, GIT_CONFIG_NOSYSTEM='1')
        for check in [ordinary, own_lines, several, without_git, odd_bytes, by_chance]:
            os.mkdir(f'{top}/{check.__name__}')
            check(f'{top}/{check.__name__}')
    return failures > 0


if __name__ == '__main__':
    sys.exit(main())
