// Batch: the rows of one step. The scheduler fills a HostBatch; Batch holds the same int32 arrays
// on the device, in buffers of fixed capacity that are updated in place (a captured graph keeps
// their addresses). Rows of a sequence are neighbours with ascending positions; seq = −1 is
// padding.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "samebits/base/device.h"
#include "samebits/model/architecture.h"

namespace sb {

inline constexpr int32_t kPoisonPage = 0x7fffffff;  // table entries that nobody may follow

struct HostBatch {
  std::vector<int32_t> token, pos, seq;  // [T]
  std::vector<int32_t> query_start;      // [S + 1]: first row of each sequence
  std::vector<int32_t> seq_len;          // [S]: keys of each sequence after this step
  // Per cache group (index: LayerType). Empty in packed training, whose keys are the step's own.
  std::array<std::vector<int32_t>, 2> slot;   // [T]
  std::array<std::vector<int32_t>, 2> table;  // [S, table_columns]
  std::array<int, 2> table_columns{};
  std::vector<int32_t> head_rows;  // rows whose logits are needed
  std::vector<int32_t> target;     // per head row: the token to score, or −1
  std::vector<uint16_t> pad_fill;  // bf16 bits that padding rows start from; empty: zeros
  // Reserved for vision: image block of a row, row of a given embedding. Non-empty is refused.
  std::vector<int32_t> image_block, embedding_row;

  int64_t rows() const { return static_cast<int64_t>(token.size()); }
  int64_t sequences() const { return static_cast<int64_t>(seq_len.size()); }
  bool paged() const { return !table[0].empty(); }
  void add_row(int32_t t, int32_t p, int32_t s) {
    token.push_back(t);
    pos.push_back(p);
    seq.push_back(s);
  }
};

// Everything an operator would otherwise have to trust: ids inside the vocabulary, contiguous
// positions, one slot per row, targets that exist.
Status check_batch(const HostBatch& b, const Architecture& arch);

class Batch {
 public:
  explicit Batch(Device& device) : device_(device) {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Copies a checked batch in; grows the buffers only when a capacity is exceeded.
  Status set(const HostBatch& b);

  View token, pos, seq;       // i32 [T]
  View query_start;           // i32 [S + 1]
  View seq_len;               // i32 [S]
  std::array<View, 2> slot;   // i32 [T], empty when linear
  std::array<View, 2> table;  // i32 [S, columns]; linear: i32 [S] first row of each sequence
  View head_rows, target;     // i32 [R]
  int64_t rows = 0, sequences = 0;
  bool paged = false;

 private:
  struct Buffer {
    void* ptr = nullptr;
    size_t bytes = 0;
  };
  Result<View> upload(Buffer& buffer, const std::vector<int32_t>& values,
                      std::initializer_list<int64_t> shape);
  Device& device_;
  std::array<Buffer, 11> buffers_;
};

}  // namespace sb
