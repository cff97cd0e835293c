#!/usr/bin/env python3
"""A type name means one thing: no dt_ type is defined in two files of the programs."""
import re
import subprocess
import sys
from collections import defaultdict

FOLDERS = ['base', 'recipes', 'engine', 'store', 'web', 'runner']
DEFINITION = re.compile(r'\b(?:struct|enum|union)\s+(dt_\w+)\s*(?::\s*\w+\s*)?\{'
                        r'|^\}\s*(dt_\w+);'
                        r'|\btypedef\s[^;{}()]*?\b(dt_\w+)\s*;'
                        r'|\btypedef\s[^;{}()]*?\(\s*\*\s*(dt_\w+)\s*\)', re.M)
FORWARD = re.compile(r'\btypedef\s+(?:struct|enum|union)\s+(\w+)\s+\1\s*;')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)


def defined(path):
    with open(path, encoding='utf-8') as file:
        text = FORWARD.sub('', COMMENT.sub('', file.read()))
    return {name for match in DEFINITION.finditer(text) for name in match.groups() if name}


def main():
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'] + FOLDERS, stdout=subprocess.PIPE, check=True)
    where = defaultdict(list)
    for path in listed.stdout.decode().split():
        if path.endswith(('.c', '.h', '.cc', '.cu', '.cuh')):
            for name in defined(path):
                where[name].append(path)
    twice = {name: paths for name, paths in sorted(where.items()) if len(paths) > 1}
    for name, paths in twice.items():
        print(f'{name} is defined in {" and in ".join(paths)}: one name, one meaning')
    if not where:
        print('no type was found at all')
    print(f'{len(where)} types')
    return 1 if twice or not where else 0


sys.exit(main())
