#include "samebits/model/fingerprint.h"
#include "samebits/model/testing.h"

namespace sb {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using namespace testing_model;

Architecture parsed(const std::string& text) {
  auto a = parse_config(text, "config.json");
  EXPECT_TRUE(a) << (a ? "" : a.error().text());
  return a ? *a : Architecture{};
}

// The refusal of a fixture after an edit.
Refusal refusal_of(const json& config) {
  auto a = parse_config(config.dump(), "config.json");
  EXPECT_FALSE(a) << "accepted: " << config.dump();
  return a ? Refusal{} : a.error();
}

json flat() { return json::parse(fixture("tiny_text_transformers_5.7.0")); }
json newer() { return json::parse(fixture("tiny_text_transformers_5.24.0")); }
json full31b() { return json::parse(fixture("31b_full_transformers_5.7.0")); }

TEST(Config, FlatAndPerLayerFormsAreOneArchitecture) {
  const auto a = parsed(flat().dump()), b = parsed(newer().dump());
  EXPECT_EQ(fingerprint_json(a), fingerprint_json(b));
  EXPECT_EQ(b.global.head_dim, 32);
  EXPECT_EQ(b.global.num_kv_heads, 2);
  EXPECT_EQ(b.sliding.head_dim, 16);
  EXPECT_EQ(b.sliding.num_kv_heads, 8);
}

TEST(Config, NestedFormsAreOneArchitecture) {
  for (const char* size : {"tiny_full", "31b_full"}) {
    const auto a = parsed(fixture(size + std::string("_transformers_5.7.0")));
    const auto b = parsed(fixture(size + std::string("_transformers_5.24.0")));
    EXPECT_EQ(fingerprint_json(a), fingerprint_json(b)) << size;
    EXPECT_TRUE(a.has_vision);
    EXPECT_TRUE(a.unknown_keys.empty()) << a.unknown_keys[0].first;
  }
}

TEST(Config, FlatAndNestedAgreeOnTheText) {
  auto d = fingerprint_diff(fingerprint_json(parsed(flat().dump())),
                            fingerprint_json(parsed(fixture("tiny_full_transformers_5.7.0"))));
  ASSERT_TRUE(d);
  for (const auto& path : *d) {
    EXPECT_TRUE(path.starts_with("vision") || path.starts_with("counts") ||
                path.starts_with("tokens"))
        << path;
  }
}

TEST(Config, RealSizes) {
  const auto a = parsed(full31b().dump());
  EXPECT_EQ(a.hidden, 5376);
  EXPECT_EQ(a.num_layers(), 60);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(a.layers[i] == LayerType::kGlobal, i % 6 == 5);
  EXPECT_EQ(a.sliding.rotary_pairs, 128);
  EXPECT_EQ(a.global.rotary_pairs, 64);
  EXPECT_EQ(a.window, 1024);
  EXPECT_EQ(a.segment, 4096);
  EXPECT_EQ(float_bits(a.rms_eps), 0x358637bdu);
  EXPECT_EQ(float_bits(a.embedding_scale()), 0x42930000u);
  EXPECT_EQ(a.tokens.eos, (std::vector<int64_t>{1, 106}));
}

TEST(Config, NoKeyOfTheHeadsIsEverGuessed) {
  for (const char* key : {"head_dim", "num_key_value_heads", "global_head_dim",
                          "num_global_key_value_heads", "num_attention_heads"}) {
    json c = flat();
    c.erase(key);
    const Refusal r = refusal_of(c);
    EXPECT_EQ(r.code, Code::kBrokenData);
    EXPECT_THAT(r.text(), HasSubstr(std::string("key ") + key + " is missing"));
  }
  json c = newer();
  c.erase("per_layer_config");
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("global_head_dim is missing"));
}

TEST(Config, EveryKeyThatDecidesArithmeticIsRequired) {
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "layer_types", "sliding_window",
        "vocab_size", "max_position_embeddings", "rms_norm_eps", "final_logit_softcapping",
        "tie_word_embeddings", "attention_k_eq_v", "hidden_size_per_layer_input",
        "hidden_activation", "rope_parameters", "model_type"}) {
    json c = flat();
    c.erase(key);
    const Refusal r = refusal_of(c);
    EXPECT_EQ(r.code, Code::kBrokenData) << key;
    EXPECT_THAT(r.text(), HasSubstr(key));
  }
}

TEST(Config, PerLayerConfigWithAFieldLeftOutMeansTheCommonValue) {
  json c = newer();
  c["per_layer_config"]["5"].erase("num_key_value_heads");  // as written when the two are equal
  EXPECT_EQ(parsed(c.dump()).global.num_kv_heads, 8);
}

