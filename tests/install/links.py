#!/usr/bin/env python3
"""Checks the links of Markdown files: each relative link names a file or folder that is there, and its #anchor a heading.

  links.py FOLDER [PAGE...]   the pages, or all *.md below FOLDER; no link may leave FOLDER
"""
import os
import re
import sys


def without_code(text):
    text = re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda code: "" if "](" in code.group() else code.group(), text)


def anchors(path):
    """Returns the names that GitHub gives to the headings of a page."""
    found = set()
    with open(path, encoding="utf-8") as page:
        for heading in re.findall(r"^#+ +(.*?) *#*$", without_code(page.read()), flags=re.M):
            name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            copies = sum(1 for other in found if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
            found.add(f"{name}-{copies}" if copies else name)
    return found


def problem(folder, page, link):
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if os.path.relpath(target, folder).startswith(".."):
        return "is outside of the folder"
    if not os.path.exists(target):
        return "does not exist"
    if anchor and anchor not in anchors(target):
        return "has no such heading"
    return None


def main(folder, pages):
    folder = os.path.abspath(folder)
    pages = [os.path.join(folder, page) for page in pages] or [
        os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".md")]
    count, dead = 0, []
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = without_code(file.read())
        for link in re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"^\[[^]]+\]:\s+<?(\S+?)>?$", text, flags=re.M):
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            count += 1
            why = problem(folder, page, link)
            if why:
                dead.append(f"{os.path.relpath(page, folder)}: link '{link}': the target {why}")
    print("\n".join(dead) if dead else f"{count} links of {len(pages)} pages are good")
    if count < 30:
        sys.exit(f"only {count} links were found: the pages are not read")
    sys.exit(1 if dead else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
