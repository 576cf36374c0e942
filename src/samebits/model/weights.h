// Weights in checkpoint layout [out, in], as views on one device. The head is the embedding: one
// pointer, checked after each load. Buffers (layer_scalar) count as weights.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "samebits/base/device.h"
#include "samebits/base/thread_pool.h"
#include "samebits/model/architecture.h"

namespace sb {

struct LayerWeights {
  View input_norm, post_attention_norm, pre_ffn_norm, post_ffn_norm;  // [hidden] bf16
  View q_norm, k_norm;                                                // [head_dim]
  View q, k, v, o;      // [heads·D, hidden] …, o [hidden, heads·D]; v is empty on global layers
  View gate, up, down;  // [intermediate, hidden] ×2, [hidden, intermediate]
  View layer_scalar;    // [1]
};

struct Weights {
  View embed;       // [vocab, hidden]
  View head;        // same pointer as embed
  View final_norm;  // [hidden]
  std::vector<LayerWeights> layers;
};

// What a tensor is: its canonical name (model.language_model.…), shape and content.
struct TensorRecord {
  std::string name;
  std::vector<int64_t> shape;
  std::string digest;  // TensorDigest, hex
};

struct Model {
  Architecture arch;
  std::string arch_digest;     // hex, of the fingerprint without weights
  std::string weights_digest;  // hex, of every tensor by name, shape and content
  uint64_t epoch = 0;          // first 64 bits of weights_digest; KV cache entries carry it
  Weights weights;
  std::vector<TensorRecord> tensors;  // every loaded tensor, sorted by name
  std::shared_ptr<void> storage;      // keeps maps and device memory alive; the device outlives it
  std::vector<std::string> warnings;
};

// Loads a checkpoint folder onto a device. On a device that reads host memory the tensors stay in
// the mapped files. Refuses missing, extra, duplicate or misshapen tensors and non-finite values.
// `interrupted` is polled by the pool's threads while values are read (kInterrupted); may be empty.
Result<Model> load_model(const std::string& dir, Device& device, ThreadPool& pool,
                         const std::function<bool()>& interrupted = {});

}  // namespace sb
