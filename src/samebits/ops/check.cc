#include "samebits/ops/check.h"

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

const char* last_byte(const View& v) {
  int64_t span = 1;
  for (int i = 0; i < v.rank; ++i) span += (v.shape[i] - 1) * v.stride[i];
  return static_cast<const char*>(v.ptr) + span * dtype_bytes(v.dtype);
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

Check& Check::optional(const char* name, const View& v, Dtype dtype,
                       std::initializer_list<int64_t> shape) {
  return v ? view(name, v, dtype, shape) : *this;
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
  const std::string what = std::string("the KV view (") +
                           (kv.kind == KvView::kPaged ? "paged" : "linear") + ")";
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

Check& Check::no_overlap(const char* out_name, const View& out, const char* in_name,
                         const View& in) {
  if (!out || !in || out.numel() == 0 || in.numel() == 0) return *this;
  const char* a = static_cast<const char*>(out.ptr);
  const char* b = static_cast<const char*>(in.ptr);
  if (a < last_byte(in) && b < last_byte(out)) {
    fail(std::string(out_name) + " overlaps " + in_name + "; this operator needs them apart");
  }
  return *this;
}

Status Check::done(const Ctx& ctx) {
  if (!ctx.exec.device || !ctx.exec.pool) fail("the context has no device or no threads");
  if (reasons_.empty()) return {};
  return tl::unexpected(Refusal{Code::kRefused,
                                std::string("run ") + op_ + " at " + boundary_name(site_.boundary),
                                reasons_,
                                {}});
}

}  // namespace sb
