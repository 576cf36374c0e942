"""Reads trace files, X.sbt, version trace/1 (samebits help formats), by memory map.

    trace = Trace("x.sbt")                  # or Trace(path, check=False) to skip the SHA-256
    trace.ids, trace.rows, trace.scored     # names; int32 [rows, 2] (sequence, position); indices
    trace.columns["layers.0.out"].digests   # u64 per row, or per scored row
    trace.values("layers.0.out")            # float32 [rows, width]; ValueError if not kept

A file that is cut short, damaged or of another version raises ValueError.
"""

import hashlib
import json
import mmap

import numpy as np

MAGIC = b"samebits trace/1\n"
TRAILER = len("sha256 ") + 64 + 1
DTYPES = {"bf16": np.dtype("<u2"), "f32": np.dtype("<f4")}


def widen(bits):
    """bf16 as u16 → the same numbers as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Column:
    def __init__(self, manifest, digests, non_finite, raw):
        self.name, self.dtype = manifest["name"], manifest["dtype"]
        self.width, self.scored = manifest["width"], manifest["scored"]
        self.digests, self.non_finite, self.raw = digests, non_finite, raw


class Trace:
    def __init__(self, path, check=True):
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if not data[: len(MAGIC)] == MAGIC or len(data) < len(MAGIC) + TRAILER:
            raise ValueError(f"{path}: no trace of version trace/1")
        seal = data[-TRAILER:]
        if not seal.startswith(b"sha256 "):
            raise ValueError(f"{path}: does not end in its checksum")
        body = memoryview(data)[:-TRAILER]
        if check and hashlib.sha256(body).hexdigest().encode() != seal[7:71]:
            raise ValueError(f"{path}: checksum does not match")
        end = data.find(b"\n", len(MAGIC))
        self.header = json.loads(data[len(MAGIC) : end])
        self._body, self._at, self._path = body, end + 1, path
        self.ids = self.header["ids"]
        self.rows = self._take("<i4", 2 * self.header["rows"]).reshape(-1, 2)
        self.scored = self._take("<i4", self.header["scored"])
        self.columns = {}
        for manifest in self.header["columns"]:
            count = self.header["scored" if manifest["scored"] else "rows"]
            digests, bad = self._take("<u8", count), self._take("u1", count)
            raw = None
            if manifest.get("values", False):
                width = manifest["width"]
                raw = self._take(DTYPES[manifest["dtype"]], count * width).reshape(count, width)
            self.columns[manifest["name"]] = Column(manifest, digests, bad, raw)
        if self._at != len(body):
            raise ValueError(f"{path}: {len(body) - self._at} bytes more than its manifest says")

    def _take(self, dtype, count):
        dtype = np.dtype(dtype)
        size = count * dtype.itemsize
        if self._at + size > len(self._body):
            raise ValueError(f"{self._path}: shorter than its manifest says")
        out = np.frombuffer(self._body, dtype, count, self._at)
        self._at += (size + 7) // 8 * 8
        return out

    def values(self, name):
        column = self.columns[name]
        if column.raw is None:
            raise ValueError(f"{self._path} holds digests of {name}, no values (--trace-values)")
        return widen(column.raw) if column.dtype == "bf16" else np.asarray(column.raw)
