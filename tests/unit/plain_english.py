#!/usr/bin/env python3
"""Messages, help texts and documents are plain English: they have none of the words and turns of WORDS.

plain_english.py [PATH...]              these files; else all that git knows
plain_english.py --comments [PATH...]   comments as well; the gate does not check them
plain_english.py --strings PATH...      print every checked string of these files, to read them in one go

An exception is a line of plain_english.txt: PATH, a tab, and the words around the match. One that matches nothing
fails the test.
"""
import re
import subprocess
import sys

WORDS = re.compile(r"""
    \b(?:told|foretold|anew|kin|whoever|by\ chance|in\ small|goes\ on|go\ on|meant)\b
  | \b(?:lets?|letting)\ go\b
  | \bbeside\b
  | \b(?:is|are|was|were)\ no\b(?!\ (?:longer|more))
  | \bas\ \w+\ has\ it\b
  | (?:^|[.:;!?]\ +|\n\ *\n\ *|^\|\ *|\|\ )Of\ (?!course)
""", re.X | re.M)

EXCEPTIONS = 'tests/unit/plain_english.txt'
STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:(?:\s|/\*.*?\*/)*(?:PRI[a-zA-Z0-9]+\s*)?"(?:[^"\\\n]|\\.)*")*', re.S)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
CODE = re.compile(r'```.*?```|~~~.*?~~~|`[^`\n]*`', re.S)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
ESCAPES = {'n': '\n', 't': '\t'}


def blank(match):
    """Returns the text as blanks, so that lines and columns stay."""
    return re.sub(r'[^\n]', ' ', match.group())


def line_of(text, at):
    return text.count('\n', 0, at) + 1


def strings_of(text):
    """Yields (line, words) of each C literal; adjacent ones are one."""
    bare = COMMENT.sub(lambda m: m.group() if '"' in m.group().split('/*')[0] else blank(m), text)
    bare = re.sub(r'^\s*#\s*include.*$', blank, bare, flags=re.M)
    for match in STRINGS.finditer(bare):
        words = ''.join(LITERAL.findall(match.group()))
        words = re.sub(r'\\(.)', lambda m: ESCAPES.get(m.group(1), m.group(1)), words)
        if words.count(' ') >= 2 and not re.match(r'\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA)\b', words):
            yield line_of(text, match.start()), words


def comments_of(text):
    for match in COMMENT.finditer(text):
        yield line_of(text, match.start()), re.sub(r'^\s*/?\*+/? ?|\*/$|^//\s?', '', match.group(), flags=re.M)


def parts_of(path, comments):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if path.endswith('.md'):
        yield 1, CODE.sub(blank, text)
        return
    yield from strings_of(text)
    if comments:
        yield from comments_of(text)


def files():
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], stdout=subprocess.PIPE, check=True)
    for path in sorted(set(listed.stdout.decode().split('\n'))):
        folder = path.split('/')[0]
        if path.endswith('.md') and folder != 'tests' or path == 'tests/README.md':
            yield path
        elif folder in ('base', 'recipes', 'engine', 'store', 'web', 'runner') and path.endswith(
                ('.c', '.h', '.inc', '.cu', '.cuh', '.cc')):
            yield path


def exceptions():
    with open(EXCEPTIONS, encoding='utf-8') as file:
        lines = [line.rstrip('\n').split('\t', 1) for line in file if line.strip() and line[0] != '#']
    return {tuple(line): False for line in lines}


def main():
    arguments = sys.argv[1:]
    options = {word for word in arguments if word.startswith('--')}
    paths = [word for word in arguments if not word.startswith('--')]
    allowed = exceptions()
    found = 0
    for path in paths or files():
        try:
            parts = list(parts_of(path, '--comments' in options))
        except FileNotFoundError:
            continue  # removed, and not committed yet
        for line, words in parts:
            if '--strings' in options:
                print(f'{path}:{line}: {words!r}')
                continue
            for match in WORDS.finditer(words):
                near = ' '.join(words[max(0, match.start() - 40):match.end() + 40].split())
                known = [entry for entry in allowed if entry[0] == path and entry[1] in ' '.join(words.split())]
                for entry in known:
                    allowed[entry] = True
                if not any(match.group().strip(' .:;|\n') in entry[1] for entry in known):
                    print(f'{path}:{line + words.count(chr(10), 0, match.start())}: '
                          f'"{match.group().strip()}": ... {near} ...')
                    found += 1
    if not paths:
        for entry in [entry for entry, used in allowed.items() if not used]:
            print(f'{EXCEPTIONS}: nothing matches "{entry[0]}: {entry[1]}"')
            found += 1
    if found:
        print(f'{found} places: say it in plain English, or add an exception to {EXCEPTIONS}')
    return 1 if found else 0


sys.exit(main())
