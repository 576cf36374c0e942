"""Writes rows.jsonl for the checkpoint DIR/model: make_rows.py DIR --rows N --length L --prompt P.
Token ids come from an LCG, so that the file is the same everywhere."""

import argparse
import json
import pathlib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("dir", type=pathlib.Path)
for name in ("rows", "length", "prompt"):
    parser.add_argument(f"--{name}", type=int, required=True)
args = parser.parse_args()
text = json.loads((args.dir / "model" / "config.json").read_text())["text_config"]

state = 1
lines = []
for row in range(args.rows):
    tokens = [2]
    while len(tokens) < args.length:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        tokens.append(3 + (state >> 33) % (text["vocab_size"] - 3))
    lines.append({"id": f"r{row}", "tokens": tokens, "prompt_len": args.prompt})
(args.dir / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
