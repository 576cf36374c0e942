// One operator at one shape, with all its bytes: what acceptance (gate/acceptance.h) runs on the
// oracle and on another backend. Buffers live in the case; a CasePlace says where a run finds them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "samebits/model/architecture.h"
#include "samebits/ops/ops.h"

namespace sb {

enum class CaseRole : uint8_t {
  kInput,  // has to be unchanged after every run
  kRows,   // an output with one leading row for each row of the run; further rows stay untouched
  kWhole,  // an output of any other form: compared as a whole, at the case's own row count
};

struct CaseBuffer {
  std::string name;
  View shape;  // contiguous, its pointer is not used
  CaseRole role = CaseRole::kInput;
  std::vector<uint8_t> bytes;  // kInput: the values; outputs: what the oracle made
  int64_t row_bytes() const { return shape.shape[0] ? shape.bytes() / shape.shape[0] : 0; }
};

// Addresses of a case's buffers in one memory.
struct CasePlace {
  const std::vector<CaseBuffer>* buffers = nullptr;
  std::vector<char*> base;
  DeviceId device;

  // The buffer as a view; with `rows`, its first rows only.
  View view(int buffer, int64_t rows = -1) const;
  const bf16* weights(int buffer) const { return reinterpret_cast<const bf16*>(base[buffer]); }
};

struct OperatorCase {
  std::string op, shape;
  int64_t rows = 0;  // most rows of a run
  bool cut = true;   // whether runs of fewer rows are meaningful
  std::vector<CaseBuffer> buffers;
  std::function<Status(Ctx&, const CasePlace&, int64_t rows)> run;
};

struct CaseOptions {
  uint64_t seed = 0;
  int64_t rows = 257;         // most rows of operators that are cheap to replay
  int64_t head_rows = 17;     // of the head, whose logits fill memory
  int64_t vocab_rows = 4096;  // rows of the embedding table that is made
  std::string only;           // an operator's name; empty: all
};

// Every forward operator at every shape that `arch` has, one after the other; each is made when it
// is asked for, since the large ones hold gigabytes.
class OperatorCases {
 public:
  OperatorCases(const Architecture& arch, const CaseOptions& options, ThreadPool& pool);
  size_t count() const { return makers_.size(); }
  OperatorCase make(size_t i) const { return makers_[i](); }
  const std::string& names() const { return names_; }  // of all operators, comma-separated

 private:
  std::vector<std::function<OperatorCase()>> makers_;
  std::string names_;
};

}  // namespace sb
