#!/usr/bin/env python3
"""Writes the seed corpora: fuzz/make_corpus.py makes every file of fuzz/corpus/ but those named
found-*, which a fuzzer found and which stay so that a fault that was fixed stays fixed.

The formats whole, and each kind of damage that a reader has a message for. A name says what is in
it."""
import copy
import hashlib
import json
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
BETWEEN = b"\n%%%%\n"


def put(reader, name, data):
    """A name "group:case" adds a part to the file of its group, for readers that take parts."""
    name = name.split(":")[0]
    path = CORPUS / reader / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(path.read_bytes() + BETWEEN + data if path.exists() else data)


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ---- safetensors ----

def tensors_file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else compact(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin, end, shape, dtype="BF16"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def one(**fields):
    return tensors_file({"a": {**entry(0, 8, [4]), **fields}}, bytes(8))


def safetensors():
    def case(name, data):
        put("safetensors", name, data)

    good = {"__metadata__": {"format": "pt"}, "a": entry(0, 4, [2]), "b": entry(4, 12, [1, 2], "F32"),
            "c": entry(12, 12, [0, 3], "I64"), "d": entry(12, 13, [1], "F8_E4M3")}
    case("good", tensors_file(good, bytes(range(13))))
    case("short", b"1234567")
    case("header-limit", tensors_file({}, length=1 << 62))
    case("header-cut", tensors_file({}, length=50))
    case("no-object", tensors_file(b"[]"))
    case("no-json", tensors_file(b'{"a":'))
    case("twice", tensors_file(b'{"a":1,"a":2}'))
    case("metadata", tensors_file({"__metadata__": {"a": 1}}))
    case("entry", tensors_file({"a": 3}))
    case("dtype", one(dtype="BF17"))
    case("shape", one(shape=[-4]))
    case("shape-huge", one(shape=[1 << 61, 1 << 61]))
    case("shape-text", one(shape="4"))
    case("offsets", one(data_offsets=[0, 8.5]))
    case("offsets-descend", one(data_offsets=[8, 0]))
    case("span", one(shape=[3]))
    case("overlap", tensors_file({"a": entry(0, 8, [4]), "b": entry(4, 12, [4])}, bytes(12)))
    case("hole", tensors_file({"a": entry(0, 8, [4]), "b": entry(10, 18, [4])}, bytes(18)))
    case("trailing", tensors_file({"a": entry(0, 8, [4])}, bytes(9)))
    many = {f"t{i}": entry(8 * i, 8 * i + 8, [4]) for i in range(10)}
    case("truncated", tensors_file(many, bytes(8)))

    first, second = (tensors_file({n: entry(0, 4, [2])}, bytes(4)) for n in "ab")

    def folder(weight_map, *files):
        index = weight_map if isinstance(weight_map, bytes) else \
            compact({"weight_map": weight_map}).encode()
        return BETWEEN.join([index, *files])

    a, b = "a.safetensors", "b.safetensors"
    case("index-good", folder({"a": a, "b": b}, first, second))
    case("index-one-file", folder({"a": "model.safetensors"}, b"", b"", first))
    case("index-none", BETWEEN.join([b"", b"", b"", first]))
    case("index-no-map", folder(b'{"weight_map":[]}', first))
    case("index-path", folder({"a": "../a.safetensors"}, first))
    case("index-beside-single", folder({"a": a}, first, b"", first))
    case("index-shard-absent", folder({"a": a, "b": b}, first))
    case("index-shard-broken", folder({"a": a, "b": b}, first, b"short"))
    case("index-in-two", folder({"a": a, "b": b}, first, first))
    case("index-wrong-shard", folder({"a": b, "b": a}, first, second))
    case("index-unknown", folder({"a": a, "c": b}, first, second))
    case("index-tensor-absent", folder({"a": a, "b": b, "c": b}, first, second))


# ---- config.json ----

def config():
    def case(name, *parts):
        texts = [p if isinstance(p, str) else compact(p) for p in parts]
        put("config", name, "\n%%%%\n".join(texts))

    def fixture(name):
        return json.loads((ROOT / "tests/fixtures/model" / f"{name}.json").read_text())

    old, new = fixture("tiny_text_transformers_5.7.0"), fixture("tiny_text_transformers_5.24.0")
    full = fixture("tiny_full_transformers_5.24.0")
    case("good-flat", old)
    case("good-per-layer", new)
    case("good-full", fixture("tiny_full_transformers_5.7.0"))
    case("good-beside", {**full, "samebits": {"segment": 128}, "new_key": [1],
                         "vision_soft_tokens_per_image": 280},
         {"eos_token_id": [1, 106], "suppress_tokens": [7, 9]},
         {"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2, "content": "c"}]},
         {"samebits": "virtual/1", "scheme": "philox4x32-10.v1", "seed": 7})
    case("beside-beyond-vocabulary", "", {"eos_token_id": 2500},
         {"model": {"vocab": {"a": 2500}}}, {"samebits": "virtual/1", "scheme": "other"})
    case("beside-all-ids", "", {"eos_token_id": None}, {"model": {"vocab": {"a": 2499}}},
         {"samebits": "virtual/1", "scheme": "philox4x32-10.v1", "seed": -1})
    case("beside-malformed", "", [1], {"added_tokens": [{"id": -1, "content": "c"}, 3]},
         {"samebits": "virtual/2"})
    case("empty", {})
    case("no-object", [1])
    case("no-json", '{"a":1,')
    case("nested-deep", "[" * 70 + "]" * 70)
    case("key-twice", '{"a":1,"a":2}')
    case("text-no-object", {"text_config": 3, "model_type": 5})
    case("types", {k: "x" for k in old})
    case("zeros", {k: 0 for k in old})
    case("lists", {k: [1, 2] for k in old})
    case("objects", {**{k: {"factor": 2} for k in old}, "per_layer_config": {"x": {}},
                     "rope_parameters": {"full_attention": 1, "other": {}}})

    refused = copy.deepcopy(old)
    refused.update(model_type="gemma3", attention_bias=True, attention_k_eq_v=False,
                   enable_moe_block=True, use_double_wide_mlp=True, hidden_size_per_layer_input=8,
                   num_kv_shared_layers=2, attention_dropout=0.5, num_experts=8, rope_scaling={},
                   hidden_activation="silu", hidden_act="silu", dtype="float16",
                   use_bidirectional_attention="all", tie_word_embeddings=False,
                   num_key_value_heads=3, head_dim=15, hidden_size=1 << 40, rms_norm_eps=-1,
                   final_logit_softcapping=1e300, eos_token_id=-3, samebits={"segment": 100, "x": 1})
    refused["layer_types"] = ["full_attention"] + ["sliding_attention"] * 5
    for kind in refused["rope_parameters"].values():
        kind.update(rope_type="yarn", factor=2, partial_rotary_factor=0.001, mscale=1)
    refused["rope_parameters"]["chunked_attention"] = {}
    case("refused-flat", refused)
    tiny = copy.deepcopy(old)
    tiny["rope_parameters"]["sliding_attention"]["rope_theta"] = 1e-300
    tiny["rope_parameters"]["full_attention"]["partial_rotary_factor"] = 1e-9
    case("refused-rope", {**tiny, "rms_norm_eps": 1e-60, "sliding_window": [23, 0],
                          "vision_config": {}, "num_global_key_value_heads": 3, "samebits": 1})
    outer = copy.deepcopy(full)
    outer.update(model_type="gemma3", dtype="float32", quantization_config={"bits": 4},
                 audio_config={"x": 1}, vision_soft_tokens_per_image=70)
    outer["vision_config"].update(num_key_value_heads=2, default_output_length=280,
                                  use_clipped_linears=True, hidden_activation="silu",
                                  rms_norm_eps=1e-5, new_key=1)
    outer["text_config"].update(tie_word_embeddings=False)
    case("refused-full", outer)
    case("vision-no-object", {**full, "vision_config": 3})
    bare = {k: v for k, v in full["vision_config"].items()
            if k not in ("hidden_activation", "rms_norm_eps")}
    case("vision-missing", {**full, "vision_config": bare})
    for name, table in {"no-object": 3, "no-layer": {"6": {}}, "no-fields": {"5": 1},
                        "field": {"5": {"hidden_size": 1}}, "range": {"5": {"head_dim": 0}},
                        "twice": {"5": {}, "05": {}}, "mixed": {"1": {"head_dim": 32}}}.items():
        case("per-layer-" + name, {**new, "per_layer_config": table})
    case("per-layer-disagrees", {**new, "global_head_dim": 64, "num_global_key_value_heads": 4})
    case("layers-unknown", {**old, "layer_types": ["linear_attention"]})
    case("layers-count", {**old, "num_hidden_layers": 7})


# ---- token rows ----

def token_rows():
    def case(name, *lines):
        texts = [t if isinstance(t, str) else compact(t) for t in lines]
        put("token_rows", name, "\n".join(texts) + "\n")

    row = {"id": "r", "tokens": [1, 2, 3, 4], "prompt_len": 2}
    scores = {"logprobs": [-0.5, "0xbf800000"], "rollout_log_probs": [-1e-6, "-0x1.8p-1"]}
    case("good", {**row, **scores, "mask": [1, 0], "loss_mask": [0, 0, True, False],
                  "temperature": 0.7, "suppress": [9, 8, 9], "reward": 1.5, "meta": {"k": [None]}},
         "", {"id": 7, "tokens": [0, 2499], "prompt_len": 1, "rollout_log_probs": [-3e38]})
    case("good-zeros", '{"id":"ü\\"\\n","tokens":[1,2,3,4],"prompt_len":1,"logprobs":[-0,-0.0,1e-99],'
                       '"rollout_log_probs":[0,-0e0,-1e-46],"x":[-0,true,18446744073709551616]}')
    case("prompt", {"id": "p", "tokens": [5]})
    case("text:blank", "  ", "\t")
    case("text:no-json", '{"id":"r"')
    case("text:no-number", '{"id":"r","logprobs":[NaN]}')
    case("text:no-object", "[1]")
    case("text:deep", '{"id":' + "[" * 70 + "]" * 70 + "}")
    case("text:key-twice", '{"id":1,"id":2}')
    case("ids:id-missing", {"tokens": [1, 2]})
    case("ids:id-kind", {**row, "id": [1]})
    case("ids:id-empty", {**row, "id": ""})
    case("ids:id-twice", row, row)
    case("ids:tokens-missing", {"id": "r"})
    case("ids:tokens-kind", {**row, "tokens": {"a": 1}})
    case("ids:tokens-none", {**row, "tokens": []})
    case("ids:tokens-many", {**row, "tokens": [1] * 65})
    case("ids:tokens-range", {**row, "tokens": [1, 2500, 1 << 31]})
    case("prompts:prompt-missing", {"id": "r", "tokens": [1, 2]})
    case("prompts:prompt-range", {**row, "prompt_len": 4})
    case("logprobs:logprobs-kind", {**row, "logprobs": 1, "rollout_log_probs": "x"})
    case("logprobs:logprobs-count", {**row, "logprobs": [-1], "rollout_log_probs": [-1]})
    case("logprobs:logprobs-one", {**row, "logprobs": [-1, 0.5], "rollout_log_probs": [-1, "0xff800000"]})
    case("logprobs:logprobs-many", {**row, "logprobs": [1e99, "x"], "rollout_log_probs": ["0x7fc00000", {}]})
    case("options:mask-count", {**row, **scores, "mask": [1], "loss_mask": 1})
    case("options:mask-value", {**row, **scores, "mask": [2, 1], "loss_mask": [1, "x"]})
    case("options:temperature", {**row, **scores, "temperature": 0})
    case("options:suppress-kind", {**row, **scores, "suppress": 1})
    case("options:suppress-scored", {**row, **scores, "suppress": [4]})
    put("token_rows", "text:no-utf8", b'{"id":"r\xff"}\n')


# ---- score files ----

HEADER = {"model": "m1", "weights": "w1", "contracts": "gemma4.strict.v1:00ff", "profile": "sm90",
          "temperature": 0.7, "suppress": [3, 9], "schedule": "train"}
DIGEST = "00000000000000ff"


def score_file():
    header = {"samebits": "score/1", **HEADER}
    row = {"id": "a", "tokens": DIGEST, "prompt_len": 1, "logprobs": [-1.25, -1e-6]}

    def case(name, *lines, end="\n"):
        texts = [t if isinstance(t, str) else compact(t) for t in lines]
        put("score_file", name, "\n".join(texts) + end)

    case("good", header, '{"id":"a","tokens":"00000000000000ff","prompt_len":1,"logprobs":'
                         '[-1.25,-0.0,-0,-3.4028235e+38,-1e-45,-1e-60]}', {**row, "id": "ü\"\t"})
    put("score_file", "text:empty", "")
    case("text:no-rows", header)
    case("text:cut", header, row, end="")
    case("text:cut-inside", header, '{"id":"a', end="")
    case("text:no-json", header, "x")
    case("text:no-object", "[1]")
    case("text:no-version", {"a": 1})
    case("header:version", {**header, "samebits": "score/2"})
    case("header:key-missing", {"samebits": "score/1"})
    case("header:key-more", header, {**row, "x": 1})
    case("header:header-text", {**header, "model": ""})
    case("header:header-temperature", {**header, "temperature": 0})
    case("header:header-suppress", {**header, "suppress": [3, 3]})
    case("header:header-suppress-kind", {**header, "suppress": 3})
    case("rows:id-kind", header, {**row, "id": 1})
    case("rows:id-twice", header, row, row)
    case("rows:digest", header, {**row, "tokens": "00FF"})
    case("rows:prompt", header, {**row, "prompt_len": 0})
    case("rows:prompt-last", header, {**row, "prompt_len": 2147483647})
    case("rows:logprobs-none", header, {**row, "logprobs": []})
    case("rows:logprobs-kind", header, {**row, "logprobs": ["-1"]})
    case("rows:logprobs-positive", header, {**row, "logprobs": [1]})


# ---- trace files ----

def trace_file():
    magic = b"samebits trace/1\n"
    columns = [{"name": "embed", "dtype": "bf16", "width": 96, "scored": False},
               {"name": "layers.3.mlp.down.acc", "dtype": "f32", "width": 96, "scored": False},
               {"name": "logp", "dtype": "f32", "width": 1, "scored": True}]
    manifest = {"samebits": "trace/1", **HEADER, "ids": ["a", "ü"], "tokens": [DIGEST, DIGEST],
                "rows": 3, "scored": 1, "columns": columns}
    rows, scored = [(0, 0), (0, 1), (1, 0)], [1]

    def column(count, flag=0):
        flags = bytes([flag] * count)
        return struct.pack(f"<{count}Q", *range(count)) + flags + bytes(-count % 8)

    def payload(rows_=rows, scored_=scored, flag=0):
        out = b"".join(struct.pack("<2i", *r) for r in rows_)
        out += struct.pack(f"<{len(scored_)}i", *scored_) + bytes(-4 * len(scored_) % 8)
        return out + column(len(rows_)) + column(len(rows_), flag) + column(len(scored_))

    def whole(data=None, **changes):
        text = compact({**manifest, **changes}).encode()
        text += b" " * (-(len(magic) + len(text) + 1) % 8)
        return magic + text + b"\n" + (payload() if data is None else data)

    # Without its checksum, which the harness adds.
    def case(name, data=None, **changes):
        put("trace_file", name, whole(data, **changes))

    def with_column(**changes):
        return [{**columns[0], **changes}, *columns[1:]]

    sealed = whole() + b"sha256 " + hashlib.sha256(whole()).hexdigest().encode() + b"\n"
    put("trace_file", "good", sealed)
    put("trace_file", "file:damaged", sealed[:100] + b"x" + sealed[101:])
    put("trace_file", "file:cut", magic)
    put("trace_file", "file:version", b"samebits trace/2\n{}\n")
    put("trace_file", "file:no-json", magic + b"{\n" + payload())
    put("trace_file", "file:no-end", magic + b"{}")
    case("manifest:manifest-version", samebits="trace/9")
    case("manifest:manifest-header", profile=1)
    case("manifest:manifest-ids", ids=3)
    case("manifest:manifest-tokens", tokens=[3])
    case("manifest:manifest-rows", rows=-1)
    case("manifest:manifest-columns", columns=3)
    case("columns:column-name", columns=[{}])
    case("columns:column-boundary", columns=with_column(name="layers.01.out"))
    case("columns:column-dtype-kind", columns=with_column(dtype=1))
    case("columns:column-dtype", columns=with_column(dtype="f64"))
    case("columns:column-scored", columns=with_column(scored=1))
    case("columns:column-width-kind", columns=with_column(width=-1))
    case("columns:column-width", columns=with_column(width=0))
    case("columns:column-order", columns=with_column(name="logp"))
    case("columns:column-none", payload()[:-64], columns=[])
    case("columns:flag", payload(flag=2))
    case("columns:short", payload()[:-8])
    case("columns:long", payload() + bytes(8))
    case("ids:ids-count", ids=["a"])
    case("ids:ids-empty", ids=["", "b"])
    case("ids:ids-twice", ids=["a", "a"])
    case("ids:ids-digest", tokens=["x", DIGEST])
    case("ids:ids-no-rows", ids=["a", "b", "c"], tokens=[DIGEST] * 3)
    case("rows:rows-none", b"", ids=[], tokens=[], rows=0, scored=0)
    case("rows:rows-order", payload([(0, 1), (0, 0), (1, 0)]))
    case("rows:rows-range", payload([(0, 0), (0, 1), (7, 0)]))
    case("rows:scored-range", payload(scored_=[3]))


# ---- recorded matrix steps ----

def mma_golden():
    trial = bytes(1792)
    special = struct.pack("<4H", 0x7F80, 0x3F80, 0x0001, 0x7FC0) * 64
    values = struct.pack("<4H", 0x3F80, 0xBF81, 0x4049, 0x0080) * 96
    floats = struct.pack("<4f", 1.0, -1e-40, 3e38, 0.0) * 64

    def case(name, trials, data):
        put("mma_golden", name, b"SBMMAV1\0" + struct.pack("<I", trials) + data)

    case("zeros", 1, trial)
    case("values", 1, values + floats)
    case("special", 1, special[:512] + values[:256] + floats)
    case("none", 0, b"")
    case("short", 2, trial)
    put("mma_golden", "magic", b"SBMMAV2\0" + bytes(4))


def main():
    for reader in (safetensors, config, token_rows, score_file, trace_file, mma_golden):
        folder = CORPUS / reader.__name__
        if folder.is_dir():
            for path in folder.iterdir():
                if not path.name.startswith("found-"):
                    path.unlink()
        reader()
        files = [p for p in folder.iterdir()]
        largest = max(p.stat().st_size for p in files)
        print(f"{reader.__name__:12s} {len(files):3d} files, largest {largest} bytes")


if __name__ == "__main__":
    main()
