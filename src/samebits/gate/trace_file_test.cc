#include "samebits/gate/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "samebits/base/digest.h"
#include "samebits/gate/score_file.h"

namespace sb {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunHeader header() {
  return {.model = "m1",
          .weights = "w1",
          .contracts = "gemma4.strict.v1:00ff",
          .profile = "sm90",
          .temperature = 1,
          .suppress = {},
          .schedule = "train"};
}

// Two sequences of 3 and 2 rows; three boundaries, the last over scored rows.
struct Sample {
  Trace trace;
  std::vector<std::string> tokens;
  Sample() {
    trace.ids = {"a", "ü"};
    tokens = {hex64(1), hex64(2)};
    trace.rows = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}};
    trace.scored = {1, 4};
    add({Tap::kEmbed, -1}, "bf16", 96, false);
    add({Tap::kMlpDownAcc, 3}, "f32", 96, false);
    add({Tap::kLogp, -1}, "f32", 1, true);
  }
  void add(Boundary b, const char* dtype, int64_t width, bool scored) {
    TraceColumn c{b, dtype, width, scored, {}, {}};
    const size_t n = scored ? trace.scored.size() : trace.rows.size();
    for (size_t i = 0; i < n; ++i) c.digests.push_back(mix64(i + trace.columns.size() * 100));
    c.non_finite.assign(n, 0);
    trace.columns.push_back(c);
  }
  TraceView view() const { return view_of(trace, header(), tokens); }
};

std::string bytes_of(const TraceView& view) {
  const std::string path = testing::TempDir() + "/" + std::to_string(getpid()) + "_sample.sbt";
  const auto status = write_trace_file(path, true, view);
  EXPECT_TRUE(status) << status.error().text();
  return read_text(path).value();
}

// A payload with its checksum made right again, so that the checks behind it are reached.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - 72);
  return bytes + "sha256 " + sha256_hex(bytes) + "\n";
}

std::string reason(std::string_view bytes) {
  const auto file = parse_trace_file(bytes, "x.sbt");
  if (file) return "(accepted)";
  EXPECT_EQ(file.error().code, Code::kBrokenData);
  return file.error().reasons.at(0);
}

std::string check_reason(const Sample& s) {
  const auto status = check_trace(s.view(), "x");
  return status ? "(sound)" : status.error().reasons.at(0);
}

std::string edited(const std::string& from, const std::string& to) {
  std::string bytes = bytes_of(Sample().view());
  EXPECT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return resealed(bytes.replace(at, from.size(), to));
}

TEST(TraceFile, RoundTripByMap) {
  Sample s;
  s.trace.columns[1].non_finite[3] = 1;
  const std::string path = testing::TempDir() + "/" + std::to_string(getpid()) + "_round.sbt";
  unlink(path.c_str());
  ASSERT_TRUE(write_trace_file(path, false, s.view()));
  auto read = read_trace_file(path);
  ASSERT_TRUE(read) << read.error().text();
  const TraceFile file = std::move(*read);  // spans survive a move
  const TraceView& v = file.view;
  EXPECT_EQ(v.header.schedule, "train");
  EXPECT_THAT(v.ids, ElementsAre("a", "ü"));
  EXPECT_EQ(v.tokens, s.tokens);
  ASSERT_EQ(v.rows.size(), 5u);
  EXPECT_EQ(v.rows[4].seq, 1);
  EXPECT_EQ(v.rows[4].pos, 1);
  EXPECT_THAT(v.scored, ElementsAre(1, 4));
  ASSERT_EQ(v.columns.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const TraceColumn& c = s.trace.columns[i];
    EXPECT_EQ(v.columns[i].boundary, c.boundary);
    EXPECT_EQ(v.columns[i].dtype, c.dtype);
    EXPECT_EQ(v.columns[i].width, c.width);
    EXPECT_EQ(v.columns[i].scored, c.scored);
    EXPECT_TRUE(std::equal(c.digests.begin(), c.digests.end(), v.columns[i].digests.begin(),
                           v.columns[i].digests.end()));
    EXPECT_TRUE(std::equal(c.non_finite.begin(), c.non_finite.end(),
                           v.columns[i].non_finite.begin(), v.columns[i].non_finite.end()));
  }
  const auto again = write_trace_file(path, false, s.view());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kUsage);
}

