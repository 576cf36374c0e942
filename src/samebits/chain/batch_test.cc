// The batch of a step: everything an operator would have to trust is refused here, and the device
// arrays are updated in place.
#include "samebits/chain/batch.h"

#include <gtest/gtest.h>

#include <functional>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::ran;
using chain_testing::refused;

const Architecture& arch() {
  static const Architecture a = *preset_architecture("tiny");
  return a;
}

// Two packed rows of 3 and 2 tokens, the first with a row of padding behind it.
HostBatch packed() {
  HostBatch b;
  b.query_start = {0, 4, 6};
  b.seq_len = {3, 2};
  for (int p = 0; p < 3; ++p) b.add_row(100 + p, p, 0);
  b.add_row(-1, -1, -1);
  for (int p = 0; p < 2; ++p) b.add_row(200 + p, p, 1);
  b.head_rows = {1, 4};
  b.target = {102, 201};
  return b;
}

// The same with caches: rows 2 … 4 of one sequence, 0 … 1 of the other.
HostBatch paged() {
  HostBatch b = packed();
  for (int t = 0; t < 3; ++t) b.pos[static_cast<size_t>(t)] += 2;
  b.seq_len[0] = 5;
  for (int g = 0; g < 2; ++g) {
    b.slot[g] = {18, 19, 20, -1, 64, 65};
    b.table[g] = {1, kPoisonPage, 4, kPoisonPage};
    b.table_columns[g] = 2;
  }
  return b;
}

struct Damage {
  const char* says;
  std::function<void(HostBatch&)> apply;
};

void expect_each_refused(const HostBatch& good, const std::vector<Damage>& all) {
  ASSERT_TRUE(ran(check_batch(good, arch())));
  for (const Damage& damage : all) {
    HostBatch bad = good;
    damage.apply(bad);
    EXPECT_TRUE(refused(check_batch(bad, arch()), damage.says));
  }
}

TEST(Batch, PackedRowsThatBreakARuleAreRefused) {
  expect_each_refused(
      packed(),
      {
          {"row 0 has token 2500, the vocabulary ends at 2499", [](auto& b) { b.token[0] = 2500; }},
          {"row 4 has token -1", [](auto& b) { b.token[4] = -1; }},
          {"row 0 has token 2147483647", [](auto& b) { b.token[0] = INT32_MAX; }},
          {"the model ends at 262143", [](auto& b) { b.pos[2] = 262144; }},
          {"row 1 has position -1", [](auto& b) { b.pos[1] = -1; }},
          {"sequence 0 has position 3 where 2 has to follow", [](auto& b) { b.pos[2] = 3; }},
          {"sequence 0 has position 1 where 2 has to follow", [](auto& b) { b.pos[2] = 1; }},
          {"sequence 0 has position 0 where 1 has to follow", [](auto& b) { b.seq_len[0] = 4; }},
          {"sequence 1 has more rows than keys", [](auto& b) { b.seq_len[1] = 1; }},
          {"row 2 names no sequence", [](auto& b) { b.seq[2] = 2; }},
          {"sequence 0 shares its rows", [](auto& b) { b.seq[2] = 1, b.seq_len[0] = 2; }},
          {"sequence 0 shares its rows", [](auto& b) { b.seq[3] = -2; }},
          {"sequence 0 shares its rows", [](auto& b) { b.query_start[1] = 5; }},
          {"sequence 0 has rows outside the batch", [](auto& b) { b.query_start = {0, 7, 6}; }},
          {"belong to no sequence's range", [](auto& b) { b.query_start = {0, 4, 5}; }},
          {"belong to no sequence's range", [](auto& b) { b.query_start = {1, 4, 6}; }},
          {"different lengths", [](auto& b) { b.query_start.pop_back(); }},
          {"different lengths", [](auto& b) { b.pos.pop_back(); }},
          {"different lengths", [](auto& b) { b.seq.push_back(-1); }},
          {"a head row is not a live row", [](auto& b) { b.head_rows[0] = 3; }},
          {"a head row is not a live row", [](auto& b) { b.head_rows[0] = 6; }},
          {"a head row is not a live row", [](auto& b) { b.head_rows[0] = -1; }},
          {"head rows and targets do not pair", [](auto& b) { b.target.pop_back(); }},
          {"a target lies outside the vocabulary", [](auto& b) { b.target[1] = 2500; }},
          {"the vision chain is not built yet", [](auto& b) { b.image_block = {0}; }},
          {"the vision chain is not built yet", [](auto& b) { b.embedding_row = {0}; }},
      });
}

TEST(Batch, PackedRowsStartAtPositionZero) {
  HostBatch b = packed();
  for (int t = 0; t < 3; ++t) b.pos[static_cast<size_t>(t)] += 2;
  b.seq_len[0] = 5;
  EXPECT_TRUE(refused(check_batch(b, arch()), "packed rows must start at position 0"));
}

