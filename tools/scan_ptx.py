#!/usr/bin/env python3
"""Fails where compiled GPU code uses arithmetic outside the contracts.

Usage: scan_ptx.py [--ptx | --sass | --gfx] [--canary] FILE...
Kinds: PTX, SASS (cuobjdump -sass), gfx assembly (clang -S); taken from the suffix .ptx, .sass, .s when
not given. --canary also requires the kernel `contraction_canary` (a*b+c) with a separate product and
sum and no fma: the proof that contraction is off. Exits 1 with one line per finding.
"""
import argparse
import pathlib
import re
import sys

# PTX: all approximate forms; rcp and sqrt must be the rounded ones, which ptxas expands itself.
PTX = [
    (r"\b(ex2|lg2|sin|cos|tanh|rcp|rsqrt|sqrt|div|log2|exp2)\.\S*approx", "approximate function"),
    (r"\bdiv\.full", "approximate division"),
    (r"\bex2\.|\blg2\.|\btanh\.|\brsqrt\.", "approximate function"),
    (r"\.ftz\b", "flushes subnormals"),
    (r"\.tf32\b", "TF32"),
    (r"\bm16n8k8\b(?=\S*\.bf16)", "k8 bf16 matrix step"),
    (r"\b(?:red|atom)\.\S*\.(?:f16|f16x2|bf16|bf16x2|f32|f64)\b", "float atomic"),
    (r"\.r[zmp]\.f(?:32|64)\b", "rounding other than to nearest"),
    (r"\b(?:mad|add|sub|mul)\.f(?:32|64)\b", "operation the compiler may contract (no .rn)"),
]
# SASS: MUFU.RCP and MUFU.RSQ are the seeds of the IEEE division and square root.
SASS = [
    (r"\bMUFU\.(?!RCP\b|RSQ\b|RCP64H\b|RSQ64H\b)", "approximate function"),
    (r"\bF(?:ADD|MUL|FMA)\S*\.FTZ\b", "flushes subnormals"),
    (r"\bHMMA\.\S*TF32\b", "TF32"),
    (r"\bHMMA\.1688\.F32\.BF16\b", "k8 bf16 matrix step"),
    (r"\b(?:RED|ATOM|ATOMG|ATOMS)\.\S*F(?:16|32|64)\b", "float atomic"),
]
GFX = [
    (r"\bv_(?:exp|log|sin|cos)_(?:f16|f32)", "approximate function"),
    (r"\bv_(?:exp|log)_legacy", "approximate function"),
    (r"\bv_(?:mad|mac|madak|madmk|mul_legacy|fma_legacy)_(?:legacy_)?f32", "unfused or legacy product"),
    (r"\bv_pk_fma_f32\b", "packed fma"),
    (r"\b(?:global|flat|buffer|ds)_(?:atomic_)?(?:add|pk_add|min|max)_(?:rtn_)?(?:f16|f32|f64|bf16)",
     "float atomic"),
]
DENORMALS = re.compile(r"\.amdhsa_float_denorm_mode_(?:32|16_64)\s+(\d+)")
ROUNDING = re.compile(r"\.amdhsa_float_round_mode_(?:32|16_64)\s+(\d+)")


def function_bodies(kind, text):
    """[(name, lines)] of the kernels; code before the first kernel is under ''."""
    start = {"ptx": r"\.(?:entry|func)\b[^(]*?\b(\w+)\s*\(", "sass": r"Function : (\w+)",
             "gfx": r"^(\w+):"}[kind]
    bodies = [("", [])]
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(start, line):
            bodies.append((match[1], []))
        code = re.split(r"//|;\s*%|;\s", line)[0] if kind == "gfx" else line.split("//")[0]
        bodies[-1][1].append((number, code))
    return bodies


def reciprocals(lines):
    """AMD: v_rcp and v_rsq only as the seed of a division (v_div_scale … v_div_fixup) or square root."""
    for index, (number, line) in enumerate(lines):
        if not re.search(r"\bv_(?:rcp|rsq)_", line):
            continue
        near = " ".join(text for _, text in lines[max(0, index - 40):index + 80])
        double_root = "v_rsq_f64" in line and "v_ldexp_f64" in near
        if not double_root and not ("v_div_scale" in near and "v_div_fixup" in near):
            yield number, "reciprocal outside an IEEE division", line.strip()
        elif "v_rsq_" in line and not double_root:
            yield number, "reciprocal square root", line.strip()


def canary_problems(kind, bodies):
    lines = [line for name, body in bodies if name == "contraction_canary" for _, line in body]
    text = "\n".join(lines)
    need = {"ptx": (r"\bmul\.rn\.f32", r"\badd\.rn\.f32"), "sass": (r"\bFMUL\b", r"\bFADD\b"),
            "gfx": (r"\bv_mul_f32", r"\bv_add_f32")}[kind]
    ban = {"ptx": r"\bfma\.|\bmad\.", "sass": r"\bFFMA\b",
           "gfx": r"\bv_(?:fma|fmac|fmamk|fmaak|pk_fma|mac|mad)_"}[kind]
    if not lines:
        yield 0, "no kernel contraction_canary", ""
    for pattern in need:
        if lines and not re.search(pattern, text):
            yield 0, f"canary lacks {pattern}", ""
    if re.search(ban, text):
        yield 0, "canary was contracted into an fma", ""


def scan(kind, text, canary=False):
    """[(line number, what, code)]"""
    bodies = function_bodies(kind, text)
    found = []
    for _, lines in bodies:
        for number, line in lines:
            for pattern, what in {"ptx": PTX, "sass": SASS, "gfx": GFX}[kind]:
                if re.search(pattern, line):
                    found.append((number, what, line.strip()))
        if kind == "gfx":
            found.extend(reciprocals(lines))
    if kind == "gfx":
        for pattern, want, what in ((DENORMALS, "3", "denormals are not kept"),
                                    (ROUNDING, "0", "rounding is not to nearest")):
            values = pattern.findall(text)
            if not values:
                found.append((0, f"no descriptor line {pattern.pattern}", ""))
            found.extend((0, what, value) for value in values if value != want)
    if canary:
        found.extend(canary_problems(kind, bodies))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind in ("ptx", "sass", "gfx"):
        parser.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind)
    parser.add_argument("--canary", action="store_true")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    failed = 0
    for name in args.files:
        path = pathlib.Path(name)
        kind = args.kind or {".ptx": "ptx", ".sass": "sass", ".s": "gfx"}[path.suffix]
        found = scan(kind, path.read_text(encoding="utf-8"), args.canary)
        for number, what, code in found:
            print(f"{name}:{number}: {what}: {code}")
        print(f"scan {kind} {name}: " + (f"FAILED, {len(found)} findings" if found else "ok"))
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