// embed (bf16) and logp (f32) with values, and their true digests.
struct SampleWithValues : Sample {
  std::vector<uint16_t> embed;
  std::vector<uint32_t> logp{0xbf800000u, 0xff800000u};
  SampleWithValues() {
    for (size_t i = 0; i < 5 * 96; ++i) embed.push_back(static_cast<uint16_t>(0x3f00 + i));
    trace.columns[0].values = std::as_writable_bytes(std::span(embed));
    trace.columns[2].values = std::as_writable_bytes(std::span(logp));
    for (size_t r = 0; r < 5; ++r) {
      uint64_t sum = 0;
      for (size_t i = 0; i < 96; ++i) sum += digest_element(embed[r * 96 + i], i);
      trace.columns[0].digests[r] = sum;
    }
    for (size_t r = 0; r < 2; ++r) trace.columns[2].digests[r] = digest_element(logp[r], 0);
    trace.columns[2].non_finite[1] = 1;
  }
};

TEST(TraceFile, ValuesAreReadByMap) {
  const SampleWithValues s;
  const std::string bytes = bytes_of(s.view());
  const auto file = parse_trace_file(bytes, "x");
  ASSERT_TRUE(file) << file.error().text();
  const auto& columns = file->view.columns;
  ASSERT_EQ(columns[0].values.size(), 5u * 96 * 2);
  EXPECT_TRUE(columns[1].values.empty());
  ASSERT_EQ(columns[2].values.size(), 8u);
  EXPECT_EQ(columns[0].bits_at(3, 7), 0x3f00u + 3 * 96 + 7);
  EXPECT_EQ(columns[2].bits_at(1, 0), 0xff800000u);
  for (size_t n = 0; n < bytes.size(); n += 7) {
    ASSERT_NE(reason(std::string_view(bytes).substr(0, n)), "(accepted)") << n;
  }
}

TEST(TraceFile, ValuesOfAnotherDigestAreBrokenData) {
  SampleWithValues s;
  EXPECT_EQ(check_reason(s), "(sound)");
  s.embed[2 * 96 + 5] ^= 1;
  EXPECT_THAT(check_reason(s),
              HasSubstr("embed has values whose digest is another than that of row 2"));
  s = SampleWithValues();
  s.trace.columns[0].values = std::as_writable_bytes(std::span(s.embed)).first(100);
  EXPECT_THAT(check_reason(s), HasSubstr("embed has 100 bytes of values for 5 rows of 96"));
  SampleWithValues unflagged;
  unflagged.trace.columns[2].non_finite[1] = 0;
  EXPECT_THAT(check_reason(unflagged), HasSubstr("logp has values whose digest"));
  // A manifest that promises values the file lacks.
  std::string bytes = bytes_of(Sample().view());
  const size_t at = bytes.find("\"scored\":false}");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 16, "\"values\":true } ");
  EXPECT_NE(reason(resealed(bytes)), "(accepted)");
}

TEST(TraceFile, BytesDependOnTheTraceAlone) {
  EXPECT_EQ(bytes_of(Sample().view()), bytes_of(Sample().view()));
}

TEST(TraceFile, EveryTruncationIsBrokenData) {
  const std::string bytes = bytes_of(Sample().view());
  for (size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_NE(reason(std::string_view(bytes).substr(0, n)), "(accepted)") << n;
  }
  EXPECT_NE(reason(bytes + "x"), "(accepted)");
  EXPECT_EQ(reason(bytes), "(accepted)");
}

TEST(TraceFile, EveryFlippedBitIsBrokenData) {
  const std::string bytes = bytes_of(Sample().view());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    ASSERT_NE(reason(flipped), "(accepted)") << i;
  }
}

TEST(TraceFile, DamageBehindARightChecksumNeverCrashes) {
  const std::string bytes = bytes_of(Sample().view());
  for (size_t i = 0; i + 72 < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      (void)parse_trace_file(resealed(flipped), "x");
    }
  }
  for (size_t n = 0; n + 72 < bytes.size(); ++n) {
    const std::string cut = bytes.substr(0, n);
    ASSERT_NE(reason(cut + "sha256 " + sha256_hex(cut) + "\n"), "(accepted)") << n;
  }
}

