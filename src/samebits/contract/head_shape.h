// Shape of the vocabulary tree: 8 shards of n tiles of 256 columns, n the smallest power of two
// that covers the vocabulary. Columns at and beyond V do not exist ("phantom" columns change no
// bit).
#pragma once

#include <algorithm>
#include <cstdint>

#include "samebits/contract/rules.h"

namespace sb {

struct HeadShape {
  int64_t tiles_per_shard = 1;
  constexpr int64_t shard_columns() const { return tiles_per_shard * kHeadRule.tile; }
  // Shard of a column, 0 to 7.
  constexpr int shard_of(int64_t id) const { return static_cast<int>(id / shard_columns()); }
};

constexpr HeadShape head_shape(int64_t vocab) {
  HeadShape s;
  while (kHeadRule.shards * kHeadRule.tile * s.tiles_per_shard < vocab) s.tiles_per_shard *= 2;
  return s;
}

// Tiles of `shards` shards: the scratch of the head holds (m, S) for each.
constexpr int64_t head_tiles(int64_t vocab, int shards) {
  return shards * head_shape(vocab).tiles_per_shard;
}

// Columns [begin, end) of shards [first, first + count), cut at the vocabulary.
struct ColumnRange {
  int64_t begin = 0, end = 0;
};

constexpr ColumnRange shard_columns(int64_t vocab, int first, int count) {
  const int64_t width = head_shape(vocab).shard_columns();
  return {std::min(vocab, first * width), std::min(vocab, (first + count) * width)};
}

}  // namespace sb
