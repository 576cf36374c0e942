#!/usr/bin/env python3
"""Compiles the portable header set for one target and scans the code for forbidden arithmetic.

Usage: compile_portable.py {gxx|cuda|hip|kernels-hip} --work DIR [--cxx COMPILER]
       compile_portable.py kernels-cuda --work DIR OBJECT...

gxx   src/samebits/arith/portable_compile.h as C++, with and without x86 extensions
cuda  portable_compile.cu for sm_90a: PTX, cubin; PTX scanned, SASS too where cuobjdump is found
hip   portable_compile.hip for gfx942: device assembly, scanned
kernels-hip   backend/simt/compile.hip for gfx942: scanned, shared memory and spills checked
kernels-cuda  the CUDA backend: PTX scanned, and the objects' SASS where cuobjdump is found
For both GPUs the source is also compiled with contraction on, and the scan must then fail.
Exit status: 0 ok, 1 failed, 77 skipped because the compiler is missing (ctest shows it as skipped).
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import scan_ptx

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARITH = ROOT / "src/samebits/arith"
SIMT = ROOT / "src/samebits/backend/simt"
SKIPPED = 77
MOST_SPILLS = 16  # of a kernel on gfx942; D512 attention with segments has 10
NVCC = ["-std=c++20", "-gencode=arch=compute_90a,code=sm_90a", "-fmad=false", "-ftz=false",
        "-prec-div=true", "-prec-sqrt=true", "-Xcompiler", "-ffp-contract=off", f"-I{ROOT / 'src'}"]
HIP = ["-x", "hip", "-std=c++20", "--cuda-device-only", "--no-gpu-bundle-output",
       "--offload-arch=gfx942", "-nogpulib", "-nogpuinc", "-O3", "-ffp-contract=off",
       "-Wno-pass-failed", f"-I{ROOT / 'src'}"]


def find(*names):
    """The first of the programs on PATH or in CUDA's usual place, or None."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
    return next((p for p in (shutil.which(n, path=path) for n in names) if p), None)


def skip(program, what):
    print(f"SKIPPED: {program} not found; NOT proven here: {what}")
    return SKIPPED


def run(command):
    print("+", " ".join(str(c) for c in command), flush=True)
    return subprocess.run([str(c) for c in command], check=True, capture_output=True,
                          text=True).stdout


def scanned(kind, name, text):
    found = scan_ptx.scan(kind, text, canary=True)
    for number, what, code in found:
        print(f"{name}:{number}: {what}: {code}")
    print(f"scan {kind} {name}: " + (f"FAILED, {len(found)} findings" if found else "ok"))
    return not found


def must_fail(kind, text):
    """Contraction was left on, so a scan that finds nothing would be blind."""
    if any("canary" in what for _, what, _ in scan_ptx.scan(kind, text, canary=True)):
        print(f"scan {kind} with contraction on: finds it, as it must")
        return True
    print(f"scan {kind} with contraction on: FAILED to notice the fma")
    return False


def gxx(work, cxx):
    stub = work / "portable_compile_gxx.cc"
    stub.write_text('#include "samebits/arith/portable_compile.h"\n'
                    "uint64_t everything(uint32_t u) {\n"
                    "  uint64_t sum = sb::arith::portable_mixed(u);\n"
                    "  for (int f = 0; f < sb::arith::kPortableFunctionCount; ++f)\n"
                    "    sum += sb::arith::portable_digest(f, u);\n"
                    "  return sum;\n}\n", encoding="utf-8")
    x86 = platform.machine() in ("x86_64", "AMD64")
    for march in (["-march=x86-64-v3"], ["-march=x86-64"]) if x86 else ([],):
        run([cxx, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
             "-ffp-contract=off", *march, f"-I{ROOT / 'src'}", "-c", stub, "-o",
             work / "portable_compile_gxx.o"])
    print("compiled for g++: ok")
    return True


def cuda(work):
    nvcc = find("nvcc")
    if not nvcc:
        return None
    source = ARITH / "portable_compile.cu"
    ptx, cubin, loose = (work / f"portable_compile.{s}" for s in ("ptx", "cubin", "contracted.ptx"))
    run([nvcc, *NVCC, "-ptx", source, "-o", ptx])
    run([nvcc, *NVCC, "-cubin", source, "-o", cubin])
    run([nvcc, *[f for f in NVCC if f != "-fmad=false"], "-ptx", source, "-o", loose])
    ok = scanned("ptx", ptx.name, ptx.read_text())
    ok = must_fail("ptx", loose.read_text()) and ok
    cuobjdump = find("cuobjdump")
    if cuobjdump:
        ok = scanned("sass", cubin.name, run([cuobjdump, "-sass", cubin])) and ok
    else:
        print("note: cuobjdump not found, so the SASS was NOT scanned (the PTX was)")
    return ok


