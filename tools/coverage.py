#!/usr/bin/env python3
"""Line coverage of src/samebits after a test run in BUILD_DIR, by file and folder, from gcov.

  tools/coverage.py BUILD_DIR [--min PERCENT FILE…]

With files, only those are shown, with the lines that did not run; exit 1 when one is below."""
import argparse
import collections
import json
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--min", type=float, default=0)
    parser.add_argument("files", nargs="*")
    args = parser.parse_intermixed_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    build = args.build.resolve()
    data = [str(p) for p in build.rglob("*.gcda")]
    if not data:
        sys.exit(f"{build}: no coverage data; run `make coverage`")
    hit = collections.defaultdict(dict)  # file → line → ran
    for start in range(0, len(data), 50):
        command = ["gcov", "--json-format", "--stdout", *data[start:start + 50]]
        out = subprocess.run(command, cwd=build, check=True, capture_output=True, text=True).stdout
        for text in filter(None, out.splitlines()):
            for entry in json.loads(text)["files"]:
                path = (build / entry["file"]).resolve()
                if not path.is_relative_to(root / "src") or path.stem.endswith("_test"):
                    continue
                lines = hit[str(path.relative_to(root / "src" / "samebits"))]
                for line in entry["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, False) or line["count"] > 0
    if args.files:
        return show_files(hit, args.files, args.min)
    folders = collections.Counter(), collections.Counter()
    for name in sorted(hit):
        ran, total = sum(hit[name].values()), len(hit[name])
        print(f"{100 * ran / max(total, 1):6.1f} %  {total:5d} lines  {name}")
        for key in (name.split("/")[0] + "/", "all"):
            folders[0][key] += ran
            folders[1][key] += total
    print()
    for key, total in folders[1].items():
        print(f"{100 * folders[0][key] / max(total, 1):6.1f} %  {total:5d} lines  {key}")
    return 0


def show_files(hit, names, least):
    low = 0
    for name in names:
        lines = hit.get(name, {})
        percent = 100 * sum(lines.values()) / max(len(lines), 1)
        low += percent < least
        missed = " ".join(str(n) for n in sorted(lines) if not lines[n])
        print(f"{percent:6.1f} %  {len(lines):5d} lines  {name}"
              f"{f'; not run: {missed}' if missed else ''}")
    if low:
        print(f"{low} files are below {least:g} %")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
