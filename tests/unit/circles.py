#!/usr/bin/env python3
"""Checks that there are no circles of files: in the folders named here no C file calls another that calls it back,
directly or indirectly, and no header includes another that includes it. A lower file calls a higher one through a
struct of functions (runner/supervisor/connection/node_link.h).

    tests/unit/circles.py [FOLDER...]     # prints files, arrows and circles of each; exits with 1 if there is a circle
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GUARDED = ["base", "recipes", "store", "engine", "runner", "web"]
DEFINED = re.compile(r"^(?!static\b)[a-z_][\w \t*]*?\**(dt_\w+)\([^;{]*\)\s*\{", re.M)
INCLUDED = re.compile(r'^#include "([^"]+)"', re.M)
COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def sources(folder):
    for place, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in names:
            if name.endswith((".c", ".h")):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, ROOT), file.read()


def arrows_of(files):
    """Returns file -> files: for a .c the .c files whose functions it names, for a .h the .h files that it includes."""
    code = {path: COMMENT.sub(" ", text) for path, text in files.items() if path.endswith(".c")}
    owner = {name: path for path, text in code.items() for name in DEFINED.findall(text)}
    arrows = {path: set() for path in files}
    for path, text in code.items():
        arrows[path] = {owner[name] for name in re.findall(r"\bdt_\w+", text) if name in owner}
    for path, text in files.items():
        if path.endswith(".h"):
            arrows[path] = {name for name in INCLUDED.findall(text) if name in files}
    return {path: to - {path} for path, to in arrows.items()}


def circles_of(arrows):
    """Returns the sets of files each of which reaches all others (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(path):
        index[path] = low[path] = len(index)
        stack.append(path)
        for to in arrows[path]:
            if to not in index:
                visit(to)
            if to in stack:
                low[path] = min(low[path], low[to])
        if low[path] == index[path]:
            at = stack.index(path)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for path in sorted(arrows):
        if path not in index:
            visit(path)
    return found


def main():
    failed = False
    for folder in sys.argv[1:] or GUARDED:
        arrows = arrows_of(dict(sources(folder)))
        circles = circles_of(arrows)
        print(f"{folder}: {len(arrows)} files, {sum(map(len, arrows.values()))} arrows,"
              f" {len(circles)} circles")
        for circle in circles:
            failed = True
            for path in circle:
                print(f"  {path} -> {', '.join(sorted(arrows[path] & set(circle)))}")
    return 1 if failed else 0


sys.exit(main())