def hip(work):
    clang = find("clang++-19", "clang++-20", "clang++-21")
    if not clang:
        return None
    source = ARITH / "portable_compile.hip"
    strict, loose = work / "portable_compile.s", work / "portable_compile.contracted.s"
    run([clang, *HIP, "-S", source, "-o", strict])
    run([clang, *[f for f in HIP if f != "-ffp-contract=off"], "-S", source, "-o", loose])
    ok = scanned("gfx", strict.name, strict.read_text())
    return must_fail("gfx", loose.read_text()) and ok


def kernels_hip(work):
    """The kernels of backend/simt for gfx942: they compile, fit, and use the matrix unit."""
    clang = find("clang++-19", "clang++-20", "clang++-21")
    if not clang:
        return None
    out = work / "kernels.s"
    run([clang, *HIP, "-S", SIMT / "compile.hip", "-o", out])
    text = out.read_text()
    # Integer divisions are expanded with a reciprocal and corrected to the exact quotient, and a
    # packed fma is two IEEE ones: neither is arithmetic of a contract gone wrong.
    found = [f for f in scan_ptx.scan("gfx", text, canary=True)
             if not f[1].startswith(("reciprocal", "packed fma"))]
    for number, what, code in found:
        print(f"{out.name}:{number}: {what}: {code}")
    shared = [int(n) for n in re.findall(r"\.amdhsa_group_segment_fixed_size (\d+)", text)]
    spills = [int(n) for n in re.findall(r"\.vgpr_spill_count: *(\d+)", text)]
    steps = len(re.findall(r"\bv_mfma_f32_16x16x16_bf16", text))
    print(f"{len(spills)} kernels, {steps} matrix steps, {max(shared)} bytes of shared memory at most, "
          f"{max(spills)} spilled vector registers at most")
    return not found and steps > 0 and max(shared) <= 65536 and max(spills) <= MOST_SPILLS


def kernels_cuda(work, objects):
    """The tables of backend/cuda as PTX, scanned; where cuobjdump is found, the objects' SASS too."""
    nvcc, cuobjdump = find("nvcc"), find("cuobjdump")
    if not nvcc:
        return None
    ok, steps = True, 0
    for source in sorted((ROOT / "src/samebits/backend/cuda").glob("*.cu")):
        out = work / f"{source.stem}.ptx"
        run([nvcc, *NVCC, "-O3", "--expt-relaxed-constexpr", "-ptx", source, "-o", out])
        text = out.read_text()
        found = scan_ptx.scan("ptx", text)
        for number, what, code in found:
            print(f"{out.name}:{number}: {what}: {code}")
        count = len(re.findall(r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16", text))
        print(f"scan ptx {out.name}: {len(found)} findings, {count} matrix steps")
        steps += count
        ok = ok and not found
    for path in objects if cuobjdump else []:
        text = run([cuobjdump, "-sass", path])
        found = scan_ptx.scan("sass", text)
        for number, what, code in found:
            print(f"{path}:{number}: {what}: {code}")
        targets = set(re.findall(r"arch = (\w+)", text))
        print(f"scan sass {path}: {len(found)} findings, built for {sorted(targets)}")
        ok = ok and not found and targets == {"sm_90a"}
    if not cuobjdump:
        print("note: cuobjdump not found, so the SASS was NOT scanned (the PTX was)")
    return ok and steps > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=("gxx", "cuda", "hip", "kernels-hip", "kernels-cuda"))
    parser.add_argument("objects", nargs="*", help="of kernels-cuda")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="g++")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    try:
        if args.target == "gxx":
            ok = gxx(args.work, args.cxx)
        elif args.target == "cuda":
            ok = cuda(args.work)
            if ok is None:
                return skip("nvcc", "the portable headers compile for CUDA")
        elif args.target == "hip":
            ok = hip(args.work)
            if ok is None:
                return skip("clang++-19", "the portable headers compile for AMD")
        elif args.target == "kernels-hip":
            ok = kernels_hip(args.work)
            if ok is None:
                return skip("clang++-19", "the kernels compile for AMD")
        else:
            ok = kernels_cuda(args.work, args.objects)
            if ok is None:
                return skip("nvcc", "the CUDA kernels are free of forbidden arithmetic")
    except subprocess.CalledProcessError as error:
        print(error.stderr)
        print(f"FAILED: exit status {error.returncode}")
        return 1
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
