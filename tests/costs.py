#!/usr/bin/env python3
"""costs.py: prints what each test costs, in processor seconds and elapsed seconds, the most expensive first.

    tests/costs.py [--build DIR] [--jobs N] [--write] [REGEX]

Processor seconds are those of the test and of everything that it started, detached or not: on a busy machine they stay
the same, unlike elapsed seconds. --write: the measured tests of 10 seconds or more are written to tests/longest, by
which ctest starts these first (CMakeLists.txt); lines of other tests stay.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent
LONGEST_SECONDS = 10.0
PR_SET_CHILD_SUBREAPER = 36


def tests_of(build, pattern):
    shown = subprocess.run(['ctest', '--show-only=json-v1'], cwd=build, capture_output=True, check=True)
    for test in json.loads(shown.stdout)['tests']:
        if 'command' in test and re.search(pattern, test['name']):
            properties = {item['name']: item['value'] for item in test['properties']}
            yield test['name'], test['command'], properties


def measure(test):
    """Returns (name, exit status, seconds, processor seconds) of one test, from a process that inherits its orphans."""
    name, command, properties = test
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        environment = dict(word.split('=', 1) for word in properties.get('ENVIRONMENT', []))
        begun = time.monotonic()
        null = open(os.devnull, 'r+b')
        test = subprocess.Popen(command, cwd=properties['WORKING_DIRECTORY'], env={**os.environ, **environment},
                                stdin=null, stdout=null, stderr=null).pid
        pid = status = None
        while pid != test:  # and its orphans are reaped as init does it
            pid, status = os.waitpid(-1, 0)
        seconds = time.monotonic() - begun
        time.sleep(0.2)  # processes that were asked to end do end
        try:
            while os.waitpid(-1, os.WNOHANG)[0] > 0:
                pass
        except ChildProcessError:
            pass
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(writable, json.dumps([name, os.waitstatus_to_exitcode(status), seconds, used.ru_utime + used.ru_stime]).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return json.loads(told)


def write_longest(path, rows):
    """Lines 'NAME SECONDS PROCESSOR_SECONDS', the longest first, below the file's comment."""
    lines = path.read_text().splitlines()
    comment = [line for line in lines if line.startswith('#')]
    kept = {name: (int(seconds), int(processor))
            for name, seconds, processor in (line.split() for line in lines if line and not line.startswith('#'))}
    for name, status, seconds, processor in rows:
        kept.pop(name, None)
        if seconds >= LONGEST_SECONDS:
            kept[name] = round(seconds), round(processor)
    ordered = sorted(kept.items(), key=lambda item: -item[1][0])
    path.write_text('\n'.join(comment + [f'{name} {costs[0]} {costs[1]}' for name, costs in ordered]) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=TESTS.parent / 'build/test')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--write', action='store_true')
    parser.add_argument('pattern', nargs='?', default='', metavar='REGEX')
    options = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(measure, test) for test in tests_of(options.build, options.pattern)]
        rows = []
        for done in concurrent.futures.as_completed(waiting):
            rows.append(done.result())
            print(*rows[-1], file=sys.stderr)
    rows.sort(key=lambda row: -row[3])
    for name, status, seconds, processor in rows:
        print(f'{processor:8.1f} {seconds:8.1f}  {name}{"" if status == 0 else f"  (exit {status})"}')
    print(f'{sum(row[3] for row in rows):8.1f} {sum(row[2] for row in rows):8.1f}  {len(rows)} tests')
    if options.write:
        write_longest(TESTS / 'longest', rows)


if __name__ == '__main__':
    sys.exit(main())
