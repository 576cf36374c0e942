#!/usr/bin/env python3
"""Fails on a float tolerance in a test. Bits are compared as integers; where a comparison with
another reference needs a tolerance, the line or the one above it says which:
`// tolerance: <reference>`. One such comment covers the unbroken run of lines below it."""
import pathlib
import re
import sys

TOLERANCE = re.compile(
    r"\b(EXPECT|ASSERT)_(NEAR|FLOAT_EQ|DOUBLE_EQ)\b"
    r"|\b(NanSensitive)?(Float|Double)(Eq|Near)\s*\("
    r"|\bf?abs[fl]?\s*\(.*\)\s*<"
    r"|\b(EXPECT|ASSERT)_L[TE]\s*\(\s*(std::)?f?abs[fl]?\s*\(")
WAIVER = re.compile(r"//\s*tolerance:\s*\w{2,}")
NAMES = ("*_test.cc", "*_test.cu", "*_test.h", "*testing*.h")


def check(root):
    root = pathlib.Path(root)
    files = sorted({p for folder in ("src", "bench", "tools") for n in NAMES
                    for p in (root / folder).rglob(n)})
    problems = []
    for path in files:
        covered = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            tolerant = TOLERANCE.search(line)
            waived = WAIVER.search(line) or covered
            if tolerant and not waived:
                problems.append(f"{path.relative_to(root)}:{number}: float tolerance; compare bits, "
                                "or name the reference: // tolerance: <reference>")
            covered = bool(WAIVER.search(line) or (covered and tolerant))
    if not files:
        problems.append(f"{root}: no test file found, so nothing was checked")
    return problems, f"{len(files)} test files"


if __name__ == "__main__":
    import report
    sys.exit(report.show("bit tests", *check(pathlib.Path(__file__).resolve().parent.parent)))
