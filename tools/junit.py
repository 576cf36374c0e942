"""Reads the junit.xml that ctest writes: {test name: "passed" | "failed" | "skipped"}."""
import pathlib
import sys
import xml.etree.ElementTree as ET


def read(path):
    path = pathlib.Path(path)
    if not path.is_file():
        sys.exit(f"{path}: no such file; run `make test` first")
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError as error:
        sys.exit(f"{path}: not a junit.xml ({error}); run `make test` again")
    results = {}
    for case in root.iter("testcase"):
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
