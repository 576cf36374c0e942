#include "samebits/base/view.h"

#include <gtest/gtest.h>

#include <set>

namespace sb {
namespace {

TEST(View, ContiguousShapesAndSizes) {
  float data[24];
  View v = make_view(data, Dtype::kF32, {2, 3, 4});
  EXPECT_EQ(v.numel(), 24);
  EXPECT_EQ(v.bytes(), 96);
  EXPECT_EQ(v.stride[0], 12);
  EXPECT_TRUE(v.contiguous());
  v.stride[1] = 5;
  EXPECT_FALSE(v.contiguous());
  EXPECT_EQ(View().numel(), 0);
  EXPECT_EQ(make_view(data, Dtype::kF32, {0, 3}).numel(), 0);
}

TEST(View, StrideOfALengthOneDimensionIsFree) {
  float data[4];
  View v = make_view(data, Dtype::kF32, {1, 4});
  v.stride[0] = 77;
  EXPECT_TRUE(v.contiguous());
}

TEST(View, RowsOfMovesThePointer) {
  uint16_t data[12];
  const View v = make_view(data, Dtype::kBf16, {4, 3});
  const View rows = rows_of(v, 1, 2);
  EXPECT_EQ(rows.ptr, data + 3);
  EXPECT_EQ(rows.shape[0], 2);
  EXPECT_EQ(rows_of(v, 4, 0).numel(), 0);
}

TEST(ViewDeathTest, MisuseIsABugOfOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  float data[4];
  const View v = make_view(data, Dtype::kF32, {4});
  EXPECT_DEATH(v.as<bf16>(), "another dtype");
  EXPECT_DEATH(rows_of(v, 3, 2), "out of range");
  EXPECT_DEATH(make_view(data, Dtype::kF32, {1, 1, 1, 1, 1}), "rank 1 to 4");
}

TEST(Refusal, SaysWhatWhyAndWhatWouldWork) {
  const Refusal r = refuse(Code::kRefused, "run x", "because y", "try z").value();
  EXPECT_EQ(r.code, Code::kRefused);
  EXPECT_EQ(r.text(), "refused: run x\n  why:   because y\n  try:   try z");
}

TEST(Refusal, EveryCodeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (Code code : {Code::kEqual, Code::kDrift, Code::kNotComparable, Code::kWeightsDiffer,
                    Code::kSemanticsDiffer, Code::kRefused, Code::kBrokenData, Code::kEnvironment,
                    Code::kUsage, Code::kInterrupted}) {
    EXPECT_STRNE(code_name(code), "unknown");
    names.insert(code_name(code));
  }
  EXPECT_EQ(names.size(), 10u);
}

Result<int> half(int x) {
  if (x % 2) return refuse(Code::kUsage, "halve " + std::to_string(x), "it is odd");
  return x / 2;
}
Result<int> quarter(int x) {
  SB_TRY(h, half(x));
  SB_TRY(q, half(h));
  return q;
}
Status quarters(int x) {
  SB_DO(quarter(x));
  return {};
}

TEST(Refusal, IsPassedOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().asked, "halve 3");
  EXPECT_EQ(quarters(5).error().asked, "halve 5");
  EXPECT_TRUE(quarters(4).has_value());
}

}  // namespace
}  // namespace sb