TEST(Batch, CacheSlotsAndTablesThatDoNotFitAreRefused) {
  expect_each_refused(paged(),
                      {
                          {"two rows write one cache slot", [](auto& b) { b.slot[0][4] = 18; }},
                          {"two rows write one cache slot", [](auto& b) { b.slot[1][5] = 64; }},
                          {"a padding row has a cache slot", [](auto& b) { b.slot[0][3] = 21; }},
                          {"wrong size", [](auto& b) { b.slot[1].pop_back(); }},
                          {"wrong size", [](auto& b) { b.table[1].push_back(0); }},
                          {"wrong size", [](auto& b) { b.table_columns[0] = 1; }},
                          {"one group only", [](auto& b) { b.table[0].clear(); }},
                      });
}

TEST(Batch, ARowMayGoWithoutATarget) {
  HostBatch b = packed();
  b.target[0] = -1;
  EXPECT_TRUE(ran(check_batch(b, arch())));
}

std::vector<int32_t> read(const View& v) {
  std::vector<int32_t> out(static_cast<size_t>(v.numel()));
  cpu().copy_out(out.data(), v.ptr, static_cast<size_t>(v.bytes()));
  return out;
}

// One packed row of n tokens.
HostBatch one_row(int n) {
  HostBatch b;
  b.query_start = {0, n};
  b.seq_len = {n};
  for (int p = 0; p < n; ++p) b.add_row(7 * p % 2500, p, 0);
  return b;
}

TEST(Batch, ArraysArriveOnTheDeviceAsTheyWere) {
  Batch batch(cpu());
  const HostBatch host = paged();
  ASSERT_TRUE(ran(batch.set(host)));
  EXPECT_EQ(batch.rows, 6);
  EXPECT_EQ(batch.sequences, 2);
  EXPECT_TRUE(batch.paged);
  EXPECT_EQ(read(batch.token), host.token);
  EXPECT_EQ(read(batch.pos), host.pos);
  EXPECT_EQ(read(batch.seq), host.seq);
  EXPECT_EQ(read(batch.query_start), host.query_start);
  EXPECT_EQ(read(batch.seq_len), host.seq_len);
  EXPECT_EQ(read(batch.head_rows), host.head_rows);
  EXPECT_EQ(read(batch.target), host.target);
  for (int g = 0; g < 2; ++g) {
    EXPECT_EQ(read(batch.slot[g]), host.slot[g]);
    EXPECT_EQ(read(batch.table[g]), host.table[g]);
    EXPECT_EQ(batch.table[g].shape[1], 2);
  }
}

TEST(Batch, PackedTablesNameTheFirstRowOfEachSequence) {
  Batch batch(cpu());
  ASSERT_TRUE(ran(batch.set(packed())));
  EXPECT_FALSE(batch.paged);
  for (int g = 0; g < 2; ++g) {
    EXPECT_FALSE(batch.slot[g]);
    EXPECT_EQ(read(batch.table[g]), (std::vector<int32_t>{0, 4}));
  }
}

TEST(Batch, UpdatesKeepAddressesWhileTheCapacitySuffices) {
  Batch batch(cpu());
  ASSERT_TRUE(ran(batch.set(one_row(1000))));
  const void* const at[] = {batch.token.ptr, batch.pos.ptr, batch.seq.ptr, batch.query_start.ptr,
                            batch.seq_len.ptr};
  for (int n : {3, 1000, 1, 1400, 1500}) {  // half as much again fits
    const HostBatch host = one_row(n);
    ASSERT_TRUE(ran(batch.set(host)));
    const void* const now[] = {batch.token.ptr, batch.pos.ptr, batch.seq.ptr, batch.query_start.ptr,
                               batch.seq_len.ptr};
    for (int i = 0; i < 5; ++i) EXPECT_EQ(now[i], at[i]) << n << " rows, array " << i;
    EXPECT_EQ(read(batch.token), host.token);
    EXPECT_EQ(batch.rows, n);
  }
  const HostBatch large = one_row(4000);
  ASSERT_TRUE(ran(batch.set(large)));
  EXPECT_EQ(read(batch.token), large.token);
}

TEST(Batch, PagedAndPackedStepsTakeTurnsInOneBatch) {
  Batch batch(cpu());
  ASSERT_TRUE(ran(batch.set(paged())));
  const void* slots = batch.slot[1].ptr;
  ASSERT_TRUE(ran(batch.set(packed())));
  ASSERT_TRUE(ran(batch.set(paged())));
  EXPECT_EQ(batch.slot[1].ptr, slots);
  EXPECT_EQ(read(batch.slot[1]), paged().slot[1]);
}

}  // namespace
}  // namespace sb
