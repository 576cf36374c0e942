// verify on the mini model, which has the real head sizes and window.
#include "samebits/gate/engine_testing.h"
#include "samebits/gate/verify.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)

void expect_equal(const std::string& profile) {
  Engine engine = open_engine({.profile = profile, .threads = 2}, "mini");
  const auto report = verify(engine, {});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->code, Code::kEqual);
  EXPECT_EQ(report->differing, 0);
  for (const auto& s : report->scenarios) {
    EXPECT_EQ(s.code, Code::kEqual) << s.group << ": " << s.name << ": " << s.finding;
    EXPECT_GT(s.compared, 0) << s.name;
    EXPECT_TRUE(s.group != "long" || s.compared == 1099) << s.name;
  }
  EXPECT_TRUE(report->spread.healthy());
}

TEST(VerifyMini, EveryScenarioIsEqual) { expect_equal("sm90"); }
TEST(VerifyMini, EveryScenarioIsEqualOnGfx942Full) { expect_equal("gfx942"); }
TEST(VerifyMini, EveryScenarioIsEqualOnIeeeFull) { expect_equal("ieee"); }

// Adding the same fp32 leaves in another order, even in one layer, is no rounding noise that dies
// out: most of it is lost when the sum becomes bf16, but what survives once moves every later
// token.
TEST(VerifyMini, AnotherLeafOrderMovesMostLogProbabilities) {
  const std::vector<Sequence> rows = {row_of("b", 400, 1)};
  Engine clean = open_engine({.threads = 2}, "mini");
  const auto want = clean.score(rows, clean.run_options({})).value().logprobs[0];
  for (const char* inject :
       {"gemm-leaf-order:layer=0", "gemm-leaf-order:layer=3", "gemm-leaf-order"}) {
    Engine faulty = open_engine({.threads = 2, .inject = {inject}}, "mini");
    const auto got = faulty.score(rows, faulty.run_options({})).value().logprobs[0];
    ASSERT_EQ(got.size(), 399u);
    size_t differing = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      differing += float_bits(want[i]) != float_bits(got[i]);
    }
    EXPECT_GE(differing * 2, want.size()) << inject;
    RecordProperty(inject, std::to_string(differing));
  }
}

}  // namespace
}  // namespace sb
