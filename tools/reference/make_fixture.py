"""Writes the samples that src/samebits/gate/reference_test.cc compares against, from inputs of
prepare.sh --all: make_fixture.py INPUTS FOLDER.

samples.bin: fp32, little endian: every stride-th element of the reference's [tokens × width] values
(head.softcap: [scored × width]), the stride being a prime that does not divide the width, so that all
tokens and all columns are met. samples.json: where each lies, and the errors of transformers' own bf16
run and of ours at these elements, and at all elements, when the samples were made.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers

from compare import hf, relative_l2
from trace_reader import Trace

SHAPES = ("tiny", "heads", "short")
TARGET = 6000  # elements a boundary


def stride_for(values):
    stride = max(2, values.size // TARGET)
    while values.shape[1] % stride == 0 or any(stride % d == 0 for d in range(2, stride)):
        stride += 1
    return stride


def main():
    inputs, out = map(pathlib.Path, sys.argv[1:])
    samples, at = [], 0
    index = {
        "origin": "tools/reference/make_fixture.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "attention": "eager",
        "reference": "weights widened to fp32, CPU",
        "yardstick": "bf16, CPU",
        "shapes": {},
    }
    for shape in SHAPES:
        folder = inputs / shape
        rows = [json.loads(line)["tokens"] for line in (folder / "rows.jsonl").open()]
        trace = Trace(folder / "ours.sbt")
        ref = hf(folder, rows, torch.float32, "cpu")
        bf16 = hf(folder, rows, torch.bfloat16, "cpu")
        boundaries = {}
        for name, r in ref.items():
            if not name.startswith("layers.") and name != "head.softcap":
                continue
            y, x = bf16[name], trace.values(name)
            if name == "head.softcap":
                r, y = r[trace.scored], y[trace.scored]
            stride = stride_for(r)
            part = [v.reshape(-1)[::stride] for v in (r, y, x)]
            boundaries[name] = {
                "offset": at,
                "count": int(part[0].size),
                "stride": stride,
                "yardstick": relative_l2(part[1], part[0]),
                "ours": relative_l2(part[2], part[0]),
                "yardstick_all": relative_l2(y, r),
                "ours_all": relative_l2(x, r),
            }
            samples.append(part[0].astype("<f4"))
            at += part[0].size
        index["shapes"][shape] = {
            "weights": trace.header["weights"],
            "rows": len(rows),
            "length": len(rows[0]),
            "boundaries": boundaries,
        }
    (out / "samples.bin").write_bytes(np.concatenate(samples).tobytes())
    (out / "samples.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
