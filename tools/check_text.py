#!/usr/bin/env python3
"""Checks every tracked file: UTF-8, LF, final newline, no trailing blanks, no paths of one machine,
no notes to self, no large file; and that each source file says on top what it is."""
import pathlib
import re
import subprocess
import sys

MAX_BYTES = 500_000
MAX_LINES = 600
BINARY = {".bin", ".png", ".gz", ".sbt", ".safetensors", ".golden"}
CORPUS = "fuzz/corpus/"  # inputs of readers, broken on purpose
SOURCE = {".h", ".cc", ".cu", ".cuh", ".hip", ".py"}
HEADERS = {".h", ".cuh"}
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|farm|home/\w+)/")
NOTE = re.compile(r"\b(TODO\b|FIXME\b|issue #"
                  r"|(this|that|last|previous|earlier|next|later|another) session\b)", re.IGNORECASE)
# Files that name these words because they look for them.
ALLOWED = {"tools/check_text.py", "tools/test_checks.py"}


def problems_of(name, data):
    suffix = pathlib.PurePath(name).suffix
    if len(data) > MAX_BYTES:
        yield 0, f"{len(data)} bytes; the limit for a tracked file is {MAX_BYTES}"
    if suffix in BINARY or name.startswith(CORPUS):
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield 0, f"not UTF-8 at byte {error.start}"
        return
    if text and not text.endswith("\n"):
        yield 0, "no newline at the end"
    if "\r" in text:
        yield 0, "has carriage returns"
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "trailing blanks"
        if suffix in SOURCE and "\t" in line:
            yield number, "a tab"
        if name not in ALLOWED:
            if match := MACHINE_PATH.search(line):
                yield number, f"a path of one machine: {match[0]}"
            if match := NOTE.search(line):
                yield number, f"'{match[0]}': say what is so, or do it"
    if suffix in SOURCE and len(lines) - 1 > MAX_LINES:
        yield 0, f"{len(lines) - 1} lines; split it, the limit is {MAX_LINES}"
    if name.startswith("src/") and suffix in SOURCE - {".py"}:
        if not lines[0].startswith("//") and \
                (suffix in HEADERS or not lines[0].startswith('#include "samebits/')):
            yield 1, "begin with a // comment that says what this file is for"


def tracked(root):
    command = ["git", "-C", str(root), "ls-files", "-z"]
    out = subprocess.run(command, check=True, capture_output=True)
    return [n for n in out.stdout.decode().split("\0") if n]


def check(root):
    root = pathlib.Path(root)
    problems, scanned = [], 0
    for name in tracked(root):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue  # deleted in the working tree
        scanned += 1
        for line, what in problems_of(name, path.read_bytes()):
            problems.append(f"{name}{f':{line}' if line else ''}: {what}")
    if scanned == 0:
        problems.append(f"{root}: no tracked file found, so nothing was checked")
    return problems, f"{scanned} files"


if __name__ == "__main__":
    import report
    sys.exit(report.show("text", *check(pathlib.Path(__file__).resolve().parent.parent)))
