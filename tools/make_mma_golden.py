#!/usr/bin/env python3
"""Cut the committed golden out of a full recording of Hopper matrix steps.

usage: make_mma_golden.py FULL OUT

Keeps every 12th trial and the last 80 (the ones with infinities, NaN and other edge operands).
The kind of a trial repeats with period 8 and every 12th sees two of them; the first of five other
kinds is kept too, as many as 500 kB hold.
"""
import struct
import sys

MAGIC = b"SBMMAV1\0"
TRIAL_BYTES = 2 * 16 * 16 + 2 * 8 * 16 + 4 * 16 * 8 + 4 * 16 * 8  # A, B, C, D
STRIDE = 12
LAST = 80
OTHER_KINDS = (1, 2, 3, 5, 6)


def main(full_path, out_path):
    with open(full_path, "rb") as f:
        data = f.read()
    if data[:8] != MAGIC:
        sys.exit(f"{full_path}: not a recording of matrix steps (bad magic)")
    (trials,) = struct.unpack_from("<I", data, 8)
    if trials == 0 or len(data) != 12 + trials * TRIAL_BYTES:
        sys.exit(f"{full_path}: {len(data)} bytes do not hold {trials} trials")
    kept = [t for t in range(trials) if t % STRIDE == 0 or t >= trials - LAST or t in OTHER_KINDS]
    with open(out_path, "wb") as f:
        f.write(MAGIC + struct.pack("<I", len(kept)))
        for t in kept:
            f.write(data[12 + t * TRIAL_BYTES : 12 + (t + 1) * TRIAL_BYTES])
    print(f"{out_path}: {len(kept)} of {trials} trials")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
