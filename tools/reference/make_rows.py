"""Writes rows.jsonl for the checkpoint DIR/model, and sets its sliding window: make_rows.py DIR
--window W --rows N --length L --prompt P. Token ids come from an LCG, so that the file is the same
everywhere."""

import argparse
import json
import pathlib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("dir", type=pathlib.Path)
for name in ("window", "rows", "length", "prompt"):
    parser.add_argument(f"--{name}", type=int, required=True)
args = parser.parse_args()

config_file = args.dir / "model" / "config.json"
config = json.loads(config_file.read_text())
text = config["text_config"]
text["sliding_window"] = args.window
config_file.write_text(json.dumps(config, indent=2) + "\n")

state = 1
lines = []
for row in range(args.rows):
    tokens = [2]
    while len(tokens) < args.length:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        tokens.append(3 + (state >> 33) % (text["vocab_size"] - 3))
    lines.append({"id": f"r{row}", "tokens": tokens, "prompt_len": args.prompt})
(args.dir / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
