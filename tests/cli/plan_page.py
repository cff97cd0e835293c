#!/usr/bin/env python3
"""Checks that every block of a page that begins with '$ dtrun ...' shows the output of this command.

    plan_page.py DTRUN PAGE [--write]

Exits with 1 if a block differs, and prints both; --write puts the true output into the page.
"""

import pathlib
import re
import shlex
import subprocess
import sys


def main():
    dtrun, page = sys.argv[1], pathlib.Path(sys.argv[2])
    write = sys.argv[3:] == ["--write"]
    count = differ = 0

    def block(match):
        nonlocal count, differ
        command = match[1].replace("\\\n", " ")
        done = subprocess.run([dtrun, *shlex.split(command)], capture_output=True, text=True, check=True)
        count += 1
        if done.stdout.rstrip("\n") != match[2].rstrip("\n"):
            differ += 1
            print(f"dtrun {command}\n--- shown\n{match[2]}\n--- printed\n{done.stdout}")
        return f"```\n$ dtrun {match[1]}\n{done.stdout.rstrip()}\n```\n"

    text = page.read_text(encoding="utf-8")
    new = re.sub(r"```\n\$ dtrun ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)```\n", block, text, flags=re.S)
    if write:
        page.write_text(new, encoding="utf-8")
    elif count == 0 or differ:
        sys.exit(f"{differ} of {count} blocks differ")


main()
