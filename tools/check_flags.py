#!/usr/bin/env python3
"""Proves from BUILD_DIR/compile_commands.json that every object is compiled with strict floating
point, and from build.ninja that no link step brings fast-math start-up code in."""
import json
import pathlib
import re
import shlex
import sys

FORBIDDEN = re.compile(
    r"^(-Ofast|-ffast-math|-funsafe-math-optimizations|-fassociative-math|-freciprocal-math"
    r"|-ffinite-math-only|-fno-signed-zeros|-frounding-math|-fcx-limited-range|-ffp-model=.*"
    r"|-fsingle-precision-constant|-mfpmath=.*|-mdaz-ftz|-mfma-contract.*"
    r"|-fdenormal-fp-math=(?!ieee).*"
    r"|-f(cuda|gpu)-flush-denormals-to-zero|-fgpu-approx-transcendentals"
    r"|-fcuda-approx-transcendentals|--?use_fast_math|--?extra-device-vectorization)$")
# Option → the value that must be the last one given.
HOST = {"-ffp-contract": "off"}
NVCC = {"-fmad": "false", "-ftz": "false", "-prec-div": "true", "-prec-sqrt": "true"}


def arguments(entry):
    args = entry.get("arguments") or shlex.split(entry["command"])
    # nvcc hands host flags on as -Xcompiler=a,b; they count as well.
    flat = []
    for arg in args:
        for_host = arg.startswith(("-Xcompiler=", "--compiler-options="))
        flat += arg.split("=", 1)[1].split(",") if for_host else [arg]
    return flat


def last_values(args):
    values = {}
    for index, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        name = "-" + name.lstrip("-")
        if equals:
            values[name] = value
        elif name in NVCC and index + 1 < len(args):
            values[name] = args[index + 1]
    return values


def problems_of(args, is_cuda):
    found = [f"has {arg}" for arg in args if FORBIDDEN.match(arg)]
    values = last_values(args)
    for name, wanted in (NVCC if is_cuda else HOST).items():
        if values.get(name) != wanted:
            found.append(f"{name} is {values.get(name, 'not given')}, not {wanted}")
    if not is_cuda and "-fno-fast-math" not in args:
        found.append("-fno-fast-math is not given")
    return found


def check(build):
    build = pathlib.Path(build)
    commands = build / "compile_commands.json"
    if not commands.is_file():
        return [f"{commands}: missing; configure first: cmake --preset release"], ""
    entries = json.loads(commands.read_text())
    problems = []
    for entry in entries:
        args = arguments(entry)
        is_cuda = any(pathlib.Path(a).name == "nvcc" for a in args[:2])
        problems += [f"{entry['file']}: {p}" for p in problems_of(args, is_cuda)]
    if not any("/src/samebits/" in e["file"] for e in entries):
        problems.append(f"{commands}: lists no samebits object, so nothing was checked")
    ninja = build / "build.ninja"
    for line in ninja.read_text().splitlines() if ninja.is_file() else []:
        if re.match(r"\s*(LINK_)?(FLAGS|LIBRARIES) =", line):
            problems += [f"{ninja}: a build step has {arg}" for arg in line.split()
                         if FORBIDDEN.match(arg)]
    return sorted(set(problems)), f"{len(entries)} objects"


if __name__ == "__main__":
    import report
    if len(sys.argv) != 2:
        sys.exit("usage: tools/check_flags.py BUILD_DIR")
    sys.exit(report.show("flags", *check(sys.argv[1])))