TEST(TraceFile, ReaderNamesTheFault) {
  EXPECT_THAT(reason("samebits trace/2\n{}"), HasSubstr("unknown version"));
  EXPECT_THAT(reason("hello"), HasSubstr("no trace"));
  EXPECT_THAT(reason(edited("layers.3.mlp.down.acc", "layers.3.mlp.done.acc")),
              HasSubstr("unknown boundary \"layers.3.mlp.done.acc\""));
  EXPECT_THAT(reason(edited("\"embed\"", "\"out_x\"")), HasSubstr("unknown boundary \"out_x\""));
  EXPECT_THAT(reason(edited("\"rows\":5", "\"rows\":9")), HasSubstr("shorter than its manifest"));
  EXPECT_THAT(reason(edited("\"rows\":5", "\"rows\":4")), HasSubstr("more than its manifest says"));
  EXPECT_THAT(reason(edited("\"rows\":5", "\"rows\":-")), HasSubstr("the manifest is not JSON"));
  EXPECT_THAT(reason(edited("bf16", "fp16")), HasSubstr("embed has the unknown dtype \"fp16\""));
  EXPECT_THAT(reason(edited("\"width\":96", "\"width\":-6")), HasSubstr("width = -6 is not in 0…"));
  EXPECT_THAT(reason(edited("\"width\":96", "\"width\":00")), HasSubstr("not JSON"));
  EXPECT_THAT(reason(edited("\"weights\"", "\"weighty\"")), HasSubstr("\"weights\" is missing"));
}

TEST(TraceFile, HugeSizesAreRefusedNotAllocated) {
  std::string bytes = bytes_of(Sample().view());
  const size_t at = bytes.find("\"rows\":5,\"scored\":2,");
  ASSERT_NE(at, std::string::npos);
  // 24 bytes longer; the manifest keeps its multiple of 8.
  bytes.replace(at, 20, "\"rows\":2147483647,\"scored\":2147483647,     ");
  EXPECT_THAT(reason(resealed(bytes)), testing::AnyOf(HasSubstr("shorter than its manifest says"),
                                                      HasSubstr("multiple of 8")));
}

TEST(TraceCheck, RowsAreOrderedUniqueAndComplete) {
  Sample s;
  EXPECT_EQ(check_reason(s), "(sound)");
  std::swap(s.trace.rows[1], s.trace.rows[2]);
  EXPECT_THAT(check_reason(s), HasSubstr("at sequence 0, position 1"));
  s = Sample();
  s.trace.rows[1] = s.trace.rows[0];
  EXPECT_THAT(check_reason(s), HasSubstr("repeated"));
  s = Sample();
  s.trace.rows[4].seq = 2;
  EXPECT_THAT(check_reason(s), HasSubstr("sequence 2, position 1 of 2 sequences"));
  s = Sample();
  s.trace.ids.push_back("c");
  s.tokens.push_back(hex64(3));
  EXPECT_THAT(check_reason(s), HasSubstr("the id \"c\" has no rows"));
  s = Sample();
  s.trace.scored = {4, 1};
  EXPECT_THAT(check_reason(s), HasSubstr("scored row 1 is out of order"));
  s = Sample();
  s.trace.scored = {1, 5};
  EXPECT_THAT(check_reason(s), HasSubstr("scored row 5"));
  s = Sample();
  s.trace.rows.clear();
  s.trace.scored.clear();
  EXPECT_THAT(check_reason(s), HasSubstr("no rows"));
}

TEST(TraceCheck, IdsAndColumnsObeyTheirRules) {
  Sample s;
  s.trace.ids[1] = "a";
  EXPECT_THAT(check_reason(s), HasSubstr("the id \"a\" appears twice"));
  s = Sample();
  s.trace.ids[1] = "\xff";
  EXPECT_THAT(check_reason(s), HasSubstr("not UTF-8"));
  s = Sample();
  s.tokens[0] = "12";
  EXPECT_THAT(check_reason(s), HasSubstr("token digest of \"a\""));
  s = Sample();
  std::swap(s.trace.columns[0], s.trace.columns[1]);
  EXPECT_THAT(check_reason(s), HasSubstr("embed is not in causal order"));
  s = Sample();
  s.trace.columns[1].digests.pop_back();
  EXPECT_THAT(check_reason(s),
              HasSubstr("layers.3.mlp.down.acc holds 4 digests and 5 flags for 5 rows"));
  s = Sample();
  s.trace.columns[1].non_finite[0] = 2;
  EXPECT_THAT(check_reason(s), HasSubstr("neither 0 nor 1"));
  s = Sample();
  s.trace.columns.clear();
  EXPECT_THAT(check_reason(s), HasSubstr("no boundaries"));
}

}  // namespace
}  // namespace sb
