#include "samebits/model/tensor_names.h"

#include "samebits/model/testing.h"

namespace sb {
namespace {

using testing::HasSubstr;
using namespace testing_model;

std::vector<StoredTensor> stored(const std::vector<ExpectedTensor>& tensors,
                                 bool text_only = false) {
  std::vector<StoredTensor> out;
  for (const auto& t : tensors)
    out.push_back({text_only ? text_only_name(t.name) : t.name, t.shape});
  return out;
}
Architecture tiny() { return *preset_architecture("tiny"); }

TEST(TensorNames, CountsOfThePublishedModel) {
  const auto a = *parse_config(fixture("31b_full_transformers_5.7.0"), "c");
  const auto text = text_tensors(a), vision = vision_tensors(a);
  int64_t n = 0;
  for (const auto& t : text) n += t.numel();
  EXPECT_EQ(n, 30697345340);
  EXPECT_EQ(a.text_parameters(), 30697345340);
  EXPECT_EQ(text.size(), 832u);
  EXPECT_EQ(text.size() + vision.size(), 1188u);
  EXPECT_EQ(a.vision_parameters(), 569550384 + 6193152);
  EXPECT_EQ(a.text_parameters() + a.vision_parameters(), 31273088876);
  auto all = stored(text);
  for (const auto& t : stored(vision)) all.push_back(t);
  auto map = match_tensors(a, all, "m");
  ASSERT_TRUE(map) << map.error().text();
  EXPECT_EQ(map->vision, 356);
  EXPECT_EQ(map->stored.size(), 832u);
}

TEST(TensorNames, BothPrefixesMapToOneName) {
  for (bool text_only : {false, true}) {
    auto map = match_tensors(tiny(), stored(text_tensors(tiny()), text_only), "m");
    ASSERT_TRUE(map) << map.error().text();
    EXPECT_EQ(
        map->stored["model.language_model.layers.3.layer_scalar"],
        text_only ? "model.layers.3.layer_scalar" : "model.language_model.layers.3.layer_scalar");
  }
}

TEST(TensorNames, MixedPrefixesAreRefused) {
  auto s = stored(text_tensors(tiny()));
  s[5].name = text_only_name(s[5].name);
  auto map = match_tensors(tiny(), s, "m");
  ASSERT_FALSE(map);
  EXPECT_THAT(map.error().text(), HasSubstr("one scheme"));
}

TEST(TensorNames, AForeignSchemeIsAnErrorWithCounts) {
  auto s = stored(text_tensors(tiny()));
  for (auto& t : s) t.name = "language_model." + text_only_name(t.name);
  auto map = match_tensors(tiny(), s, "m");
  ASSERT_FALSE(map);
  const std::string n = std::to_string(s.size());
  EXPECT_THAT(map.error().text(), HasSubstr(n + " of " + n + " tensors are missing"));
  EXPECT_THAT(map.error().text(), HasSubstr(n + " tensors are not known"));
  EXPECT_THAT(map.error().text(), HasSubstr("(" + n + " in all)"));
}

TEST(TensorNames, WrongShapesNameBothShapes) {
  auto s = stored(text_tensors(tiny()));
  s[0].shape = {2512, 96};  // a padded vocabulary
  auto map = match_tensors(tiny(), s, "m");
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, Code::kBrokenData);
  EXPECT_THAT(map.error().text(),
              HasSubstr("embed_tokens.weight is [2512, 96], the config asks for "
                        "[2500, 96]"));
}

TEST(TensorNames, HeadAndSharedValueProjectionAreHandedBackForComparison) {
  auto s = stored(text_tensors(tiny()));
  s.push_back({"lm_head.weight", {2500, 96}});
  s.push_back({kLayer + "5.self_attn.v_proj.weight", {64, 96}});
  auto map = match_tensors(tiny(), s, "m");
  ASSERT_TRUE(map) << map.error().text();
  EXPECT_EQ(map->head, "lm_head.weight");
  ASSERT_EQ(map->shared_v.size(), 1u);
  EXPECT_EQ(map->shared_v[0].second, kLayer + "5.self_attn.k_proj.weight");
}

TEST(TensorNames, HalfATowerIsBroken) {
  const auto a = *parse_config(fixture("tiny_full_transformers_5.7.0"), "c");
  auto s = stored(text_tensors(a));
  ASSERT_TRUE(match_tensors(a, s, "m"));  // none of it: a text model
  s.push_back(stored(vision_tensors(a))[3]);
  auto map = match_tensors(a, s, "m");
  ASSERT_FALSE(map);
  EXPECT_THAT(map.error().text(), HasSubstr("model.vision_tower."));
  EXPECT_FALSE(match_tensors(tiny(), s, "m"));  // a tower that no config describes
}

}  // namespace
}  // namespace sb
