// Session: one rank's engine: arena, decoder, rotary tables, cache and records around one model on
// one device. Training and rollout are both sequences of step() calls.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "samebits/chain/decoder.h"
#include "samebits/chain/schedule.h"
#include "samebits/chain/trace_taps.h"

namespace sb {

struct SessionOptions {
  Profile profile = Profile::kSm90;
  Isa isa = arith_best_isa();
  BackendInfo backend = cpu_backend();
  float temperature = 1.0f;
  std::vector<int32_t> suppress;
  KvCacheOptions cache;  // num_pages 0: as many as the run needs
  std::vector<Fault> faults;
  bool poison_arena = true;  // buffers start as NaN

  static Isa arith_best_isa();
};

// Sampling of a step's head rows; absent: their targets are scored.
struct DrawWork {
  bool greedy = false;
  uint64_t seed = 0;
  std::vector<uint64_t> row_hash;  // per head row
  std::vector<int32_t> position;   // of the drawn token
};

struct HeadResult {
  std::vector<float> logp;     // per head row; of its target, or of the drawn token
  std::vector<int32_t> token;  // drawn; empty when scoring
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> create(const Model& model, Device& device,
                                                 ThreadPool& pool, Parallel& parallel,
                                                 const SessionOptions& options);

  // Makes the paged cache; before the first paged step.
  Status make_cache(std::array<int64_t, 2> num_pages);
  KvCache& cache() { return *cache_; }

  // Runs one step. Every input is checked; nothing runs if the batch is refused.
  Result<HeadResult> step(const HostBatch& batch, ScheduleKind schedule,
                          const DrawWork* draw = nullptr);
  // The same without a head, from the output of layer `first_layer` − 1 (bf16 bits, [T, hidden]):
  // what `first_layer` … and the final norm make of it.
  Result<std::vector<uint16_t>> forward_from(const HostBatch& batch, ScheduleKind schedule,
                                             int first_layer, const std::vector<uint16_t>& given);

  void set_taps(Taps* taps) { ctx_.taps = taps; }
  void set_saved(SavedSink* saved) { ctx_.saved = saved; }
  const Records& records() const { return records_; }
  size_t arena_high_water() const { return arena_.high_water_bytes(); }
  const SessionOptions& options() const { return options_; }
  const Model& model() const { return model_; }

 private:
  Session(const Model& model, Device& device, const SessionOptions& options);
  Result<View> upload(const void* data, Dtype dtype, int64_t n);
  Result<View> run_layers(const HostBatch& batch, ScheduleKind schedule, int first_layer,
                          const std::vector<uint16_t>* given);

  const Model& model_;
  SessionOptions options_;
  Arena arena_;
  Records records_;
  RopeCache rope_;
  Batch batch_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
  Ctx ctx_;
};

}  // namespace sb
