#!/usr/bin/env python3
"""Prints what a test run did not run, then one line of totals. Fails if nothing ran."""
import sys

import junit


def main():
    results, reasons = junit.read(sys.argv[1]), junit.skip_reasons(sys.argv[1])
    by = {kind: sorted(n for n, r in results.items() if r == kind)
          for kind in ("passed", "failed", "skipped")}
    for kind in ("skipped", "failed"):
        for name in by[kind]:
            print(f"{kind}: {name}" + (f": {reasons[name]}" if reasons.get(name) else ""))
    print(f"{len(by['passed'])} passed, {len(by['failed'])} failed, {len(by['skipped'])} skipped")
    return 0 if by["passed"] or by["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