TEST(Config, PerLayerConfigFaults) {
  struct Case {
    const char* edit;
    const char* says;
  };
  for (const Case& k :
       {Case{R"({"5": {"head_dim": 32, "intermediate_size": 512}})", "intermediate_size"},
        Case{R"({"6": {"head_dim": 32}})", "no layer number below 6"},
        Case{R"({"x": {"head_dim": 32}})", "no layer number"},
        Case{R"({"-1": {"head_dim": 32}})", "no layer number"},
        Case{R"({"2": {"head_dim": 32}, "5": {"head_dim": 32}})", "layer 2"},
        Case{R"({"5": {"head_dim": "32"}})", "head_dim"},
        Case{R"({"5": {"head_dim": 0}})", "head_dim"},
        Case{R"({"5": {"head_dim": 32}, "05": {"head_dim": 32}})", "second time"},
        Case{R"([1])", "per_layer_config"}}) {
    json c = newer();
    c["per_layer_config"] = json::parse(k.edit);
    EXPECT_THAT(refusal_of(c).text(), HasSubstr(k.says)) << k.edit;
  }
  json c = newer();
  c["global_head_dim"] = 64;  // contradicts the table
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("global_head_dim is 64"));
}

TEST(Config, UnsupportedFeaturesAreRefusedByKeyAndValue) {
  const std::vector<std::pair<std::string, json>> edits = {{"attention_bias", true},
                                                           {"attention_k_eq_v", false},
                                                           {"tie_word_embeddings", false},
                                                           {"enable_moe_block", true},
                                                           {"num_experts", 128},
                                                           {"hidden_size_per_layer_input", 256},
                                                           {"num_kv_shared_layers", 2},
                                                           {"use_double_wide_mlp", true},
                                                           {"hidden_activation", "silu"},
                                                           {"attn_logit_softcapping", 50.0},
                                                           {"query_pre_attn_scalar", 256},
                                                           {"attention_chunk_size", 512},
                                                           {"attention_dropout", 0.1},
                                                           {"quantization_config", {{"bits", 4}}},
                                                           {"use_bidirectional_attention", "all"},
                                                           {"use_bidirectional_attention", true},
                                                           {"dtype", "float32"},
                                                           {"torch_dtype", "float16"},
                                                           {"model_type", "gemma3_text"},
                                                           {"rope_scaling", {{"factor", 2}}},
                                                           {"num_attention_heads", 12},
                                                           {"num_key_value_heads", 5},
                                                           {"num_global_key_value_heads", 3},
                                                           {"head_dim", 15},
                                                           {"hidden_size", 0},
                                                           {"vocab_size", -1},
                                                           {"max_position_embeddings", 1 << 24},
                                                           {"rms_norm_eps", 0},
                                                           {"final_logit_softcapping", -30.0},
                                                           {"vision_config", {{"hidden_size", 4}}},
                                                           {"sliding_window", 0}};
  for (const auto& [key, value] : edits) {
    json c = flat();
    c[key] = value;
    const Refusal r = refusal_of(c);
    EXPECT_EQ(r.code, Code::kRefused) << r.text();
    EXPECT_THAT(r.text(), HasSubstr(key));
    EXPECT_FALSE(r.remedy.empty());
  }
}

TEST(Config, RopeParameters) {
  struct Case {
    const char *type, *key;
    json value;
  };
  for (const Case& k :
       {Case{"full_attention", "factor", 8.0}, Case{"full_attention", "rope_type", "yarn"},
        Case{"sliding_attention", "rope_type", "proportional"},
        Case{"sliding_attention", "partial_rotary_factor", 0.25},
        Case{"full_attention", "partial_rotary_factor", 0.0},
        Case{"full_attention", "partial_rotary_factor", 1.5},
        Case{"full_attention", "partial_rotary_factor", 0.01},
        Case{"full_attention", "rope_theta", 1.0}, Case{"full_attention", "attention_factor", 1.1},
        Case{"full_attention", "beta_fast", 32}}) {
    json c = flat();
    c["rope_parameters"][k.type][k.key] = k.value;
    const Refusal r = refusal_of(c);
    EXPECT_THAT(r.text(), HasSubstr(std::string("rope_parameters.") + k.type)) << r.text();
  }
  json c = flat();
  c["rope_parameters"]["full_attention"]["factor"] = 1;  // says what is so anyway
  EXPECT_EQ(fingerprint_json(parsed(c.dump())), fingerprint_json(parsed(flat().dump())));
  c["rope_parameters"].erase("sliding_attention");
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("sliding_attention is missing"));
}

