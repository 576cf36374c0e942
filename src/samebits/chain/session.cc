#include "samebits/chain/session.h"

#include <algorithm>
#include <cmath>

#include "samebits/arith/chain.h"
#include "samebits/contract/head_shape.h"

namespace sb {
namespace {

// Operators write where a slot says; it has to lie in the cache.
Status check_slots(const HostBatch& batch, const KvCacheOptions& cache) {
  for (int g = 0; g < 2; ++g) {
    const int64_t end = cache.num_pages[g] * cache.page_size[g];
    for (const int32_t slot : batch.slot[g]) {
      if (slot < end) continue;
      return refuse(Code::kRefused, "run a batch",
                    "slot " + std::to_string(slot) + " lies outside the cache's " +
                        std::to_string(end) + " slots for " + layer_type_name(LayerType(g)) +
                        " layers");
    }
  }
  return {};
}

}  // namespace

Isa SessionOptions::arith_best_isa() { return arith::best_isa(); }

Session::Session(const Model& model, Device& device, const SessionOptions& options)
    : model_(model),
      options_(options),
      arena_(device),
      rope_(device, model.arch, options.faults),
      batch_(device) {}

Result<std::unique_ptr<Session>> Session::create(const Model& model, Device& device,
                                                 ThreadPool& pool, Parallel& parallel,
                                                 const SessionOptions& options) {
  SB_TRY(plan, plan_rank(model.arch, parallel.rank(), parallel.size()));
  if (!std::isfinite(options.temperature) || options.temperature <= 0) {
    return refuse(Code::kRefused, "score at temperature " + std::to_string(options.temperature),
                  "it must be finite and positive", "--temperature 1");
  }
  if (!arith::chain_kernels(options.profile, options.isa)) {
    return refuse(Code::kRefused, std::string("run on ") + isa_name(options.isa),
                  "this CPU or build lacks it", "plain runs everywhere");
  }
  for (int32_t id : options.suppress) {
    if (id < 0 || id >= model.arch.vocab) {
      return refuse(Code::kBrokenData, "suppress id " + std::to_string(id),
                    "the vocabulary is 0 … " + std::to_string(model.arch.vocab - 1));
    }
  }
  std::unique_ptr<Session> s(new Session(model, device, options));
  std::sort(s->options_.suppress.begin(), s->options_.suppress.end());
  s->arena_.set_poison(options.poison_arena);
  s->decoder_ = std::make_unique<Decoder>(model, s->rope_, plan, options.faults);
  s->ctx_.exec = {&device,         device.stream(), &pool,
                  options.profile, options.isa,     options.backend.arch};
  s->ctx_.arena = &s->arena_;
  s->ctx_.records = &s->records_;
  s->ctx_.parallel = &parallel;
  s->ctx_.backend = options.backend;
  s->ctx_.kv_epoch = model.epoch;
  return s;
}

Status Session::make_cache(std::array<int64_t, 2> num_pages) {
  KvCacheOptions options = options_.cache;
  for (int g = 0; g < 2; ++g) {
    if (options.num_pages[g] == 0) options.num_pages[g] = num_pages[g];
  }
  SB_TRY(cache,
         KvCache::create(*ctx_.exec.device, model_.arch, decoder_->plan(), model_.epoch, options));
  cache_ = std::move(cache);
  return {};
}

Result<View> Session::upload(const void* data, Dtype dtype, int64_t n) {
  SB_TRY(v, arena_.take(dtype, {n}));
  ctx_.exec.device->copy_in(v.ptr, data, static_cast<size_t>(v.bytes()));
  return v;
}

Result<View> Session::run_layers(const HostBatch& batch, ScheduleKind schedule, int first_layer,
                                 const std::vector<uint16_t>* given) {
  SB_DO(check_batch(batch, model_.arch));
  SB_DO(batch_.set(batch));
  std::vector<KvView> kv;
  if (batch.paged()) {
    SB_ASSERT(cache_ != nullptr, "a paged step before make_cache");
    SB_DO(check_slots(batch, cache_->options()));
    for (int i = 0; i < model_.arch.num_layers(); ++i) kv.push_back(cache_->layer_view(i));
  }
  View start;
  if (given) {
    SB_TRY(v, arena_.take(Dtype::kBf16, {batch.rows(), model_.arch.hidden}));
    if (static_cast<int64_t>(given->size()) != v.numel()) {
      return refuse(Code::kRefused, "start at layer " + std::to_string(first_layer),
                    "the given values are not [rows, hidden]");
    }
    ctx_.exec.device->copy_in(v.ptr, given->data(), static_cast<size_t>(v.bytes()));
    start = v;
  }
  return decoder_->forward(ctx_, batch_, batch, schedule, kv, first_layer, start);
}

Result<std::vector<uint16_t>> Session::forward_from(const HostBatch& batch, ScheduleKind schedule,
                                                    int first_layer,
                                                    const std::vector<uint16_t>& given) {
  const int layers = model_.arch.num_layers();
  if (first_layer < 0 || first_layer > layers) {
    return refuse(Code::kRefused, "start at layer " + std::to_string(first_layer),
                  "the model has layers 0 … " + std::to_string(layers - 1),
                  "one of these, or " + std::to_string(layers) + " for the final norm alone");
  }
  ArenaScope scope(arena_);
  SB_TRY(z, run_layers(batch, schedule, first_layer, &given));
  std::vector<uint16_t> out(static_cast<size_t>(z.numel()));
  ctx_.exec.device->copy_out(out.data(), z.ptr, static_cast<size_t>(z.bytes()));
  SB_DO(ctx_.exec.device->sync());
  return out;
}

Result<HeadResult> Session::step(const HostBatch& batch, ScheduleKind schedule,
                                 const DrawWork* draw) {
  ArenaScope scope(arena_);
  SB_TRY(z, run_layers(batch, schedule, 0, nullptr));
  const int64_t rows = static_cast<int64_t>(batch.head_rows.size());
  HeadResult result;
  if (rows == 0) {
    SB_DO(ctx_.exec.device->sync());
    return result;
  }
  const RankPlan& plan = decoder_->plan();
  std::vector<int32_t> owner(static_cast<size_t>(rows), -1);
  const int64_t rank_columns = head_shape(model_.arch.vocab).shard_columns() * plan.shards;
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t y = batch.target[r];
    if (y < 0) continue;
    if (std::binary_search(options_.suppress.begin(), options_.suppress.end(), y)) {
      return refuse(Code::kBrokenData, "score token " + std::to_string(y),
                    "it is suppressed, so it has no log-probability",
                    "remove it from the suppressed ids, or the row");
    }
    owner[r] = static_cast<int32_t>(y / rank_columns);
  }
  HeadWork work;
  work.temperature = options_.temperature;
  if (!options_.suppress.empty()) {
    std::vector<uint8_t> mask(static_cast<size_t>(model_.arch.vocab), 0);
    for (int32_t id : options_.suppress) mask[id] = 1;
    SB_TRY(v, upload(mask.data(), Dtype::kU8, model_.arch.vocab));
    work.suppress = v;
  }
  SB_TRY(owner_view, upload(owner.data(), Dtype::kI32, rows));
  SB_TRY(logp, arena_.take(Dtype::kF32, {rows}));
  work.owner = owner_view;
  work.logp = logp;
  if (draw) {
    work.sample = true;
    work.greedy = draw->greedy;
    work.seed = draw->seed;
    SB_TRY(hash, upload(draw->row_hash.data(), Dtype::kU64, rows));
    SB_TRY(position, upload(draw->position.data(), Dtype::kI32, rows));
    SB_TRY(token, arena_.take(Dtype::kI32, {rows}));
    work.row_hash = hash;
    work.position = position;
    work.token = token;
  }
  SB_DO(decoder_->head(ctx_, batch_, schedule, z, work));
  result.logp.resize(static_cast<size_t>(rows));
  ctx_.exec.device->copy_out(result.logp.data(), logp.ptr, result.logp.size() * sizeof(float));
  if (draw) {
    result.token.resize(static_cast<size_t>(rows));
    ctx_.exec.device->copy_out(result.token.data(), work.token.ptr, result.token.size() * 4);
  }
  SB_DO(ctx_.exec.device->sync());  // behind the copies: theirs are errors of this step too
  return result;
}

}  // namespace sb
