"""Runs token rows through transformers' Gemma 4 text model and keeps the boundaries that a trace
has too: embed, layers.i.out, final_norm and head.softcap (its final logits).

Eager attention. The embedding scale is forced to √hidden rounded to bf16, whatever the dtype of the
run: transformers rounds it only where the weights are bf16.
"""

import numpy as np
import torch
from transformers import Gemma4ForCausalLM


def boundaries(layers):
    return ["embed", *[f"layers.{i}.out" for i in range(layers)], "final_norm", "head.softcap"]


def load(folder, dtype, device):
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    model, info = Gemma4ForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", output_loading_info=True
    )
    problems = {
        kind: sorted(info[kind])
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
        if info[kind]
    }
    problems.get("missing_keys", []) == ["lm_head.weight"] and problems.pop("missing_keys")
    if problems:
        raise ValueError(f"{folder}: weights were not loaded one to one: {problems}")
    if model.config._attn_implementation != "eager":
        raise ValueError("attention is not eager")
    embed = model.model.embed_tokens
    if model.lm_head.weight.data_ptr() != embed.weight.data_ptr():
        raise ValueError("the head is not tied to the embedding")
    scale = torch.tensor(model.config.hidden_size**0.5, dtype=torch.float32).to(torch.bfloat16)
    embed.embed_scale = scale.to(torch.float32)
    return model.to(device).eval()


@torch.no_grad()
def run(model, rows):
    """rows: token lists. Returns name → float32 [all tokens of all rows, width]."""
    text = model.model
    got = {name: [] for name in boundaries(len(text.layers))}
    hooks = []

    def keep(name):
        def hook(_module, _args, out):
            out = out[0] if isinstance(out, tuple) else out
            got[name].append(out[0].float().cpu().numpy())

        return hook

    hooks.append(text.embed_tokens.register_forward_hook(keep("embed")))
    for i, layer in enumerate(text.layers):
        hooks.append(layer.register_forward_hook(keep(f"layers.{i}.out")))
    hooks.append(text.norm.register_forward_hook(keep("final_norm")))
    try:
        for tokens in rows:
            ids = torch.tensor([tokens], device=text.embed_tokens.weight.device)
            logits = model(input_ids=ids, use_cache=False).logits
            got["head.softcap"].append(logits[0].float().cpu().numpy())
    finally:
        for hook in hooks:
            hook.remove()
    return {name: np.concatenate(parts) for name, parts in got.items()}
