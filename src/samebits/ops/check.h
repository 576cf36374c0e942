// Checks that operators make before anything runs. A failed one is a Refusal that names the operator,
// the argument, what it was and what it has to be.
#pragma once

#include <string>

#include "samebits/backend/op_args.h"
#include "samebits/ops/ctx.h"

namespace sb {

class Check {
 public:
  Check(const char* op, const Site& site) : op_(op), site_(site) {}

  // Dtype, rank, device and pointer; −1 in shape matches anything. Rows (all but the first one or
  // two dimensions) must be contiguous. Empty tensors may have a null pointer.
  Check& view(const char* name, const View& v, Dtype dtype, std::initializer_list<int64_t> shape);
  // As view, but an absent view is fine.
  Check& optional(const char* name, const View& v, Dtype dtype, std::initializer_list<int64_t> shape);
  Check& weight(const char* name, const WeightView& w, int64_t k);
  Check& kv(const KvView& kv, int64_t heads, int64_t width);
  Check& that(bool ok, const std::string& why);
  // Outputs must not overlap inputs unless they are the same view.
  Check& no_overlap(const char* out_name, const View& out, const char* in_name, const View& in);

  Status done(const Ctx& ctx);

 private:
  void fail(const std::string& why);
  const char* op_;
  Site site_;
  std::vector<std::string> reasons_;
};

}  // namespace sb
