// The helpers without a contract: digests of rows, gathered rows, parts of all ranks side by side.
#include <gtest/gtest.h>

#include "samebits/base/digest.h"
#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {
namespace {

struct Digested {
  std::vector<uint64_t> digest;
  std::vector<uint8_t> non_finite;
};

Digested digest(const View& x, int64_t column_begin = 0) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  const size_t rows = static_cast<size_t>(x.shape[0]);
  Digested d{std::vector<uint64_t>(rows), std::vector<uint8_t>(rows)};
  DigestArgs a;
  a.x = x, a.column_begin = column_begin;
  a.digest = make_view(d.digest.data(), Dtype::kU64, {x.shape[0]});
  a.non_finite = make_view(d.non_finite.data(), Dtype::kU8, {x.shape[0]});
  EXPECT_TRUE(ran(ops::digest(rig.ctx, kNowhere, a)));
  EXPECT_TRUE(rig.records.lines().empty());
  return d;
}

TEST(Moves, ADigestIsTheSumOverElementsAndPartsAddUp) {
  const auto x = random_tensor(1, {3, 100}, 1.0f, 4);
  const auto whole = digest(x.view());
  View left = x.view(), right = x.view();
  left.shape[1] = 37, right.shape[1] = 63;
  right.ptr = static_cast<bf16*>(right.ptr) + 37;
  const auto a = digest(left), b = digest(right, 37);
  for (size_t r = 0; r < 3; ++r) {
    uint64_t sum = 0;
    for (int i = 0; i < 100; ++i) {
      sum += digest_element(x(static_cast<int64_t>(r), i).bits, static_cast<uint64_t>(i));
    }
    EXPECT_EQ(whole.digest[r], sum);
    EXPECT_EQ(a.digest[r] + b.digest[r], sum);
  }
}

TEST(Moves, ADigestSeesOneBitOneSwapAndTheSignOfZero) {
  Tensor<float> x({4, 8});
  for (int r = 0; r < 4; ++r) x.set_row(r, {0, 1, 2, 3, 4, 5, 6, 7});
  x(1, 3) = bits_float(float_bits(x(1, 3)) ^ 1);
  std::swap(x(2, 4), x(2, 5));
  x(3, 0) = -0.0f;
  const auto d = digest(x.view());
  for (size_t r = 1; r < 4; ++r) EXPECT_NE(d.digest[r], d.digest[0]);
}

TEST(Moves, NonFiniteRowsAreMarked) {
  auto x = random_tensor(2, {4, 9});
  x(1, 8) = bf16{0x7f80};
  x(2, 0) = bf16{kBf16Nan};
  x(3, 4) = bf16{0x7f7f};  // the largest finite value
  EXPECT_EQ(digest(x.view()).non_finite, (std::vector<uint8_t>{0, 1, 1, 0}));
  Tensor<float> f({3, 2});
  f.set_row(0, {1.0f, bits_float(0x7f7fffffu)});
  f.set_row(1, {bits_float(0xff800000u), 0.0f});
  f.set_row(2, {0.0f, bits_float(kCanonicalNan)});
  EXPECT_EQ(digest(f.view()).non_finite, (std::vector<uint8_t>{0, 1, 1}));
}

TEST(Moves, GatherTakesTheNamedRows) {
  Rig rig;
  const auto x = random_tensor(3, {5, 33}, 1.0f, 2);
  const auto index = int_tensor({4, 0, 0, 2});
  Tensor<bf16> out({4, 33}, 3);
  ASSERT_TRUE(ran(ops::gather(rig.ctx, kNowhere, {x.view(), index.view(), out.view()})));
  EXPECT_TRUE(out.gaps_untouched());
  for (int r = 0; r < 4; ++r) {
    for (int i = 0; i < 33; ++i) ASSERT_EQ(out(r, i), x(index(r), i));
  }
}

TEST(Moves, CombineOfOneRankIsTheIdentityAndSizesMustFit) {
  Rig rig;
  const auto x = random_tensor(4, {3, 8});
  Tensor<bf16> out({1, 24});
  ASSERT_TRUE(ran(ops::combine(rig.ctx, kNowhere, x.view(), out.view())));
  expect_same_bits(out.values(), x.values(), "combine");
  Tensor<bf16> wrong({1, 23});
  EXPECT_TRUE(refused(ops::combine(rig.ctx, kNowhere, x.view(), wrong.view()), "one part a rank"));
}

}  // namespace
}  // namespace sb::ops_testing
