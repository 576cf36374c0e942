#include "samebits/model/fingerprint.h"

#include "samebits/model/testing.h"

namespace sb {
namespace {

using nlohmann::json;
using namespace testing_model;

std::string print_of(const json& config) {
  auto a = parse_config(config.dump(), "config.json");
  EXPECT_TRUE(a) << (a ? "" : a.error().text());
  return a ? fingerprint_json(*a) : std::string("{}");
}

TEST(Fingerprint, IsCanonicalAndItsDigestIsSha256) {
  const auto a = *preset_architecture("tiny");
  const std::string text = fingerprint_json(a);
  EXPECT_EQ(json::parse(text).dump(), text);
  EXPECT_EQ(fingerprint_digest(a), sha256_hex(text));
}

TEST(Fingerprint, HoldsTheFactsThatDecideArithmetic) {
  auto a = parse_config(fixture("31b_full_transformers_5.24.0"), "c");
  ASSERT_TRUE(a);
  const json f = json::parse(fingerprint_json(*a));
  EXPECT_EQ(f["constants"]["embedding_scale"], "0x42930000");
  EXPECT_EQ(f["constants"]["softmax_scale"], "0x3f800000");
  EXPECT_EQ(f["constants"]["norm_weight"], "w");
  EXPECT_EQ(f["constants"]["vocab_pad"], "none");
  EXPECT_TRUE(f["constants"].contains("layer_scalar"));
  EXPECT_TRUE(f["constants"].contains("v_norm"));
  EXPECT_TRUE(f["constants"].contains("global_v_source"));
  EXPECT_EQ(f["mask"]["sliding"], "i-W<j<=i");
  EXPECT_TRUE(f["mask"].contains("semantics"));
  EXPECT_EQ(f["rope"]["sliding_attention"]["inv_freq"].size(), 128u);
  EXPECT_EQ(f["rope"]["full_attention"]["inv_freq"][63], "0x3d08b588");
  EXPECT_EQ(f["rope"]["full_attention"]["exponent_denominator"], 512);
  EXPECT_EQ(f["rope"]["full_attention"]["block_digests"].size(), 3u);
  EXPECT_EQ(f["counts"]["text_parameters"], 30697345340);
  EXPECT_EQ(f["counts"]["text_tensors"], 832);
  EXPECT_EQ(f["counts"]["tensors"], 1188);
  EXPECT_EQ(f["counts"]["parameters"], 31273088876);
  EXPECT_EQ(f["tokens"]["image_token_id"], 258880);
  EXPECT_EQ(f["vision"]["num_hidden_layers"], 27);
}

TEST(Fingerprint, Block255OnlyWhereItExists) {
  json c = json::parse(fixture("tiny_text_transformers_5.7.0"));
  c["max_position_embeddings"] = 1024;
  const json f = json::parse(print_of(c));
  EXPECT_EQ(f["rope"]["sliding_attention"]["block_digests"].size(), 1u);
}

// A value that differs from `v` and has the same type.
json changed(const json& v) {
  if (v.is_boolean()) return !v.get<bool>();
  if (v.is_number_integer()) return v.get<int64_t>() * 2 + 2;
  if (v.is_number()) return v.get<double>() * 2 + 0.5;
  if (v.is_string()) return v.get<std::string>() + "x";
  if (v.is_null()) return 3;
  return v;
}

// Every field of a config, one at a time: either it is refused by name, or the fingerprint moves
// and the difference names the field.
TEST(Fingerprint, NoFieldOfTheConfigChangesUnseen) {
  const std::vector<std::string> without_effect = {
      "initializer_range", "use_cache", "transformers_version", "vocab_size_per_layer_input"};
  for (const char* name : {"tiny_text_transformers_5.7.0", "tiny_text_transformers_5.24.0"}) {
    const json base = json::parse(fixture(name));
    const std::string base_print = print_of(base);
    const json flat = base.flatten();
    int moved = 0, refused = 0;
    for (const auto& [pointer, value] : flat.items()) {
      const std::string leaf = pointer.substr(pointer.rfind('/') + 1);
      const bool listed = pointer.starts_with("/layer_types");
      json c = base;
      json& at = c[json::json_pointer(pointer)];
      at = listed ? json(value == "full_attention" ? "sliding_attention" : "full_attention")
                  : changed(value);
      auto a = parse_config(c.dump(), "config.json");
      const std::string key = listed ? "layer_types" : leaf;
      if (!a) {
        ++refused;
        EXPECT_NE(a.error().text().find(key), std::string::npos) << pointer << a.error().text();
        continue;
      }
      const std::string print = fingerprint_json(*a);
      if (std::find(without_effect.begin(), without_effect.end(), leaf) != without_effect.end()) {
        EXPECT_EQ(print, base_print) << pointer;
        continue;
      }
      ++moved;
      auto d = fingerprint_diff(base_print, print);
      ASSERT_TRUE(d);
      std::string all;
      for (const auto& path : *d) all += path + " ";
      const std::string spelled = leaf == "partial_rotary_factor" ? "rotary_pairs" : key;
      EXPECT_NE(all.find(spelled), std::string::npos) << pointer << " moved only " << all;
    }
    EXPECT_GE(moved, 12);
    EXPECT_GE(refused, 8);
  }
}

TEST(Fingerprint, DiffListsPaths) {
  EXPECT_EQ(*fingerprint_diff("{}", "{}"), std::vector<std::string>{});
  EXPECT_EQ(*fingerprint_diff(R"({"a":{"b":1,"c":[1,2]}})", R"({"a":{"c":[1,3],"d":0}})"),
            (std::vector<std::string>{"a.b", "a.c[1]", "a.d"}));
  EXPECT_EQ(*fingerprint_diff(R"({"a":[1]})", R"({"a":[1,2]})"), std::vector<std::string>{"a"});
  EXPECT_FALSE(fingerprint_diff("{", "{}"));
}

TEST(Fingerprint, OfAModelHoldsItsWeights) {
  auto m = load(make_model("tiny"));
  ASSERT_TRUE(m) << m.error().text();
  const json f = json::parse(fingerprint_json(*m));
  EXPECT_EQ(f["weights"]["digest"], m->weights_digest);
  auto d = fingerprint_diff(fingerprint_json(*m), fingerprint_json(m->arch));
  EXPECT_EQ(*d, std::vector<std::string>{"weights"});
}

}  // namespace
}  // namespace sb
