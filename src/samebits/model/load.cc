// load_model: config, names, then every tensor's bytes. Tensors of files are viewed in their map
// when the device can read it; otherwise, and for virtual checkpoints, they go into device memory.
// Each value is looked at once, for the digest and for NaN and infinity: a file whose header is
// right and whose content is not is the fault that otherwise shows as a strange model.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "samebits/base/host_memory.h"
#include "samebits/model/fingerprint.h"
#include "samebits/model/load.h"
#include "samebits/model/source.h"
#include "samebits/model/synthetic.h"

namespace sb {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements a task

// What keeps a model's bytes alive.
struct Storage {
  explicit Storage(Device& d) : device(d) {}
  ~Storage() {
    for (const auto& [ptr, bytes] : blocks) device.release(ptr, bytes);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  Device& device;
  CheckpointSource source;
  std::vector<std::pair<void*, size_t>> blocks;
};

struct Loading {
  Architecture arch;
  std::vector<ExpectedTensor> tensors;
  std::vector<const unsigned char*> source;  // bytes in the map; empty for a virtual checkpoint
  uint64_t seed = 0;
  std::vector<View> views;
  std::vector<TensorScan> scans;
  std::vector<std::string> warnings;
};

Result<void*> take(Storage& storage, size_t bytes) {
  auto ptr = storage.device.alloc(bytes);
  if (ptr) storage.blocks.emplace_back(*ptr, bytes);
  return ptr;
}

// Memory for the tensors that cannot stay in the map.
Status place(Storage& storage, const std::string& dir, Loading& load) {
  const bool host = storage.device.reads_host_memory();
  int64_t need = 0;
  for (size_t i = 0; i < load.tensors.size(); ++i) {
    const bool aligned =
        !load.source.empty() && reinterpret_cast<uintptr_t>(load.source[i]) % 2 == 0;
    if (!host || !aligned) need += 2 * load.tensors[i].numel();
  }
  if (const int64_t have = available_host_bytes(); host && have >= 0 && need > have) {
    return refuse(Code::kEnvironment, "load " + dir,
                  "its tensors need " + std::to_string(need) + " bytes of memory; " +
                      std::to_string(have) + " are available",
                  "a smaller preset, a machine with more memory, or (for a virtual checkpoint) "
                  "`samebits model new --materialize`, whose files are mapped and need none");
  }
  for (size_t i = 0; i < load.tensors.size(); ++i) {
    const ExpectedTensor& t = load.tensors[i];
    void* ptr = nullptr;
    const bool aligned =
        !load.source.empty() && reinterpret_cast<uintptr_t>(load.source[i]) % 2 == 0;
    if (host && aligned) {
      ptr = const_cast<unsigned char*>(load.source[i]);
    } else {
      auto block = take(storage, static_cast<size_t>(2 * t.numel()));
      if (!block) {
        Refusal r = std::move(block).error();
        r.reasons.push_back("loading " + dir + " takes " + std::to_string(need) + " bytes in all");
        return tl::unexpected(std::move(r));
      }
      ptr = *block;
    }
    load.views.push_back(
        t.shape.size() == 1
            ? make_view(ptr, Dtype::kBf16, {t.shape[0]}, storage.device.id())
            : make_view(ptr, Dtype::kBf16, {t.shape[0], t.shape[1]}, storage.device.id()));
  }
  return {};
}

// Makes or copies and scans every piece of every tensor, in parallel.
Status fill(Device& device, ThreadPool& pool, Loading& load,
            const std::function<bool()>& interrupted) {
  struct Piece {
    size_t tensor;
    int64_t first, count;
  };
  std::vector<Piece> pieces;
  for (size_t i = 0; i < load.tensors.size(); ++i) {
    const int64_t n = load.tensors[i].numel();
    for (int64_t at = 0; at < n; at += kPiece) pieces.push_back({i, at, std::min(kPiece, n - at)});
  }
  std::vector<SyntheticTensor> makers;
  if (load.source.empty()) {
    for (const auto& t : load.tensors) makers.emplace_back(t, load.seed);
  }
  std::vector<TensorScan> scans(pieces.size());
  std::mutex copying;  // devices take one copy at a time
  std::atomic<bool> stop{false};
  SB_DO(pool.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t n) {
    if (stop || (interrupted && interrupted())) {
      stop = true;
      return;
    }
    const Piece& p = pieces[n];
    char* to = static_cast<char*>(load.views[p.tensor].ptr) + 2 * p.first;
    const bool in_map = !load.source.empty() && load.source[p.tensor] == load.views[p.tensor].ptr;
    if (in_map || (load.source.empty() && device.reads_host_memory())) {
      bf16* values = reinterpret_cast<bf16*>(to);
      if (!in_map) makers[p.tensor].fill(values, p.first, p.count);
      scans[n] = scan_bf16(values, p.first, p.count);
      return;
    }
    std::vector<bf16> buffer(static_cast<size_t>(p.count));
    if (load.source.empty()) {
      makers[p.tensor].fill(buffer.data(), p.first, p.count);
    } else {
      std::memcpy(buffer.data(), load.source[p.tensor] + 2 * p.first, buffer.size() * 2);
    }
    scans[n] = scan_bf16(buffer.data(), p.first, p.count);
    std::lock_guard lock(copying);
    device.copy_in(to, buffer.data(), buffer.size() * 2);
  }));
  if (stop) return refuse(Code::kInterrupted, "load the model", "interrupted");
  SB_DO(device.sync());
  load.scans.resize(load.tensors.size());
  for (size_t n = 0; n < pieces.size(); ++n) load.scans[pieces[n].tensor].merge(scans[n]);
  return {};
}

