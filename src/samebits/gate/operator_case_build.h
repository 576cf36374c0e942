// Helpers that build cases: buffers with random contents of a stated spread.
#pragma once

#include "samebits/base/digest.h"
#include "samebits/gate/operator_case.h"

namespace sb {

// Builds one case. Values come from mix64 of (seed, buffer, index): sums of four 16-bit uniforms,
// rounded to bf16, so that filling gigabytes takes seconds.
class CaseBuilder {
 public:
  CaseBuilder(std::string op, std::string shape, int64_t rows, uint64_t seed, ThreadPool& pool)
      : seed_(seed), pool_(pool) {
    c_.op = std::move(op);
    c_.shape = std::move(shape);
    c_.rows = rows;
  }
  // bf16 values of standard deviation `sigma` around `mean`.
  int random(const char* name, std::initializer_list<int64_t> shape, float sigma, float mean = 0);
  int floats(const char* name, std::initializer_list<int64_t> shape, float sigma);
  int ints(const char* name, const std::vector<int32_t>& values,
           std::initializer_list<int64_t> shape);
  int words(const char* name, int64_t count);
  int bytes(const char* name, const std::vector<uint8_t>& values);
  // An output, or scratch that the contract fixes too; 0xff bytes before a run.
  int output(const char* name, Dtype dtype, std::initializer_list<int64_t> shape,
             CaseRole role = CaseRole::kRows);

  OperatorCase done(std::function<Status(Ctx&, const CasePlace&, int64_t)> run, bool cut = true) {
    c_.run = std::move(run);
    c_.cut = cut;
    return std::move(c_);
  }

 private:
  int add(const char* name, Dtype dtype, std::initializer_list<int64_t> shape, CaseRole role);
  OperatorCase c_;
  uint64_t seed_;
  ThreadPool& pool_;
};

}  // namespace sb
