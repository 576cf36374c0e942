// Ctx: the first argument of every operator. It borrows everything; one Ctx belongs to one rank.
#pragma once

#include "samebits/backend/devices.h"
#include "samebits/backend/exec.h"
#include "samebits/base/arena.h"
#include "samebits/base/parallel.h"
#include "samebits/contract/boundary.h"
#include "samebits/ops/records.h"

namespace sb {

struct Ctx;

// Receives boundary values while a run executes. A tap never changes bits: it only asks operators
// for extra stores.
class Taps {
 public:
  virtual ~Taps() = default;
  virtual bool wants(Boundary b) const = 0;
  // value: bf16 or f32 [rows, columns], contiguous rows. Its row 0 is row `row_begin` of the batch,
  // or of the batch's head rows for final head boundaries. column_begin: first logical column this
  // rank holds, of `width` in the whole row.
  virtual Status emit(Ctx& ctx, Boundary b, const View& value, int64_t row_begin,
                      int64_t column_begin, int64_t width) = 0;
};

// Receives what a backward pass will need, on every rank and on the device: named boundaries, the
// log-sum-exp of attention and (m, S) of the head. Like a tap it never changes bits.
class SavedSink {
 public:
  virtual ~SavedSink() = default;
  virtual bool keeps(Boundary b) const = 0;
  virtual bool keeps_sums() const = 0;  // lse and (m, S)
  // value: [rows, columns] of this rank; copied before the call returns or, on a GPU, in stream
  // order.
  virtual Status keep(Ctx& ctx, Boundary b, const View& value) = 0;
  virtual Status keep_lse(Ctx& ctx, int layer, const View& lse) = 0;       // f32 [T, heads]
  virtual Status keep_max_sum(Ctx& ctx, int64_t row, const View& ms) = 0;  // f32 [rows, 2]
};

struct Ctx {
  Exec exec;
  Arena* arena = nullptr;
  Records* records = nullptr;
  Taps* taps = nullptr;                 // may be null
  SavedSink* saved = nullptr;           // may be null
  Parallel* parallel = nullptr;         // never null; size 1 is the identity
  BackendInfo backend = cpu_backend();  // as requested by the user
  uint64_t kv_epoch = 0;                // weights in use; a cache of another epoch is refused

  bool wants(Boundary b) const { return (taps && taps->wants(b)) || (saved && saved->keeps(b)); }
};

// Where in the model an operator runs: names its record and its refusals.
struct Site {
  Boundary boundary;
  LayerType type = LayerType::kSliding;
};

}  // namespace sb
