#include "samebits/model/synthetic.h"

#include <cmath>

#include "samebits/base/digest.h"
#include "samebits/base/rng.h"
#include "samebits/model/testing.h"

namespace sb {
namespace {

using namespace testing_model;

std::vector<bf16> values(const SyntheticTensor& t, int64_t first, int64_t count) {
  std::vector<bf16> out(static_cast<size_t>(count));
  t.fill(out.data(), first, count);
  return out;
}

TEST(Synthetic, AnElementIsTheFormula) {
  const ExpectedTensor t{"model.language_model.layers.0.self_attn.q_proj.weight", {7, 100}};
  const SyntheticTensor s(t, 5);
  const uint64_t key = xxh64(t.name, 5);
  const auto v = values(s, 0, 700);
  const float scale = static_cast<float>(1.0 / std::sqrt(100.0) / 37837);
  for (int64_t i = 0; i < 700; ++i) {
    const Philox4 b = philox4x32_10(Philox4{{static_cast<uint32_t>(i), 0, 0, 0}}, key);
    const int sum =
        static_cast<int>((b.v[0] & 0xffff) + (b.v[0] >> 16) + (b.v[1] & 0xffff) + (b.v[1] >> 16)) -
        131070;
    const bool outlier = std::count(s.outliers(), s.outliers() + s.num_outliers(), i % 100) > 0;
    const float x = static_cast<float>(sum) * (outlier ? scale * 32 : scale);
    ASSERT_EQ(v[i].bits, round_bf16(x).bits) << i;
  }
  EXPECT_EQ(s.num_outliers(), 4);
}

TEST(Synthetic, UniformKindsAreTheFormula) {
  for (auto [kind, low, high, scale] :
       {std::tuple(TensorKind::kQkNorm, 0.75f, 1.25f,
                   static_cast<float>(std::sqrt(2.0 / std::sqrt(32.0)))),
        {TensorKind::kNorm, 0.5f, 1.5f, 1.0f},
        {TensorKind::kLayerScalar, 0.3f, 0.9f, 1.0f}}) {
    const ExpectedTensor t{"n", {32}, kind};
    const auto v = values(SyntheticTensor(t, 1), 0, 32);
    for (uint32_t i = 0; i < 32; ++i) {
      const Philox4 b = philox4x32_10(Philox4{{i, 0, 0, 0}}, xxh64("n", 1));
      const float u = static_cast<float>(b.v[2] >> 8) * 0x1p-24f;
      EXPECT_EQ(v[i].bits, round_bf16(scale * (low + (high - low) * u)).bits);
      EXPECT_NE(v[i].bits, 0x3f80) << "exactly 1 would hide a lost weight";
    }
  }
}

TEST(Synthetic, AnySliceHasTheSameBits) {
  const ExpectedTensor t{"w", {64, 129}};
  const SyntheticTensor s(t, 0);
  const auto whole = values(s, 0, t.numel());
  CounterRng rng(3);
  for (int n = 0; n < 200; ++n) {
    const int64_t first = rng.below(static_cast<uint32_t>(t.numel()));
    const int64_t count = rng.below(static_cast<uint32_t>(t.numel() - first + 1));
    const auto part = values(s, first, count);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(part[i], whole[first + i]) << first << " " << i;
  }
}

TEST(Synthetic, IndicesBeyond32BitsAreTheirOwn) {
  const ExpectedTensor t{"w", {int64_t{1} << 20, 1 << 16}, TensorKind::kEmbedding};
  const SyntheticTensor s(t, 0);
  const int64_t at = (int64_t{1} << 32) - 5;
  const auto v = values(s, at, 10);
  EXPECT_NE(values(s, 0, 5), std::vector<bf16>(v.begin() + 5, v.end()));
  const Philox4 b = philox4x32_10(Philox4{{1, 1, 0, 0}}, xxh64("w", 0));
  const int sum =
      static_cast<int>((b.v[0] & 0xffff) + (b.v[0] >> 16) + (b.v[1] & 0xffff) + (b.v[1] >> 16)) -
      131070;
  EXPECT_EQ(v[6], round_bf16(static_cast<float>(sum) * static_cast<float>(5.0 / 256 / 37837)));
}

TEST(Synthetic, MomentsAreTheIntendedOnes) {
  const ExpectedTensor t{"e", {1000, 96}, TensorKind::kEmbedding};
  double sum = 0, squares = 0;
  for (bf16 v : values(SyntheticTensor(t, 0), 0, 96000)) {
    sum += widen(v);
    squares += static_cast<double>(widen(v)) * widen(v);
  }
  // tolerance: moments of the normal distribution, over 96000 draws
  EXPECT_NEAR(sum / 96000, 0, 5e-3);
  EXPECT_NEAR(std::sqrt(squares / 96000), 5 / std::sqrt(96.0), 5e-3);
}

// The weights of seed 0 are part of every golden value further down; a change here changes them
// all.
TEST(Synthetic, GoldenDigests) {
  auto tiny = load(make_model("tiny"));
  ASSERT_TRUE(tiny) << tiny.error().text();
  EXPECT_EQ(tiny->weights_digest,
            "aac0be7a35dd9fcfa60dc27cd8ddeafc3f4c5558d7ce7872038fdf201be56bb8");
  auto mini = load(make_model("mini", {}, "mini"), 2);
  ASSERT_TRUE(mini) << mini.error().text();
  EXPECT_EQ(mini->weights_digest,
            "d445b349ab061f663a7cb26c7d0f83383845430d66fb16b4d90736a9aacb215d");
  auto other = load(make_model("tiny", [](NewModel& n) { n.seed = 1; }, "seed1"));
  EXPECT_NE(other->weights_digest, tiny->weights_digest);
  EXPECT_EQ(other->arch_digest, tiny->arch_digest);
}

TEST(Presets, AreTheDocumentedSizes) {
  EXPECT_EQ(preset_architecture("gemma4-31b")->text_parameters(), 30697345340);
  const auto t = *preset_architecture("tiny");
  EXPECT_EQ(t.text_parameters(), 1158086);
  for (const Preset& p : presets()) {
    const auto a = *preset_architecture(p.name);
    EXPECT_NE(a.vocab % 256 == 0 && a.vocab != 262144, true) << p.name;
    EXPECT_EQ(a.layers.back(), LayerType::kGlobal);
    for (LayerType l : {LayerType::kSliding, LayerType::kGlobal}) {
      EXPECT_EQ(a.num_heads * a.attention(l).head_dim % 128, 0);
    }
    EXPECT_EQ(a.intermediate % 128, 0);
  }
  auto none = preset_architecture("huge");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kUsage);
  EXPECT_THAT(none.error().text(), testing::HasSubstr("tiny, mini, layer31b, gemma4-31b"));
}

TEST(Presets, NewModelNeverOverwritesUnasked) {
  const std::string dir = make_model("tiny");
  NewModel again;
  again.dir = dir;
  auto r = write_synthetic(again);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::kUsage);
  write_file(dir + "/notes.txt", "mine");
  again.force = true;
  again.shard_bytes = 600000;
  ASSERT_TRUE(write_synthetic(again));
  EXPECT_FALSE(path_exists(dir + "/model.safetensors"));  // the stale single file is gone
  EXPECT_TRUE(path_exists(dir + "/notes.txt"));
  EXPECT_TRUE(load(dir));
  again.preset = "layer31b";
  ASSERT_TRUE(write_synthetic(again));
  EXPECT_TRUE(path_exists(dir + "/" + kVirtualFile));
  EXPECT_FALSE(path_exists(dir + "/model.safetensors.index.json"));
}

TEST(Presets, VirtualFilesAreChecked) {
  EXPECT_EQ(*parse_virtual(R"({"samebits":"virtual/1","scheme":"philox4x32-10.v1","seed":7})", "v"),
            7u);
  for (const char* bad : {"{}", R"({"samebits":"virtual/2"})", "[]", "{",
                          R"({"samebits":"virtual/1","scheme":"philox4x32-10.v1"})",
                          R"({"samebits":"virtual/1","scheme":"philox4x32-10.v1","seed":-1})"}) {
    EXPECT_FALSE(parse_virtual(bad, "v")) << bad;
  }
  auto r = parse_virtual(R"({"samebits":"virtual/1","scheme":"other.v9","seed":7})", "v");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::kRefused);
}

}  // namespace
}  // namespace sb
