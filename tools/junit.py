"""Reads the junit.xml that ctest writes."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ET


def _cases(path):
    path = pathlib.Path(path)
    if not path.is_file():
        sys.exit(f"{path}: no such file; run `make test` first")
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError as error:
        sys.exit(f"{path}: not a junit.xml ({error}); run `make test` again")
    return root.iter("testcase")


def read(path):
    """{test name: "passed" | "failed" | "skipped"}"""
    results = {}
    for case in _cases(path):
        if case.find("failure") is not None or case.get("status") == "fail":
            result = "failed"
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            result = "skipped"
        else:
            result = "passed"
        # Two programs may hold a test of one name: a failure of either counts.
        if results.get(case.get("name")) != "failed":
            results[case.get("name")] = result
    return results


def skip_reasons(path):
    """{test name: what a skipped test said about it}"""
    reasons = {}
    for case in _cases(path):
        if case.find("skipped") is None:
            continue
        output = case.findtext("system-out") or ""
        if match := re.search(r": Skipped\n(.*?)\n*\[  SKIPPED", output, re.DOTALL):
            reasons[case.get("name")] = " ".join(match[1].split())
        elif output.strip() and "[  SKIPPED" not in output:  # no GoogleTest case
            reasons[case.get("name")] = output.strip().splitlines()[-1]
    return reasons
