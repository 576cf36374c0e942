#include "samebits/gate/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sb {
namespace {

using testing::HasSubstr;
using testing::Not;

Comparison drift() {
  ScoreFile a{.header = {.model = "m",
                         .weights = "w",
                         .contracts = "c:1",
                         .profile = "sm90",
                         .temperature = 0.7f,
                         .suppress = {},
                         .schedule = "decode"},
              .rows = {{"<r&1>", "00000000000000ff", 1, {-1.0f, -2.0f}}}};
  ScoreFile b = a;
  b.header.schedule = "train";
  b.rows[0].logprobs[1] = -2.5f;
  return compare_scores(a, b);
}

TEST(ReportText, DisplayWidthCountsColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("ü–Δ"), 3);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3);
}

TEST(ReportText, TablesAlignWideText) {
  TextTable table({"name", "n"}, {Align::kLeft, Align::kRight});
  table.add({"日本", "1"});
  table.add({"ü", "1,000"});
  table.add({});
  EXPECT_EQ(table.text(""),
            "name      n\n"
            "日本      1\n"
            "ü     1,000\n"
            "\n");
}

TEST(ReportText, TextNamesPlaceBitsAndSides) {
  const std::string text = comparison_text(drift());
  EXPECT_THAT(text, testing::StartsWith("DRIFT  1 of 2 log-probabilities differ"));
  EXPECT_THAT(text, HasSubstr("A  A  profile sm90, schedule decode, T 0.7"));
  EXPECT_THAT(text, HasSubstr("first    logp, row \"<r&1>\", token 2"));
  EXPECT_THAT(text, HasSubstr("0xc0000000  -2\n"));
  EXPECT_THAT(text, HasSubstr("0xc0200000  -2.5\n"));
  EXPECT_THAT(text, HasSubstr("train/train_rollout_logprob_abs_diff        0.25"));
  EXPECT_THAT(text, HasSubstr("training is B"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ReportText, JsonIsCompleteAndParses) {
  const auto json = nlohmann::json::parse(comparison_json(drift()));
  EXPECT_EQ(json["code"], 1);
  EXPECT_EQ(json["first"]["bits_b"], "0xc0200000");
  EXPECT_EQ(json["first"]["position"], 2);
  EXPECT_EQ(json["a"]["temperature"].dump(), "0.7");
  EXPECT_EQ(json["metrics"]["train/train_rollout_logprob_mismatch_count"], 1.0);
  EXPECT_EQ(json["training_side"], "b");
  EXPECT_TRUE(json["first"]["layer"].is_null());
}

TEST(ReportText, HtmlIsOnePageAndEscaped) {
  const std::string html = comparison_html(drift());
  EXPECT_THAT(html, HasSubstr("<!doctype html>"));
  EXPECT_THAT(html, HasSubstr("&lt;r&amp;1&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<r&1>")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(ReportText, RefusalsAsJson) {
  const Refusal r{Code::kBrokenData, "read \"x\"", {"line 3", "\xff"}, "another file"};
  const auto json = nlohmann::json::parse(refusal_json(r));
  EXPECT_EQ(json["error"]["code"], 6);
  EXPECT_EQ(json["error"]["name"], "broken data");
  EXPECT_EQ(json["error"]["asked"], "read \"x\"");
  EXPECT_EQ(json["error"]["reasons"][0], "line 3");
  EXPECT_EQ(json["error"]["remedy"], "another file");
}

}  // namespace
}  // namespace sb
