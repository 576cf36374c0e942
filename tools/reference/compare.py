"""Measures our CPU chain against transformers' Gemma 4, on inputs of prepare.sh.

    python3 compare.py INPUTS OUT [--cuda]

The reference is transformers with the checkpoint's bf16 weights widened to fp32, on the CPU. The
yardstick is transformers' own bf16 run. The measure is the relative L2 norm of the difference to the
reference over all tokens (head.softcap: all scored tokens): ‖x − ref‖ / ‖ref‖.

Bars: ours ≤ 1.10 × the yardstick at every layer; ≤ 1.0 × on average over layers, and in the logits.
Each planted fault must push a layer or the logits of one shape above 2 × the yardstick.

OUT/reference.json holds every figure, OUT/reference.txt the tables. Exit 1 if a bar is missed.
"""

import argparse
import json
import pathlib
import platform
import sys

import numpy as np
import torch
import transformers

import gemma4_hf
from trace_reader import Trace

LAYER_BAR, MEAN_BAR, LOGIT_BAR, FAULT_BAR = 1.10, 1.0, 1.0, 2.0


def relative_l2(x, ref):
    x, ref = x.astype(np.float64), ref.astype(np.float64)
    if not np.isfinite(x).all() or not np.isfinite(ref).all() or not ref.any():
        raise ValueError("a value that is not finite, or a reference of zeros")
    return float(np.linalg.norm(x - ref) / np.linalg.norm(ref))


def ours(path, names):
    trace = Trace(path)
    return {name: trace.values(name) for name in names}, trace


def errors(values, ref, scored):
    out = {}
    for name, r in ref.items():
        x = values[name]
        if name == "head.softcap":
            r = r[scored]
            x = x if len(x) == len(r) else x[scored]
        if x.shape != r.shape:
            raise ValueError(f"{name}: {x.shape} against {r.shape}")
        out[name] = relative_l2(x, r)
    return out


def hf(folder, rows, dtype, device):
    return gemma4_hf.run(gemma4_hf.load(folder / "model", dtype, device), rows)


def judge(own, yard):
    """Ratios and what missed its bar."""
    ratios = {name: own[name] / yard[name] for name in own if yard[name] > 0}
    layers = [ratio for name, ratio in ratios.items() if name.startswith("layers.")]
    mean, logits = sum(layers) / len(layers), ratios["head.softcap"]
    missed = [f"{n} {r:.3f}" for n, r in ratios.items() if n.startswith("layers.") and r > LAYER_BAR]
    missed += [f"mean over layers {mean:.3f}"] if mean > MEAN_BAR else []
    missed += [f"logits {logits:.3f}"] if logits > LOGIT_BAR else []
    return {"ratios": ratios, "mean_over_layers": mean, "logits": logits, "missed": missed}


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "".join(
        "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths)))
        + "\n"
        for r in rows
    )


def measure(folder, cuda):
    rows = [json.loads(line)["tokens"] for line in (folder / "rows.jsonl").open()]
    ref = hf(folder, rows, torch.float32, "cpu")
    own_values, trace = ours(folder / "ours.sbt", ref)
    if list(map(tuple, trace.rows)) != [(s, p) for s, r in enumerate(rows) for p in range(len(r))]:
        raise ValueError("the trace is of other rows")
    runs = {"transformers bf16, cpu": hf(folder, rows, torch.bfloat16, "cpu")}
    if cuda:
        runs["transformers bf16, cuda"] = hf(folder, rows, torch.bfloat16, "cuda")
        runs["transformers fp32, cuda"] = hf(folder, rows, torch.float32, "cuda")
    found = {"samebits": errors(own_values, ref, trace.scored)}
    found |= {name: errors(values, ref, trace.scored) for name, values in runs.items()}
    yardsticks = [name for name in runs if "bf16" in name]
    config = json.loads((folder / "model" / "config.json").read_text())["text_config"]
    result = {
        "hidden": config["hidden_size"],
        "head_dims": [config["head_dim"], config["global_head_dim"]],
        "window": config["sliding_window"],
        "rows": len(rows),
        "tokens": int(len(trace.rows)),
        "scored": int(len(trace.scored)),
        "weights": trace.header["weights"],
        "reference_l2": {n: float(np.linalg.norm(r.astype(np.float64))) for n, r in ref.items()},
        "errors": found,
        "verdicts": {name: judge(found["samebits"], found[name]) for name in yardsticks},
        "faults": {},
    }
    yard = found[yardsticks[0]]
    for path in sorted((folder / "faults").glob("*.sbt")):
        values, _ = ours(path, ref)
        err = errors(values, ref, trace.scored)
        over = {n: err[n] / yard[n] for n in err if n not in ("embed", "final_norm")}
        worst = max(over, key=over.get)
        result["faults"][path.stem] = {"errors": err, "worst": worst, "times": over[worst]}
    return result


def text_of(name, result):
    runs = list(result["errors"])
    verdicts = list(result["verdicts"])
    lines = [["boundary", *runs, *[f"ratio to {v.split(', ')[1]} bf16" for v in verdicts]]]
    for b in result["errors"]["samebits"]:
        ratios = [result["verdicts"][v]["ratios"].get(b) for v in verdicts]
        lines.append([b, *[f"{result['errors'][r][b]:.3e}" for r in runs],
                      *["-" if x is None else f"{x:.3f}" for x in ratios]])
    out = (
        f"{name}: hidden {result['hidden']}, head dims {result['head_dims']}, window "
        f"{result['window']}, {result['rows']} rows, {result['tokens']} tokens, "
        f"{result['scored']} scored\n\n" + table(lines)
    )
    for v in verdicts:
        j = result["verdicts"][v]
        out += (f"\nagainst {v}: mean over layers {j['mean_over_layers']:.3f}, logits "
                f"{j['logits']:.3f}: {'missed: ' + '; '.join(j['missed']) if j['missed'] else 'met'}")
    if result["faults"]:
        faults = [["fault", "worst boundary", "times the yardstick"]]
        faults += [[n, f["worst"], f"{f['times']:.1f}"] for n, f in result["faults"].items()]
        out += "\n\n" + table(faults)
    return out + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cuda", action="store_true", help="also run transformers on a GPU")
    args = parser.parse_args()
    report = {
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "numpy": np.__version__,
            "device": torch.cuda.get_device_name() if args.cuda else "cpu",
        },
        "attention": "eager",
        "shapes": {},
    }
    text = " ".join(f"{k} {v}" for k, v in report["versions"].items()) + ", eager attention\n\n"
    ok, caught = True, {}
    for folder in sorted(p.parent for p in args.inputs.glob("*/ours.sbt")):
        result = measure(folder, args.cuda)
        report["shapes"][folder.name] = result
        text += text_of(folder.name, result) + "\n"
        ok &= not any(v["missed"] for v in result["verdicts"].values())
        for fault, found in result["faults"].items():
            caught[fault] = caught.get(fault, []) + [f"{folder.name} {found['times']:.1f}"] * (
                found["times"] > FAULT_BAR
            )
    if not report["shapes"]:
        sys.exit(f"{args.inputs} holds no prepared shape")
    for fault, where in caught.items():
        text += f"{fault}: {'above 2 × in ' + ', '.join(where) if where else 'not found'}\n"
        ok &= bool(where)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "reference.json").write_text(json.dumps(report, indent=1) + "\n")
    (args.out / "reference.txt").write_text(text)
    print(text, end="")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
