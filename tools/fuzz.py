#!/usr/bin/env python3
"""Runs the fuzz harnesses of BUILD_DIR one after the other and prints a table.

  tools/fuzz.py BUILD_DIR [--seconds N] [--jobs N] [HARNESS…]

What libFuzzer finds on the way is kept in BUILD_DIR/corpus/HARNESS and is where the next run goes
on; an input that breaks something is BUILD_DIR/crash/HARNESS-…, and the log says why. Exit 1 when a
harness failed, has no seeds, or ran nothing."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS, DICTS = ROOT / "fuzz" / "corpus", ROOT / "fuzz" / "dict"
# Bounds of one input: memory in MB, seconds, bytes.
LIMITS = ["-rss_limit_mb=512", "-malloc_limit_mb=256", "-timeout=5", "-max_len=8192"]
JSON = {"safetensors", "config", "token_rows", "score_file", "trace_file"}


def dictionary(build, name):
    """The words of the harness, and those of JSON where the format holds any."""
    words = (DICTS / f"{name}.dict").read_text()
    if name in JSON:
        words += (DICTS / "json.dict").read_text()
    path = build / f"{name}.dict"
    path.write_text(words)
    return path


def run(build, name, seconds):
    seeds, work, crash = SEEDS / name, build / "corpus" / name, build / "crash"
    if not seeds.is_dir() or not any(seeds.iterdir()):
        return name, "no seeds", {}
    for folder in (work, crash):
        folder.mkdir(parents=True, exist_ok=True)
    command = [build / "fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", *LIMITS,
               f"-dict={dictionary(build, name)}", f"-artifact_prefix={crash}/{name}-",
               "-print_final_stats=1", work, seeds]
    # Freed memory is kept back for a while to catch its use; it counts against the limit.
    env = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=32:detect_leaks=1")
    log = build / f"{name}.log"
    with log.open("w") as out:
        status = subprocess.run([str(c) for c in command], stdout=out, stderr=out, env=env).returncode
    text = log.read_text(errors="replace")

    def last(pattern):
        found = re.findall(pattern, text)
        return int(found[-1]) if found else 0

    numbers = {"execs": last(r"stat::number_of_executed_units:\s+(\d+)"),
               "rate": last(r"stat::average_exec_per_sec:\s+(\d+)"),
               "edges": last(r"\bcov: (\d+)"), "corpus": last(r"\bcorp: (\d+)/")}
    if status != 0:
        artifact = re.findall(r"Test unit written to (\S+)", text)
        return name, f"FAILED: {artifact[0] if artifact else log}", numbers
    return name, "clean" if numbers["execs"] else "ran nothing", numbers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("harness", nargs="*")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_intermixed_args()
    build = args.build.resolve()
    names = args.harness or sorted(p.name.removeprefix("fuzz_")
                                   for p in (build / "fuzz").glob("fuzz_*") if p.is_file())
    if not names:
        sys.exit(f"{build}: no harness; build it first: make fuzz")
    print(f"{'harness':12s} {'execs':>10s} {'exec/s':>8s} {'edges':>6s} {'corpus':>6s}  result")
    failed = False
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, result, n in pool.map(lambda name: run(build, name, args.seconds), names):
            failed |= result != "clean"
            print(f"{name:12s} {n.get('execs', 0):10,d} {n.get('rate', 0):8,d} "
                  f"{n.get('edges', 0):6,d} {n.get('corpus', 0):6,d}  {result}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
