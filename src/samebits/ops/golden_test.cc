// Digests of every operator's results on fixed random inputs, per contract, profile, seed and
// shape, frozen in goldens/ops.json. An oracle that changes one bit fails here, whatever its own
// tests say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "samebits/arith/sincos.h"
#include "samebits/base/digest.h"
#include "samebits/model/rope_table.h"
#include "samebits/ops/attention_testing.h"
#include "samebits/ops/head_testing.h"

namespace sb::ops_testing {
namespace {

const char* kGoldens = SB_SOURCE_DIR "/goldens/ops.json";

// Two order-free sums over all result bits, in the order they are added.
class Digest {
 public:
  template <class T>
  Digest& add(const std::vector<T>& values) {
    for (const T x : values) digest_.add(bits_of(x), index_++);
    return *this;
  }
  std::string hex() const { return digest_.hex(); }

 private:
  TensorDigest digest_;
  uint64_t index_ = 0;
};

class Goldens {
 public:
  explicit Goldens(Profile profile) : profile_(profile), rig_({profile, arith::best_isa()}, 2) {}

  void embed(uint64_t seed) {
    const auto table = random_tensor(seed, {50, 336});
    const auto token = int_tensor({49, 0, 7}), seq = int_tensor({0, 0, 1});
    Tensor<bf16> out({3, 336});
    ok(ops::embed(rig_.ctx, kNowhere, {table.view(), token.view(), seq.view(), out.view()}));
    put("embed.v1", seed, "T=3 H=336", Digest().add(out.values()));
  }

  void rmsnorm(uint64_t seed, int64_t width) {
    const auto x = random_tensor(seed, {3, 2, width}, 5.0f), w = random_tensor(seed + 1, {width});
    Tensor<bf16> with({3, 2, width}), without({3, 2, width});
    ok(ops::rmsnorm(rig_.ctx, kNowhere, {x.view(), w.view(), with.view(), 1e-6f}));
    ok(ops::rmsnorm(rig_.ctx, kNowhere, {x.view(), View{}, without.view(), 1e-6f}));
    put("rmsnorm.v1", seed, "T=3 heads=2 D=" + std::to_string(width),
        Digest().add(with.values()).add(without.values()));
  }

  void gemm(uint64_t seed, int64_t k) {
    const auto x = random_tensor(seed, {5, k}, 3.0f), w = random_tensor(seed + 1, {70, k});
    Tensor<bf16> out({5, 70});
    Tensor<float> acc({5, 70});
    GemmArgs a;
    a.x = x.view(), a.count = 1, a.w[0] = {w.data(), 70, k, k};
    a.out[0] = out.view(), a.acc[0] = acc.view();
    ok(ops::gemm(rig_.ctx, kNowhere, a));
    put("gemm.v1", seed, "T=5 N=70 K=" + std::to_string(k),
        Digest().add(acc.values()).add(out.values()));
  }

  void gemm_tree(uint64_t seed, int64_t k) {
    const auto x = random_tensor(seed, {5, k}, 3.0f), w = random_tensor(seed + 1, {70, k});
    Tensor<float> partial({5, 70}), acc({5, 70});
    Tensor<bf16> out({5, 70});
    const WeightView weight{w.data(), 70, k, k};
    ok(ops::gemm_partial(rig_.ctx, kNowhere,
                         {x.view(), weight, ops::gemm_leaves(k), partial.view()}));
    ok(ops::gemm_finish(
        rig_.ctx, kNowhere,
        {make_view(partial.data(), Dtype::kF32, {1, 5, 70}), out.view(), acc.view()}));
    put("gemm_tree.v1", seed, "T=5 N=70 K=" + std::to_string(k),
        Digest().add(acc.values()).add(out.values()));
  }

