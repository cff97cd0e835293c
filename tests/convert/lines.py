#!/usr/bin/env python3
"""Command lines as projects publish them (lines/*.txt), each with the fields of its recipe or the reason of its refusal.

A case: "> FORMAT: LINE", further lines of the script as "| LINE", then either every field of the recipe as "FIELD: VALUE", or
"! TEXT", a part of the message. Files that lines name are made in FILES.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FILES = {
    'hostfile': 'worker-1 slots=4\nworker-2 slots=4\n# a comment\nworker-3 slots=4\n',
    'uneven': 'a slots=4\nb slots=2\n',
    'hosts': 'n1:2\nn2:2\n',
    'one.yaml': 'compute_environment: LOCAL_MACHINE\nnum_machines: 1\nnum_processes: 4\ngpu_ids: all\n',
    'two.yaml': 'num_machines: 2\nnum_processes: 16\nmachine_rank: 0\n',
    'gpt.py': 'max_iters = 10\nlr_decay_iters = 10\nn_layer = 2\n',
    'mm.py': 'model = dict(type="ResNet")\nmax_epochs = 10\n',
}


def cases(path):
    case, found = None, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith('> '):
            kind, _, text = line[2:].partition(': ')
            case = {'place': f'{path.name}:{number}', 'kind': kind, 'text': [text], 'wanted': {}, 'refused': []}
            found.append(case)
        elif line.startswith('| '):
            case['text'].append(line[2:])
        elif line.startswith('! '):
            case['refused'].append(line[2:])
        elif line and not line.startswith('#'):
            key, _, value = line.partition(': ')
            case['wanted'][key] = value
    return found


def fields(recipe):
    found, group = {}, ''
    for line in recipe.splitlines():
        match = re.match(r'( *)([\w.]+):(?: (.*))?$', line)
        if not match or line.startswith('#'):
            continue
        name = (group + '.' if match[1] else '') + match[2]
        value = re.sub(r' +# .*$', '', match[3] or '') if not (match[3] or '').startswith('"') else match[3]
        if value.startswith('"'):
            value = json.JSONDecoder().raw_decode(value)[0]
        if value == '' or value.startswith('#'):
            group = match[2]
        else:
            found[name] = value
    return found


def main():
    dtrun = pathlib.Path(os.environ['DTRUN_BIN']).resolve() / 'dtrun'
    here = pathlib.Path(__file__).resolve().parent
    bad = count = 0
    with tempfile.TemporaryDirectory() as work:
        env = dict(os.environ, HOME=work, XDG_STATE_HOME=work, XDG_CACHE_HOME=work)
        for name in ('HF_HOME', 'CONFIG', 'LR'):
            env.pop(name, None)
        for name, text in FILES.items():
            (pathlib.Path(work) / name).write_text(text)
        for case in (case for path in sorted(here.glob('lines/*.txt')) for case in cases(path)):
            count += 1
            script = pathlib.Path(work) / 'job.sh'
            script.write_text('\n'.join(case['text']) + '\n')
            got = subprocess.run([dtrun, 'import', case['kind'], 'job.sh'], cwd=work, env=env, capture_output=True, text=True)
            if case['refused']:
                good = got.returncode == 2 and not got.stdout and all(text in got.stderr for text in case['refused'])
            else:
                good = got.returncode == 0 and fields(got.stdout) == case['wanted']
            if not good or not (case['refused'] or case['wanted']):
                bad += 1
                print(f"{case['place']}: {case['text'][0]}\n  {got.returncode} {fields(got.stdout)} {got.stderr.strip()}")
    print(f'{count} command lines, {bad} wrong')
    return bad > 0 or count < 150


sys.exit(main())
