#!/usr/bin/env python3
"""Compares the lines of runner/node_setup/workdir/ignore.h with `git check-ignore` on random rules and paths.

    ignore_like_git.py TEST_PROGRAM [COUNT [SEED]]

Skips (77) without git. Rules in which '**' and a slash follow another character ("a**/**/") are left out: git has
several meanings for them. So are sets that do not end or that contain a slash, and a backslash before a slash: fnmatch(3)
reads them differently.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

NAMES = ['a', 'b', 'ab', 'a.c', 'abc', '.x', 'a b', 'b]', '#a', '!b', 'x*y', '-']
PIECES = ['a', 'b', 'c', '.', '*', '**', '?', '/', '/**/', '**/', '/**', '[ab]', '[!a]', '[^b]', '[a-c]',
          '[[:alpha:]]', '[]a]', '\\*', '\\a', '\\', '!', ' ', '#', '-', '[a-]', '***', '[[:foo:]]', 'x', '[\\]]', '\r']


def make_paths(folder):
    folders, files = set(), set()
    for _ in range(60):
        parts = [random.choice(NAMES) for _ in range(random.randint(1, 4))]
        fronts = ['/'.join(parts[:k]) for k in range(1, len(parts))]
        path = '/'.join(parts)
        if any(front in files for front in fronts + [path]) or path in folders:
            continue
        os.makedirs(os.path.join(folder, *parts[:-1]), exist_ok=True)
        folders.update(fronts)
        if random.random() < .3:
            os.makedirs(os.path.join(folder, path), exist_ok=True)
            folders.add(path)
        else:
            open(os.path.join(folder, path), 'w').close()
            files.add(path)
    return folders, sorted(folders | files)


def main():
    program, count, seed = sys.argv[1], int((sys.argv[2:] + [60])[0]), int((sys.argv[3:] + [1])[0])
    if shutil.which('git') is None:
        print('skipped: no git here')
        return 77
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, 'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_CONFIG_SYSTEM': '/dev/null', 'HOME': folder}
        subprocess.run(['git', 'init', '-q', folder], check=True, env=env)
        folders, paths = make_paths(folder)
        rules = os.path.join(folder, '.gitignore')
        for _ in range(count):
            lines = [''.join(random.choice(PIECES) for _ in range(random.randint(1, 6)))
                     for _ in range(random.randint(1, 4))]
            text = '\n'.join(line for line in lines if not re.search(r'[^/]\*\*+/|\\/', line)) + random.choice(['', '\n'])
            with open(rules, 'w', newline='') as out:
                out.write(text)
            asked = subprocess.run(['git', '-C', folder, 'check-ignore', '--no-index', '-z', '--stdin'], env=env,
                                   input='\0'.join(paths) + '\0', capture_output=True, text=True)
            of_git = {path for path in asked.stdout.split('\0') if path}
            answer = subprocess.run([program, rules], capture_output=True, text=True, check=True, input=''.join(
                ('d ' if path in folders else 'f ') + path + '\n' for path in paths)).stdout.split()
            direct = {path for path, bit in zip(paths, answer) if bit == '1'}
            ours = {path for path in paths
                    if any('/'.join(path.split('/')[:k]) in direct for k in range(1, path.count('/') + 2))}
            if ours != of_git:
                print(f'{text!r}: only git ignores {sorted(of_git - ours)}, only dtrun {sorted(ours - of_git)}')
                return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
