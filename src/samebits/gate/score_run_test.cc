// One temperature and one list of suppressed ids for a run: who decides, and that a disagreement is
// never settled silently.
#include "samebits/gate/score_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/gate/score_file.h"
#include "samebits/model/presets.h"

namespace sb {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

Architecture arch(const std::vector<int64_t>& suppress = {}) {
  Architecture a = preset_architecture("tiny").value();
  a.tokens.suppress = suppress;
  return a;
}

TokenRow row(const std::string& id, std::optional<float> temperature = {},
             std::optional<Ids> suppress = {}) {
  TokenRow r;
  r.id = id;
  r.tokens = {1, 2, 3};
  r.prompt_len = 1;
  r.temperature = temperature;
  r.suppress = std::move(suppress);
  return r;
}

Semantics agreed(const std::vector<TokenRow>& rows, const Architecture& a,
                 std::optional<float> temperature = {}, std::optional<Ids> suppress = {}) {
  const auto s = agree_on_semantics(rows, a, temperature, std::move(suppress));
  EXPECT_TRUE(s) << s.error().text();
  return s.value_or(Semantics{.temperature = -1, .suppress = {}});
}

std::string disagreement(const std::vector<TokenRow>& rows, std::optional<float> temperature = {},
                         std::optional<Ids> suppress = {}) {
  const auto s = agree_on_semantics(rows, arch(), temperature, std::move(suppress));
  EXPECT_FALSE(s);
  if (s) return "";
  EXPECT_EQ(s.error().code, Code::kSemanticsDiffer);
  return s.error().text();
}

TEST(Semantics, WithoutAnyWordItIsTemperatureOneAndTheCheckpointsIds) {
  const Semantics s = agreed({row("a"), row("b")}, arch({9, 4}));
  EXPECT_EQ(s.temperature, 1.0f);
  EXPECT_EQ(s.suppress, (Ids{4, 9}));
  EXPECT_EQ(agreed({row("a")}, arch()).suppress, Ids{});
}

TEST(Semantics, RowsDecideOverTheCheckpoint) {
  const Semantics s = agreed({row("a", 0.7f, Ids{5}), row("b", 0.7f, Ids{5})}, arch({4, 9}));
  EXPECT_EQ(s.temperature, 0.7f);
  EXPECT_EQ(s.suppress, Ids{5});
  EXPECT_EQ(agreed({row("a", {}, Ids{})}, arch({4, 9})).suppress, Ids{});
}

TEST(Semantics, TheCommandLineDecidesOverTheCheckpoint) {
  const Semantics s = agreed({row("a")}, arch({4}), 0.5f, Ids{9, 2});
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.suppress, (Ids{2, 9}));
  EXPECT_EQ(agreed({row("a")}, arch({4}), {}, Ids{}).suppress, Ids{});
}

TEST(Semantics, AgreementIsNoConflict) {
  const Semantics s =
      agreed({row("a", 0.7f, Ids{2, 9}), row("b", 0.7f, Ids{2, 9})}, arch(), 0.7f, Ids{9, 2});
  EXPECT_EQ(s.temperature, 0.7f);
  EXPECT_EQ(s.suppress, (Ids{2, 9}));
}

TEST(Semantics, RowsAgainstTheCommandLineAreRefused) {
  std::string text = disagreement({row("a"), row("b", 0.7f)}, 1.0f);
  EXPECT_THAT(text, HasSubstr("row \"b\""));
  EXPECT_THAT(text, HasSubstr("0.7"));
  EXPECT_THAT(text, HasSubstr("the command line's 1"));
  text = disagreement({row("a"), row("b", {}, Ids{3})}, {}, Ids{4});
  EXPECT_THAT(text, HasSubstr("its suppress is [3], the command line's [4]"));
  EXPECT_NE(disagreement({row("a", {}, Ids{})}, {}, Ids{4}), "");
}

TEST(Semantics, RowsAgainstEachOtherAreRefused) {
  std::string text = disagreement({row("a", 1.0f), row("b", 0.7f)});
  EXPECT_THAT(text, HasSubstr("run row \"b\""));
  EXPECT_THAT(text, HasSubstr("that of row \"a\" is 1"));
  EXPECT_THAT(disagreement({row("a", {}, Ids{3}), row("b", {}, Ids{4})}),
              HasSubstr("its suppress is [4], that of row \"a\" is [3]"));
}

TEST(Semantics, TheMessageNamesWhoeverSaidOtherwise) {
  // The command line chose ids only; the temperature is that of an earlier row.
  EXPECT_THAT(disagreement({row("a", 1.0f), row("b", 0.7f)}, {}, Ids{4}),
              HasSubstr("that of row \"a\" is 1"));
  EXPECT_THAT(disagreement({row("a", {}, Ids{3}), row("b", {}, Ids{4})}, 1.0f),
              HasSubstr("that of row \"a\" is [3]"));
}

TEST(Semantics, ARowThatSaysNothingDoesNotFollowItsNeighbours) {
  EXPECT_THAT(disagreement({row("a"), row("b", 0.7f)}),
              HasSubstr("its temperature is 0.7, that of row \"a\" is not given"));
  EXPECT_THAT(disagreement({row("a", 0.7f), row("b", 0.7f), row("c")}), HasSubstr("row \"c\""));
  EXPECT_THAT(disagreement({row("a"), row("b", {}, Ids{})}), HasSubstr("row \"b\""));
  // The command line speaks for it.
  EXPECT_EQ(agreed({row("a"), row("b", 0.7f)}, arch(), 0.7f).temperature, 0.7f);
}

TEST(Semantics, IdsOfTheCommandLineLieInTheVocabulary) {
  for (const int32_t id : {-1, static_cast<int32_t>(arch().vocab)}) {
    const auto s = agree_on_semantics({}, arch(), {}, Ids{3, id});
    ASSERT_FALSE(s);
    EXPECT_EQ(s.error().code, Code::kUsage);
    EXPECT_THAT(s.error().text(), HasSubstr("--suppress " + std::to_string(id)));
  }
}

TEST(Semantics, TemperaturesOneUlpApartAreTwoTemperatures) {
  const float t = 0.7f, next = std::nextafter(t, 1.0f);
  EXPECT_NE(disagreement({row("a", t)}, next), "");
  EXPECT_NE(disagreement({row("a", t), row("b", next)}), "");
}

TEST(Semantics, ATemperatureThatMakesNoSoftmaxIsRefused) {
  for (const float t : {0.0f, -0.0f, -1.0f, INFINITY, -INFINITY, NAN}) {
    const auto s = agree_on_semantics({row("a")}, arch(), t, {});
    ASSERT_FALSE(s) << t;
    EXPECT_EQ(s.error().code, Code::kRefused);
  }
}

TEST(ScoreRun, SequencesAndDigestsFollowTheRows) {
  const std::vector<TokenRow> rows = {row("a"), row("b")};
  const auto sequences = as_sequences(rows);
  ASSERT_EQ(sequences.size(), 2u);
  EXPECT_EQ(sequences[1].id, "b");
  EXPECT_EQ(sequences[1].tokens, rows[1].tokens);
  EXPECT_EQ(sequences[1].prompt_len, 1);
  EXPECT_EQ(token_digests(sequences)[0], token_digest(rows[0].tokens));
}

}  // namespace
}  // namespace sb