Status judge(const std::string& dir, Loading& load) {
  Refusal fault{Code::kBrokenData, "load " + dir, {}, "download or convert the checkpoint again"};
  for (size_t i = 0; i < load.tensors.size(); ++i) {
    const TensorScan& s = load.scans[i];
    const std::string& name = load.tensors[i].name;
    if (s.first_bad >= 0) {
      fault.reasons.push_back("tensor " + name + " holds NaN or infinity, first at element " +
                              std::to_string(s.first_bad));
    } else if (widen(bf16{s.largest}) > kHugeWeight) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", static_cast<double>(widen(bf16{s.largest})));
      load.warnings.push_back("tensor " + name + " holds a value of magnitude " + text +
                              " at element " + std::to_string(s.largest_at) +
                              "; trained weights are far smaller");
    }
  }
  if (fault.reasons.empty()) return {};
  return tl::unexpected(std::move(fault));
}

Weights assemble(const Loading& load) {
  Weights w;
  size_t at = 0;
  auto next = [&] { return load.views[at++]; };
  w.embed = w.head = next();
  for (LayerType type : load.arch.layers) {  // the order of text_tensors
    LayerWeights l;
    l.input_norm = next();
    l.q = next();
    l.k = next();
    if (type == LayerType::kSliding) l.v = next();
    l.o = next();
    l.q_norm = next();
    l.k_norm = next();
    l.post_attention_norm = next();
    l.pre_ffn_norm = next();
    l.gate = next();
    l.up = next();
    l.down = next();
    l.post_ffn_norm = next();
    l.layer_scalar = next();
    w.layers.push_back(l);
  }
  w.final_norm = next();
  SB_ASSERT(at == load.views.size(), "tensor table and weight structs disagree");
  SB_ASSERT(w.head.ptr == w.embed.ptr, "the head must be the embedding");
  return w;
}

void seal(const Loading& load, Model& model) {
  for (size_t i = 0; i < load.tensors.size(); ++i) {
    model.tensors.push_back(
        {load.tensors[i].name, load.tensors[i].shape, load.scans[i].digest.hex()});
  }
  std::sort(model.tensors.begin(), model.tensors.end(),
            [](const TensorRecord& a, const TensorRecord& b) { return a.name < b.name; });
  model.weights_digest = weights_digest(model.tensors);
  model.epoch = std::stoull(model.weights_digest.substr(0, 16), nullptr, 16);
}

}  // namespace

std::string weights_digest(const std::vector<TensorRecord>& sorted) {
  Sha256 sha;
  for (const auto& t : sorted)
    sha.update(t.name + " " + shape_text(t.shape) + " " + t.digest + "\n");
  return sha.hex();
}

Result<Model> load_model(const std::string& dir, Device& device, ThreadPool& pool,
                         const std::function<bool()>& interrupted) {
  Loading load;
  SB_TRY(arch, load_architecture(dir));
  load.arch = std::move(arch);
  load.tensors = text_tensors(load.arch);
  for (const auto& [key, value] : load.arch.unknown_keys) {
    load.warnings.push_back("config key " + key + " = " + value.substr(0, 60) +
                            " is not known; it is part of the fingerprint and has no effect");
  }
  SB_DO(check_tokenizer(dir, load.arch, load.warnings));

  auto storage = std::make_shared<Storage>(device);
  SB_TRY(source, open_source(dir, load.arch, load.tensors));
  load.source = source.data;
  load.seed = source.seed;
  load.warnings.insert(load.warnings.end(), source.warnings.begin(), source.warnings.end());
  storage->source = std::move(source);
  SB_DO(place(*storage, dir, load));
  SB_DO(fill(device, pool, load, interrupted));
  SB_DO(judge(dir, load));

  Model model;
  seal(load, model);
  model.weights = assemble(load);
  model.arch_digest = fingerprint_digest(load.arch);
  model.arch = std::move(load.arch);
  model.storage = std::move(storage);
  model.warnings = std::move(load.warnings);
  return model;
}

}  // namespace sb