TEST(Config, WindowIsANumberAndPairsConvert) {
  for (const char* value : {"[1023, 0]", "[512]", "true", "24.0", "\"24\"", "{}"}) {
    json c = flat();
    c["sliding_window"] = json::parse(value);
    const Refusal r = refusal_of(c);
    EXPECT_EQ(r.code, Code::kBrokenData);
    EXPECT_THAT(r.text(), HasSubstr("sliding_window"));
  }
  for (int w : {1, 24, 512, 1024}) {
    const auto [left, right] = window_left_right(w);
    EXPECT_EQ(left, w - 1);
    EXPECT_EQ(right, 0);
    EXPECT_EQ(*window_from_left_right(left, right), w);
  }
  EXPECT_FALSE(window_from_left_right(1023, 1));
  EXPECT_FALSE(window_from_left_right(-1, -1));
  EXPECT_FALSE(window_from_left_right(-1, 0));
}

TEST(Config, LayerTypes) {
  json c = flat();
  c["layer_types"].push_back("full_attention");
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("7 layers"));
  c = flat();
  c["layer_types"][5] = "sliding_attention";
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("silently turns"));
  c["layer_types"][5] = "chunked_attention";
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("chunked_attention"));
}

TEST(Config, OwnKeySetsTheSegment) {
  json c = flat();
  c["samebits"] = {{"segment", 128}};
  EXPECT_EQ(parsed(c.dump()).segment, 128);
  for (const char* bad : {R"({"segment": 100})", R"({"segment": 0})", R"({"segment": "128"})",
                          R"({"segment": 128, "window": 1})", R"({})", "3"}) {
    c["samebits"] = json::parse(bad);
    EXPECT_THAT(refusal_of(c).text(), HasSubstr("samebits")) << bad;
  }
}

TEST(Config, VisionPartsThatHaveNoContract) {
  json c = full31b();
  c["vision_config"]["use_clipped_linears"] = true;
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("vision_config.use_clipped_linears is true"));
  c = full31b();
  c["audio_config"] = {{"hidden_size", 1024}};
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("audio_config"));
  c = full31b();
  c["vision_config"].erase("head_dim");
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("vision_config.head_dim is missing"));
  c = full31b();
  c["tie_word_embeddings"] = false;
  EXPECT_THAT(refusal_of(c).text(), HasSubstr("tie_word_embeddings is false"));
}

TEST(Config, MalformedTextIsBrokenData) {
  for (const char* text : {"", "{", "[]", "3", "{\"a\":1,\"a\":2}", "{\"hidden_size\": 1e999}",
                           "nul", "\xff\xfe", "{\"text_config\": 5, \"model_type\": \"gemma4\"}"}) {
    auto a = parse_config(text, "config.json");
    ASSERT_FALSE(a) << text;
    EXPECT_EQ(a.error().code, Code::kBrokenData) << text;
  }
  EXPECT_FALSE(parse_config(std::string(100000, '['), "deep"));
  json c = flat();
  std::string twice = c.dump();
  twice.insert(1, "\"head_dim\": 16, ");
  auto a = parse_config(twice, "config.json");
  ASSERT_FALSE(a);
  EXPECT_THAT(a.error().text(), HasSubstr("\"head_dim\" appears twice"));
}

TEST(Config, AllFaultsAreToldAtOnce) {
  json c = flat();
  c["attention_bias"] = true;
  c["hidden_activation"] = "silu";
  EXPECT_GE(refusal_of(c).reasons.size(), 2u);
}

TEST(Config, UnknownKeysAreKeptForTheFingerprint) {
  json c = flat();
  c["brand_new_switch"] = 7;
  const auto a = parsed(c.dump());
  ASSERT_EQ(a.unknown_keys.size(), 1u);
  auto d = fingerprint_diff(fingerprint_json(a), fingerprint_json(parsed(flat().dump())));
  EXPECT_EQ(*d, std::vector<std::string>{"unknown_keys.brand_new_switch"});
}

TEST(Config, GenerationConfig) {
  auto a = parsed(full31b().dump());
  ASSERT_TRUE(parse_generation_config(
      R"({"eos_token_id": [1, 106, 50], "suppress_tokens": [258883]})", "g", a));
  EXPECT_EQ(a.tokens.eos, (std::vector<int64_t>{1, 106, 50}));
  EXPECT_EQ(a.tokens.suppress, std::vector<int64_t>{258883});
  for (const char* bad : {R"({"eos_token_id": 262144})", R"({"eos_token_id": -1})",
                          R"({"suppress_tokens": ["a"]})", "[]"}) {
    EXPECT_FALSE(parse_generation_config(bad, "g", a)) << bad;
  }
}

TEST(Config, WrittenConfigsReadBack) {
  for (const char* name : {"tiny", "mini", "layer31b", "gemma4-31b"}) {
    const auto a = *preset_architecture(name);
    EXPECT_EQ(fingerprint_json(parsed(write_config(a))), fingerprint_json(a)) << name;
  }
  const auto a = parsed(full31b().dump());
  EXPECT_EQ(fingerprint_json(parsed(write_config(a))), fingerprint_json(a));
}

}  // namespace
}  // namespace sb
