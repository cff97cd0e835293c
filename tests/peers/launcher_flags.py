#!/usr/bin/env python3
"""Compares the tables of launchers' flags with the real programs: every option of their help must be in the table, with
the same number of values. On demand; launchers that are not installed are skipped and reported.

    DTRUN_BIN=build/test/bin tests/peers/launcher_flags.py [BIN]

BIN: a folder with torchrun, accelerate and deepspeed. mpirun.openmpi with its manual, mpiexec.hydra, srun and sbatch
are searched in PATH.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DTRUN = pathlib.Path(os.environ['DTRUN_BIN']).resolve() / 'dtrun'
if len(sys.argv) > 1:
    os.environ['PATH'] = sys.argv[1] + ':' + os.environ['PATH']


def run(*words, **more):
    got = subprocess.run(words, capture_output=True, text=True, timeout=120, **more)
    return got.stdout + got.stderr


def argparse_options(text):
    """Returns {option: number of values} of a help that argparse prints."""
    found = {}
    for line in text.splitlines():
        if re.match(r'  -', line):
            for part in re.split(r', (?=-)', re.split(r'\s{3,}|  (?=[A-Z][a-z])', line.strip())[0]):
                name, _, value = part.partition(' ')
                found[name] = 1 if value and not value[0].islower() else 0
    return found


def slurm_options(text):
    found = {}
    for line in text.splitlines():
        match = re.match(r'\s+(?:(-\w), )?(--[a-z0-9-]+)(\[?=)?', line)
        if match:
            for name in (match[1], match[2]):
                if name and name not in found:
                    found[name] = {None: 0, '=': 1, '[=': 'maybe'}[match[3]]
    return found


def hydra_options(text):
    found = {}
    for line in text.splitlines():
        match = re.match(r'    -([\w/-]+)((?: \{[^}]*\})*)  ', line)
        if match:
            for name in match[1].split('/'):
                found['-' + name.lstrip('-')] = match[2].count('{') or None  # hydra names no values of its own options
    return found


def openmpi_options():
    found = {}
    text = run('man', '-P', 'cat', 'orterun', env=dict(os.environ, MANWIDTH='200'))
    for line in text.splitlines():
        match = re.match(r'       (--?[a-z][\w-]*(?:, --?[\w-]+)*)((?: <[^>]*>)*)\s*$', line)
        if match:
            for name in match[1].split(', '):
                found['-' + name.lstrip('-')] = match[2].count('<')
    return found


# Options of help that are not the launcher's own, or that a table leaves out on purpose, with the reason.
ALLOWED = {
    'sbatch': {'--x11': 'a window'},
    'srun': {'--x11': 'a window'},
    'accelerate': {},
    'mpirun': {'-server-wait-time': 'of a name server', '-wait-for-server': 'of a name server', '-w': 'of a name server',
               '-singleton': 'internal', '-report-uri': 'prints', '-report-pid': 'prints', '-uri': 'prints', '-cf': 'prints',
               '-debug': 'a debugger', '-debugger': 'a debugger', '-tv': 'a debugger', '-debug-devel': 'a debugger',
               '-debug-daemons-file': 'of a debugger', '-index-argv-by-rank': 'prints', '-cartofile': 'a map',
               '-slot-list': 'of cores', '-output-directory': 'prints', '-merge-stderr-to-stdout': 'prints',
               '-nperswitch': 'a map', '-np': ''},
}
CASES = [
    ('torchrun', lambda: argparse_options(run('torchrun', '--help')), ['torchrun'], ['t.py']),
    ('accelerate', lambda: argparse_options(run('accelerate', 'launch', '--help')), ['accelerate', 'launch'], ['t.py']),
    ('deepspeed', lambda: argparse_options(run('deepspeed', '--help')), ['deepspeed'], ['t.py']),
    ('srun', lambda: slurm_options(run('srun', '--help')), ['srun', '-N1'], ['python', 't.py']),
    ('sbatch', lambda: slurm_options(run('sbatch', '--help')), ['sbatch', '-N1'], ['job.sh']),
    ('mpiexec.hydra', lambda: hydra_options(run('mpiexec.hydra', '-help')), ['mpirun', '-np', '2'], ['./a']),
    ('mpirun.openmpi', openmpi_options, ['mpirun', '-np', '2'], ['./a']),
]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, 'job.sh').write_text('#!/bin/sh\npython t.py\n')
        pathlib.Path(work, 'slurm.conf').write_text('ClusterName=x\nSlurmctldHost=localhost\n')
        os.environ.setdefault('SLURM_CONF', work + '/slurm.conf')
        for program, read, before, after in CASES:
            if not shutil.which(program):
                print(f'{program}: skipped, it is not installed')
                continue
            options = read()
            allowed = ALLOWED.get(before[0], {})
            missing, different = [], []
            for name, values in sorted(options.items()):
                if name in allowed:
                    continue
                # Returns the number of words that an option takes: the program found after "OPTION 7 7" shows it.
                taken = probe(work, before + [name], after)
                if taken == 'unknown':
                    missing.append(name)
                elif taken is not None and values is not None and taken != (0 if values == 'maybe' else values):
                    different.append(f'{name} takes {values}, table {taken}')
            print(f'{program}: {len(options)} options, missing: {missing or "none"}, different: {different or "none"}')
            bad += len(missing) + len(different) + (len(options) < 10)
    return bad > 0


def probe(work, before, after):
    """Returns the number of words that the table has for the option; None: it is refused for a reason; 'unknown'."""
    for values in (0, 1, 2):
        got = run(DTRUN, 'import', 'command', '--', *before, *['7'] * values, *after, cwd=work)
        if 'unknown flag' in got:
            return 'unknown'
        if re.search(r': (?:it|the|dtrun|\'|a |several|name|give)', got.split('\n')[0]) and 'import:' in got.split('\n')[0] and \
                'is missing' not in got and 'are missing' not in got:
            return None
        found = re.search(r'^command: "?(.*?)"?(?: +#|$)', got, re.M)
        wanted = {'accelerate': f'{before[-1]}{" 7" * values} t.py', 'sbatch': 'python t.py',
                  'srun': 'python t.py'}.get(before[0], after[-1])
        if found and (re.search(re.escape(wanted) + '$', found[1]) if before[0] == 'accelerate' else
                      re.sub(r'^python3? (?=t.py$)', '' if len(after) == 1 and after[0] == 't.py' else r'\g<0>',
                             found[1].removesuffix(' --local_rank={local_rank}')) == wanted):
            return values
    return None


sys.exit(main())
