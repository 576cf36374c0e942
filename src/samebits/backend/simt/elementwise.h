// Kernels without a sum: embedding, RoPE, cache writes, residual, layer_scalar, gelu · up, and the
// gathering of rows. An item is one row.
#pragma once

#include "samebits/arith/gelu.h"
#include "samebits/backend/simt/kernel_load.h"
#include "samebits/contract/rules.h"

namespace sb::simt {

// What all of these share: 256 threads, no shared memory, an item for each row of `out`.
struct RowKernel {
  static constexpr int kThreads = 256;
  template <class B>
  struct Shared {};
};

template <EmbedRule C>
struct Embed : RowKernel {
  using Args = EmbedArgs;
  static int64_t items(const Args& a) { return a.out.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    if (ptr<int32_t>(a.seq)[row] < 0) return;
    const int64_t hidden = a.out.shape[1];
    const float root = arith::sqrt(static_cast<float>(hidden));
    const bool round = C.round_scale && a.deviation != Deviation::kEmbedScaleUnrounded;
    const float scale = round ? rounded(root) : root;
    const bf16* e = ptr<bf16>(a.table) + ptr<int32_t>(a.token)[row] * a.table.stride[0];
    bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0];
    b.each([&](int t) {
      for (int64_t i = t; i < hidden; i += kThreads) {
        out[i] = round_bf16(arith::mul(widen(e[i]), scale));
      }
    });
  }
};

template <RopeRule C>
struct Rope : RowKernel {
  using Args = RopeArgs;
  static int64_t items(const Args& a) { return a.x.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    if (ptr<int32_t>(a.seq)[row] < 0) return;
    const int64_t heads = a.x.shape[1], width = a.x.shape[2];
    const int64_t block = a.table.shape[2], pairs = a.table.shape[3];
    const int64_t half = a.deviation == Deviation::kRopePairing ? pairs : width / 2;
    const int64_t pos = ptr<int32_t>(a.pos)[row];
    const float* cos =
        ptr<float>(a.table) + pos / block * a.table.stride[0] + pos % block * a.table.stride[2];
    const float* sin = cos + a.table.stride[1];
    b.each([&](int t) {
      // A thread takes a whole pair, so x and out may be one buffer; other elements are copied.
      const int64_t units = width - pairs;
      for (int64_t j = t; j < heads * units; j += kThreads) {
        const int64_t h = j / units, i = j % units;
        const bf16* x = ptr<bf16>(a.x) + row * a.x.stride[0] + h * a.x.stride[1];
        bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0] + h * a.out.stride[1];
        if (i >= pairs) {
          const int64_t e = i < half ? i : i + pairs;
          out[e] = x[e];
          continue;
        }
        const float p = widen(x[i]), q = widen(x[i + half]);
        out[i] = round_bf16(arith::sub(arith::mul(p, cos[i]), arith::mul(q, sin[i])));
        out[i + half] = round_bf16(arith::add(arith::mul(q, cos[i]), arith::mul(p, sin[i])));
      }
    });
  }
};

template <KvWriteRule C>
struct KvWrite : RowKernel {
  using Args = KvWriteArgs;
  static int64_t items(const Args& a) { return a.k.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    const int64_t slot = ptr<int32_t>(a.slot)[row];
    if (slot < 0) return;
    const int64_t heads = a.k.shape[1], width = a.k.shape[2];
    const int64_t to =
        slot / a.kv.page_size * a.kv.page_stride + slot % a.kv.page_size * a.kv.token_stride;
    b.each([&](int t) {
      for (int64_t j = t; j < heads * width; j += kThreads) {
        const int64_t h = j / width, i = j % width;
        a.kv.k[to + h * a.kv.head_stride + i] =
            ptr<bf16>(a.k)[row * a.k.stride[0] + h * a.k.stride[1] + i];
        a.kv.v[to + h * a.kv.head_stride + i] =
            ptr<bf16>(a.v)[row * a.v.stride[0] + h * a.v.stride[1] + i];
      }
    });
  }
};

template <ResidualRule C>
struct Residual : RowKernel {
  using Args = ResidualArgs;
  static int64_t items(const Args& a) { return a.out.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    const bf16* x = ptr<bf16>(a.x) + row * a.x.stride[0];
    const bf16* p = ptr<bf16>(a.p) + row * a.p.stride[0];
    bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0];
    b.each([&](int t) {
      for (int64_t i = t; i < a.out.shape[1]; i += kThreads) {
        out[i] = round_bf16(arith::add(widen(x[i]), widen(p[i])));
      }
    });
  }
};

template <LayerScaleRule C>
struct LayerScale : RowKernel {
  using Args = LayerScaleArgs;
  static int64_t items(const Args& a) { return a.out.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    const float s = a.deviation == Deviation::kScalarDropped ? 1.0f : widen(ptr<bf16>(a.scalar)[0]);
    const bf16* x = ptr<bf16>(a.x) + row * a.x.stride[0];
    bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0];
    b.each([&](int t) {
      for (int64_t i = t; i < a.out.shape[1]; i += kThreads) {
        out[i] = round_bf16(arith::mul(widen(x[i]), s));
      }
    });
  }
};

template <GeluMulRule C>
struct GeluMul : RowKernel {
  using Args = GeluMulArgs;
  static int64_t items(const Args& a) { return a.out.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    const bf16* gate = ptr<bf16>(a.gate) + row * a.gate.stride[0];
    const bf16* up = ptr<bf16>(a.up) + row * a.up.stride[0];
    bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0];
    bf16* gelu = a.gelu.ptr ? ptr<bf16>(a.gelu) + row * a.gelu.stride[0] : nullptr;
    b.each([&](int t) {
      for (int64_t i = t; i < a.out.shape[1]; i += kThreads) {
        const bf16 g = round_bf16(arith::gelu_tanh(widen(gate[i])));
        out[i] = round_bf16(arith::mul(widen(g), widen(up[i])));
        if (gelu) gelu[i] = g;
      }
    });
  }
};

struct Gather : RowKernel {
  using Args = GatherArgs;
  static int64_t items(const Args& a) { return a.out.shape[0]; }
  template <class B>
  SB_SIMT static void item(B& b, const Args& a, int64_t row) {
    const bf16* x = ptr<bf16>(a.x) + ptr<int32_t>(a.index)[row] * a.x.stride[0];
    bf16* out = ptr<bf16>(a.out) + row * a.out.stride[0];
    b.each([&](int t) {
      for (int64_t i = t; i < a.out.shape[1]; i += kThreads) out[i] = x[i];
    });
  }
};

}  // namespace sb::simt
