#include "samebits/ops/check.h"

#include "samebits/arith/chain.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

std::string shape_text(const View& v) {
  std::string s = std::string(dtype_name(v.dtype)) + "[";
  for (int i = 0; i < v.rank; ++i) s += (i ? ", " : "") + std::to_string(v.shape[i]);
  return s + "]";
}

std::string want_text(Dtype dtype, std::initializer_list<int64_t> shape) {
  std::string s = std::string(dtype_name(dtype)) + "[";
  bool first = true;
  for (int64_t d : shape) {
    s += (first ? "" : ", ") + (d < 0 ? std::string("any") : std::to_string(d));
    first = false;
  }
  return s + "]";
}

// Bytes from the first to one past the last element of dimensions [first, rank).
int64_t span_bytes(const View& v, int first) {
  int64_t span = 1;
  for (int i = first; i < v.rank; ++i) span += (v.shape[i] - 1) * v.stride[i];
  return span * dtype_bytes(v.dtype);
}

bool apart(const View& a, const View& b) {
  if (!a || !b || a.numel() == 0 || b.numel() == 0) return true;
  const int64_t between = static_cast<const char*>(b.ptr) - static_cast<const char*>(a.ptr);
  if (between >= span_bytes(a, 0) || -between >= span_bytes(b, 0)) return true;
  // Column ranges of one buffer: equal row strides, and the rows interleave without touching.
  const int64_t row = a.stride[0] * dtype_bytes(a.dtype);
  if (row <= 0 || row != b.stride[0] * dtype_bytes(b.dtype)) return false;
  const int64_t offset = ((between % row) + row) % row;
  return offset >= span_bytes(a, 1) && offset + span_bytes(b, 1) <= row;
}

// No two elements at one address: each dimension steps over all that have smaller strides.
bool distinct_elements(const View& v) {
  for (int i = 0; i < v.rank; ++i) {
    if (v.shape[i] <= 1) continue;
    int64_t inner = 1;
    for (int j = 0; j < v.rank; ++j) {
      if (j != i && v.stride[j] <= v.stride[i]) inner += (v.shape[j] - 1) * v.stride[j];
    }
    if (v.stride[i] < inner) return false;
  }
  return true;
}

}  // namespace

void Check::fail(const std::string& why) { reasons_.push_back(why); }

Check& Check::that(bool ok, const std::string& why) {
  if (!ok) fail(why);
  return *this;
}

Check& Check::view(const char* name, const View& v, Dtype dtype,
                   std::initializer_list<int64_t> shape) {
  const std::string what = std::string(name) + " is " + shape_text(v);
  bool same = v.dtype == dtype && v.rank == static_cast<int>(shape.size());
  int i = 0;
  bool empty = false;
  for (int64_t d : shape) {
    if (same && d >= 0 && v.shape[i] != d) same = false;
    if (same && v.shape[i] == 0) empty = true;
    ++i;
  }
  if (!same) {
    fail(what + ", needs " + want_text(dtype, shape));
    return *this;
  }
  devices_.emplace_back(name, v.device);
  if (!v.ptr && !empty) fail(what + " with a null pointer");
  if (reinterpret_cast<uintptr_t>(v.ptr) % static_cast<uintptr_t>(dtype_bytes(dtype)) != 0) {
    fail(what + " at an address that is not a multiple of its element size");
  }
  if (!empty && v.shape[v.rank - 1] > 1 && v.stride[v.rank - 1] != 1) {
    fail(what + ", whose last dimension has stride " + std::to_string(v.stride[v.rank - 1]) +
         " and needs 1");
  }
  return *this;
}

Check& Check::out(const char* name, const View& v, Dtype dtype,
                  std::initializer_list<int64_t> shape) {
  const size_t before = reasons_.size();
  view(name, v, dtype, shape);
  if (reasons_.size() == before && v.numel() > 0 && !distinct_elements(v)) {
    fail(std::string(name) + " is " + shape_text(v) + ", whose strides let elements share memory");
  }
  return *this;
}

Check& Check::optional(const char* name, const View& v, Dtype dtype,
                       std::initializer_list<int64_t> shape) {
  return v ? view(name, v, dtype, shape) : *this;
}

Check& Check::optional_out(const char* name, const View& v, Dtype dtype,
                           std::initializer_list<int64_t> shape) {
  return v ? out(name, v, dtype, shape) : *this;
}

Check& Check::weight(const char* name, const WeightView& w, int64_t k) {
  const std::string what = std::string(name) + " is a weight [" + std::to_string(w.n) + ", " +
                           std::to_string(w.k) + "], ld " + std::to_string(w.ld);
  if (!w.ptr || w.n <= 0) fail(what + " without rows");
  if (w.k != k) fail(what + ", needs " + std::to_string(k) + " columns");
  if (w.ld < w.k) fail(what + ", whose rows overlap");
  return *this;
}

Check& Check::kv(const KvView& kv, int64_t heads, int64_t width) {
  const std::string what =
      std::string("the KV view (") + (kv.kind == KvView::kPaged ? "paged" : "linear") + ")";
  if (!kv.k || !kv.v) fail(what + " has no memory");
  if (kv.head_stride < width && heads > 1) {
    fail(what + " has head stride " + std::to_string(kv.head_stride) + ", heads are " +
         std::to_string(width) + " wide");
  }
  if (kv.kind == KvView::kPaged && (kv.page_size <= 0 || kv.num_pages <= 0)) {
    fail(what + " has page size " + std::to_string(kv.page_size) + " and " +
         std::to_string(kv.num_pages) + " pages");
  }
  if (kv.table.dtype != Dtype::kI32 || kv.table.rank < 1 || !kv.table.ptr) {
    fail(what + " has no i32 table");
  }
  return *this;
}

Check& Check::subtree_of_each_rank(int ranks) {
  static_assert(kGemmTreeRule.leaves == kHeadRule.shards);
  return that(ranks > 0 && kHeadRule.shards % ranks == 0,
              std::to_string(ranks) + " ranks do not divide the 8 leaves or shards");
}

Check& Check::no_overlap(const char* out_name, const View& out, const char* in_name,
                         const View& in) {
  return that(apart(out, in),
              std::string(out_name) + " overlaps " + in_name + "; this operator needs them apart");
}

Check& Check::same_or_apart(const char* out_name, const View& out, const char* in_name,
                            const View& in) {
  const bool same = out.ptr == in.ptr && out.dtype == in.dtype && out.rank == in.rank &&
                    out.shape == in.shape && out.stride == in.stride;
  return that(same || apart(out, in), std::string(out_name) + " overlaps a part of " + in_name +
                                          "; in place it has to be the same view");
}

Status Check::done(const Ctx& ctx) {
  if (!ctx.exec.device || !ctx.exec.pool) {
    fail("the context has no device or no threads");
  } else {
    for (const auto& [name, device] : devices_) {
      if (device != ctx.exec.device->id()) fail(std::string(name) + " lies on another device");
    }
  }
  if (!arith::chain_kernels(ctx.exec.profile, ctx.exec.isa)) {
    fail(std::string("this CPU or build has no ") + isa_name(ctx.exec.isa) + " matrix steps");
  }
  if (reasons_.empty()) return {};
  return tl::unexpected(Refusal{Code::kRefused,
                                std::string("run ") + op_ + " at " + boundary_name(site_.boundary),
                                reasons_,
                                {}});
}

}  // namespace sb
