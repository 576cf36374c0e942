#!/usr/bin/env python3
"""Fails on an include that points back: a folder of src/samebits may include itself and the folders
before it in LAYERS, nothing else."""
import pathlib
import re
import sys

LAYERS = ["base", "arith", "model", "contract", "backend", "ops", "chain", "dist", "train", "gate",
          "cli"]
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".hip", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def check(root):
    source = pathlib.Path(root) / "src" / "samebits"
    problems, scanned = [], 0
    for path in sorted(p for p in source.rglob("*") if p.suffix in SUFFIXES):
        scanned += 1
        name = path.relative_to(root)
        folder = path.relative_to(source).parts[0]
        if folder not in LAYERS:
            problems.append(f"{name}: '{folder}' is no known layer; LAYERS in "
                            "tools/check_layers.py lists them in order")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            parts = match[1].split("/")
            if parts[0] != "samebits" or len(parts) < 3 or ".." in parts:
                problems.append(f'{name}:{number}: write "samebits/LAYER/…", not "{match[1]}"')
            elif parts[1] not in LAYERS:
                problems.append(f"{name}:{number}: includes the unknown layer '{parts[1]}'")
            elif LAYERS.index(parts[1]) > LAYERS.index(folder):
                problems.append(f"{name}:{number}: {folder}/ must not know {parts[1]}/, which "
                                "comes after it; move the code down or the caller up")
    if scanned == 0:
        problems.append(f"{source}: no source file found, so nothing was checked")
    return problems, f"{scanned} files"


if __name__ == "__main__":
    import report
    sys.exit(report.show("layers", *check(pathlib.Path(__file__).resolve().parent.parent)))
