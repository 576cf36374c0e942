// Checks that operators make before anything runs. A failed one is a Refusal that names the
// operator, the argument, what it was and what it has to be.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "samebits/backend/op_args.h"
#include "samebits/ops/ctx.h"

namespace sb {

class Check {
 public:
  Check(const char* op, const Site& site) : op_(op), site_(site) {}

  // Dtype, rank, shape, device and pointer; −1 in shape matches anything. The last dimension must
  // be contiguous, the others may have any stride. Empty tensors may have a null pointer.
  Check& view(const char* name, const View& v, Dtype dtype, std::initializer_list<int64_t> shape);
  // As view, and no two elements may share an address: the operator writes it.
  Check& out(const char* name, const View& v, Dtype dtype, std::initializer_list<int64_t> shape);
  // The same for views that may be absent.
  Check& optional(const char* name, const View& v, Dtype dtype,
                  std::initializer_list<int64_t> shape);
  Check& optional_out(const char* name, const View& v, Dtype dtype,
                      std::initializer_list<int64_t> shape);
  Check& weight(const char* name, const WeightView& w, int64_t k);
  Check& kv(const KvView& kv, int64_t heads, int64_t width);
  Check& that(bool ok, const std::string& why);
  // The 8 leaves or shards of a contract divide into one subtree a rank: 1, 2, 4 or 8 ranks.
  Check& subtree_of_each_rank(int ranks);
  // The two views share no byte. Column ranges of one buffer are apart although their spans cross.
  Check& no_overlap(const char* out_name, const View& out, const char* in_name, const View& in);
  // As no_overlap, but working in place, on the very same view, is fine.
  Check& same_or_apart(const char* out_name, const View& out, const char* in_name, const View& in);

  Status done(const Ctx& ctx);

 private:
  void fail(const std::string& why);
  const char* op_;
  Site site_;
  std::vector<std::string> reasons_;
  std::vector<std::pair<const char*, DeviceId>> devices_;  // of every view, compared in done()
};

}  // namespace sb