  void rope(uint64_t seed, int head_dim, int pairs, double theta) {
    const auto inv_freq = *rope_inv_freq(theta, head_dim, pairs);
    std::vector<float> table(static_cast<size_t>(int64_t{128} * pairs));
    for (int p = 0; p < 64; ++p) {
      for (int i = 0; i < pairs; ++i) {
        const size_t at = static_cast<size_t>(int64_t{p} * pairs + i);
        arith::sincos(inv_freq[static_cast<size_t>(i)] * static_cast<float>(p),
                      table[static_cast<size_t>(int64_t{64} * pairs) + at], table[at]);
      }
    }
    const auto x = random_tensor(seed, {3, 2, head_dim});
    const auto pos = int_tensor({0, 1, 63}), seq = int_tensor({0, 0, 0});
    Tensor<bf16> out({3, 2, head_dim});
    ok(ops::rope(rig_.ctx, kNowhere,
                 {x.view(), make_view(table.data(), Dtype::kF32, {1, 2, 64, pairs}), pos.view(),
                  seq.view(), out.view()}));
    put("rope.v1", seed,
        "T=3 heads=2 D=" + std::to_string(head_dim) + " pairs=" + std::to_string(pairs),
        Digest().add(out.values()));
  }

  void attention(uint64_t seed, const AttentionSetup& s) {
    const Keys keys(seed, s, {300, 40}, 1.5f);
    const std::vector<Query> rows{{0, 0}, {0, 63}, {0, 64}, {1, 39}, {0, 299}};
    const auto q = random_tensor(seed + 9, {5, s.heads, s.width});
    const auto cache = filled_cache(s, keys, Layout::kHeadMajor, 16, seed);
    const auto y = attend(rig_, s, q, rows, cache.view);
    const bool sliding = s.window > 0;
    put(sliding ? "attention_sliding.v1" : "attention_global.v1", seed,
        "T=5 heads=4/2 D=32 " + (sliding ? "window=" + std::to_string(s.window)
                                         : "segment=" + std::to_string(s.segment)),
        Digest().add(y.acc.values()).add(y.out.values()).add(y.lse.values()));
  }

  void kv_write(uint64_t seed, Layout layout) {
    const AttentionSetup s{4, 2, 32, 24, 0};
    auto cache = empty_cache(s, {40}, layout, 16, seed);
    const auto k = random_tensor(seed, {40, 2, 32}), v = random_tensor(seed + 1, {40, 2, 32});
    Tensor<int32_t> slot({40});
    for (int j = 0; j < 40; ++j) slot(j) = cache.table(0, j / 16) * 16 + j % 16;
    ok(ops::kv_write(rig_.ctx, kNowhere, {k.view(), v.view(), slot.view(), cache.view}));
    put("kv_write.v1", seed,
        std::string("T=40 heads=2 D=32 ") +
            (layout == Layout::kPageKv ? "[blocks,2,16,H,D]" : "[blocks,H,16,2D]"),
        Digest().add(cache.memory));
  }

  void elementwise(uint64_t seed) {
    const auto x = random_tensor(seed, {4, 640}, 2.0f), p = random_tensor(seed + 1, {4, 640});
    Tensor<bf16> sum({4, 640}), scaled({4, 640}), gelu({4, 640}), act({4, 640}), scalar({1});
    scalar(0) = round_bf16(0.62f);
    ok(ops::residual(rig_.ctx, kNowhere, {x.view(), p.view(), sum.view()}));
    ok(ops::layer_scale(rig_.ctx, kNowhere, {x.view(), scalar.view(), scaled.view()}));
    ok(ops::gelu_mul(rig_.ctx, kNowhere, {x.view(), p.view(), gelu.view(), act.view()}));
    put("residual.v1", seed, "T=4 H=640", Digest().add(sum.values()));
    put("layer_scale.v1", seed, "T=4 H=640", Digest().add(scaled.values()));
    put("gelu_mul.v1", seed, "T=4 N=640", Digest().add(gelu.values()).add(act.values()));
  }

