#include "samebits/gate/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/gate/json_line.h"

namespace sb {
namespace {

TEST(Numbers, ShortestReadsBackToTheSameBits) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(mix64(i));
    if (!is_finite_bits(bits)) continue;
    const float x = bits_float(bits);
    const std::string text = shortest(x);
    const auto back = parse_float(text);
    ASSERT_TRUE(back) << text;
    ASSERT_EQ(float_bits(*back), bits) << text;
    const auto json = parse_json_line("[" + text + "]");
    ASSERT_TRUE(json) << text;
    ASSERT_EQ(float_bits(json->items[0].number), bits) << text;
  }
}

TEST(Numbers, ShortestIsShortAndValidJson) {
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(-1.0f), "-1");
  EXPECT_EQ(shortest(0.0f), "0");
  EXPECT_EQ(shortest(-0.0f), "-0.0");
  EXPECT_EQ(shortest(1e-5f), "1e-05");
  EXPECT_EQ(shortest(-16777216.0f), "-16777216");
  EXPECT_EQ(shortest_or_null(std::nan("")), "null");
}

TEST(Numbers, SignOfZeroSurvivesJson) {
  const auto json = parse_json_line("[-0, -0.0, 0, -1e-60, 1e-60]");
  ASSERT_TRUE(json);
  EXPECT_EQ(float_bits(json->items[0].number), 0x80000000u);
  EXPECT_EQ(float_bits(json->items[1].number), 0x80000000u);
  EXPECT_EQ(float_bits(json->items[2].number), 0u);
  EXPECT_EQ(float_bits(json->items[3].number), 0x80000000u);
  EXPECT_EQ(float_bits(json->items[4].number), 0u);
}

TEST(Numbers, DecimalsAreRoundedOnce) {
  // Just above the midpoint of 1 and its successor; through a double it would land on the midpoint
  // and round to even, which is 1.
  const auto x = parse_float("1.00000005960464477540");
  ASSERT_TRUE(x);
  EXPECT_EQ(float_bits(*x), 0x3f800001u);
  const auto json = parse_json_line("[1.00000005960464477540]");
  ASSERT_TRUE(json);
  EXPECT_EQ(float_bits(json->items[0].number), 0x3f800001u);
}

TEST(Numbers, HexFormsAreBitsOrC99) {
  EXPECT_EQ(float_bits(parse_float("0xbf800000").value()), 0xbf800000u);
  EXPECT_EQ(float_bits(parse_float("0x7FC00000").value()), 0x7fc00000u);
  EXPECT_EQ(parse_float("-0x1.8p-1").value(), -0.75f);
  EXPECT_EQ(parse_float("0x1p+0").value(), 1.0f);
  for (const char* wrong : {"0x", "0xbf8", "-0xbf800000", "0xbf8000000", "0x-1p3", "1.0 ", " 1", "",
                            "nan", "inf", "1e39", "0xbf80000g", "1,5", "--1", "0x+1p1"}) {
    EXPECT_FALSE(parse_float(wrong)) << wrong;
  }
}

TEST(Numbers, UlpDistanceCountsSteps) {
  EXPECT_EQ(ulp_distance(1.0f, 1.0f), 0);
  EXPECT_EQ(ulp_distance(1.0f, std::nextafter(1.0f, 2.0f)), 1);
  EXPECT_EQ(ulp_distance(-0.0f, 0.0f), 1);
  EXPECT_EQ(ulp_distance(bits_float(0x80000001u), bits_float(1u)), 3);
  EXPECT_EQ(ulp_distance(-1.0f, -2.0f), 1 << 23);
}

TEST(Numbers, TextHelpers) {
  EXPECT_EQ(bits_hex(-1.0f), "0xbf800000");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(json_string("a\"\\\n\x01ü"), "\"a\\\"\\\\\\n\\u0001ü\"");
  EXPECT_EQ(json_string("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(in_quotes("üü", 3), "\"ü…\"");
}

TEST(JsonLine, RefusesRepeatedKeysDepthAndRubbish) {
  EXPECT_NE(parse_json_line(R"({"a":1,"a":2})").error().find("\"a\" appears twice"),
            std::string::npos);
  EXPECT_NE(parse_json_line(std::string(100, '[')).error().find("nested deeper than 64"),
            std::string::npos);
  EXPECT_NE(parse_json_line("{\"a\":}").error().find("not JSON at column 6"), std::string::npos);
  EXPECT_NE(parse_json_line("[NaN]").error().find("must be a finite number"), std::string::npos);
  EXPECT_FALSE(parse_json_line("{} {}"));
  EXPECT_FALSE(parse_json_line("[1e999]"));
  EXPECT_FALSE(parse_json_line("[1e39]")->items[0].finite);
}

TEST(JsonLine, UnknownValuesKeepTheirText) {
  const auto json = parse_json_line(R"( {"a":[1.10,{"b":null,"c":"ü"}],"d":true} )");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->json(), R"({"a":[1.10,{"b":null,"c":"ü"}],"d":true})");
}

}  // namespace
}  // namespace sb