  void head_and_sample(uint64_t seed, int64_t vocab) {
    const auto z = random_tensor(seed, {4, 96}), w = random_tensor(seed + 1, {vocab, 96}, 1.5f);
    HeadSetup s;
    s.temperature = 0.7f;
    s.arithmetic = {profile_, arith::best_isa()};
    s.suppress.assign(static_cast<size_t>(vocab), 0);
    s.suppress[5] = 1;
    const auto y = score(z, w, vocab, {0, 1, 2, static_cast<int32_t>(vocab - 1)}, s);
    const std::string shape = "R=4 H=96 V=" + std::to_string(vocab) + " T=0.7";
    put("head.v1", seed, shape,
        Digest()
            .add(y.shard_ms.values())
            .add(y.logp.values())
            .add(y.lse.values())
            .add(y.capped.values()));

    std::vector<uint64_t> hash{xxh64("a"), xxh64("b"), xxh64("c"), xxh64("d")};
    const auto position = int_tensor({0, 1, 2, 3});
    Tensor<float> best({4}), c({4});
    Tensor<int32_t> token({4});
    SampleArgs a;
    a.capped = y.capped.view(), a.temperature = 0.7f, a.seed = seed;
    a.row_hash = make_view(hash.data(), Dtype::kU64, {4}), a.position = position.view();
    a.best = best.view(), a.token = token.view(), a.c_token = c.view();
    ok(ops::sample(rig_.ctx, kNowhere, a));
    put("sample.v1", seed, shape, Digest().add(best.values()).add(token.values()).add(c.values()));
  }

  nlohmann::json digests;

 private:
  void ok(const Status& status) { EXPECT_TRUE(ran(status)); }
  void put(const std::string& contract, uint64_t seed, const std::string& shape, const Digest& d) {
    const std::string key =
        contract + " " + profile_name(profile_) + " seed=" + std::to_string(seed) + " " + shape;
    EXPECT_FALSE(digests.contains(key)) << key;
    digests[key] = d.hex();
  }

  Profile profile_;
  Rig rig_;
};

nlohmann::json digests_now() {
  nlohmann::json all;
  for (const Profile profile : kProfiles) {
    Goldens g(profile);
    g.embed(1);
    for (const int64_t width : {5376, 512, 336, 96}) g.rmsnorm(2, width);
    for (const int64_t k : {96, 100, 336}) g.gemm(3, k);
    for (const int64_t k : {128, 640, 100}) g.gemm_tree(4, k);
    g.rope(5, 256, 128, 10000.0);
    g.rope(5, 512, 64, 1e6);
    g.attention(6, {4, 2, 32, 100, 0});
    g.attention(7, {4, 2, 32, 0, 128});
    g.kv_write(10, Layout::kPageKv);
    g.kv_write(10, Layout::kHeadMajor);
    g.elementwise(8);
    g.head_and_sample(9, 500);
    g.head_and_sample(9, 2500);
    g.head_and_sample(9, 5000);
    all.update(g.digests);
  }
  return all;
}

TEST(Goldens, EveryOperatorHasItsFrozenBits) {
  const auto now = digests_now();
  if (std::getenv("SB_UPDATE_GOLDENS")) std::ofstream(kGoldens) << now.dump(1) << "\n";
  std::ifstream file(kGoldens);
  ASSERT_TRUE(file) << kGoldens;
  const auto frozen = nlohmann::json::parse(file);
  EXPECT_EQ(frozen.size(), now.size());
  for (const auto& [key, digest] : now.items()) {
    EXPECT_EQ(frozen.value(key, ""), digest.get<std::string>()) << key;
  }
}

TEST(Goldens, CoverEveryContractInEveryProfile) {
  const auto now = digests_now();
  for (const Contract& c : all_contracts()) {
    for (const Profile p : kProfiles) {
      const std::string start = c.name + " " + profile_name(p) + " ";
      bool found = false;
      for (const auto& [key, digest] : now.items()) found |= key.starts_with(start);
      EXPECT_TRUE(found) << start;
    }
  }
}

}  // namespace
}  // namespace sb::ops_testing
