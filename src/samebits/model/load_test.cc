#include "samebits/model/load.h"

#include <cmath>

#include "samebits/base/host_memory.h"
#include "samebits/model/fingerprint.h"
#include "samebits/model/synthetic.h"
#include "samebits/model/testing.h"

namespace sb {
namespace {

using testing::HasSubstr;
using namespace testing_model;

const std::string kEmbed = "model.language_model.embed_tokens.weight";

void put(RawTensor& t, int64_t index, uint16_t bits) {
  t.bytes[2 * index] = static_cast<char>(bits & 0xff);
  t.bytes[2 * index + 1] = static_cast<char>(bits >> 8);
}

TEST(Load, TinyIsViewedInItsFile) {
  auto m = load(make_model("tiny"));
  ASSERT_TRUE(m) << m.error().text();
  const Weights& w = m->weights;
  EXPECT_EQ(w.layers.size(), 6u);
  EXPECT_EQ(w.head.ptr, w.embed.ptr);
  EXPECT_EQ(w.embed.shape[0], 2500);
  EXPECT_EQ(w.layers[0].q.shape[0], 256);
  EXPECT_EQ(w.layers[5].q.shape[0], 512);
  EXPECT_EQ(w.layers[5].k.shape[0], 64);
  EXPECT_FALSE(w.layers[5].v);
  EXPECT_TRUE(w.layers[0].v);
  EXPECT_EQ(w.layers[3].o.shape[1], 256);
  EXPECT_EQ(w.layers[3].layer_scalar.shape[0], 1);
  EXPECT_EQ(w.layers[5].k_norm.shape[0], 32);
  EXPECT_EQ(w.layers[5].down.shape[1], 256);
  EXPECT_EQ(m->tensors.size(), 85u);
  EXPECT_TRUE(m->warnings.empty()) << m->warnings[0];
  EXPECT_EQ(m->arch_digest, fingerprint_digest(m->arch));
  EXPECT_EQ(hex64(m->epoch), m->weights_digest.substr(0, 16));
  const SyntheticTensor s({kLayer + "2.layer_scalar", {1}, TensorKind::kLayerScalar}, 0);
  bf16 expect;
  s.fill(&expect, 0, 1);
  EXPECT_EQ(w.layers[2].layer_scalar.as<bf16>()[0], expect);
}

// The CPU's device, counting what is allocated on it and copied to it.
class CountingDevice : public Device {
 public:
  DeviceId id() const override { return cpu_->id(); }
  Result<void*> alloc(size_t n) override { return allocated += n, cpu_->alloc(n); }
  void release(void* p, size_t n) override { cpu_->release(p, n); }
  void copy_in(void* to, const void* from, size_t n) override {
    copied += n;
    cpu_->copy_in(to, from, n);
  }
  void copy_out(void* to, const void* from, size_t n) override { cpu_->copy_out(to, from, n); }
  void copy(void* to, const void* from, size_t n) override { cpu_->copy(to, from, n); }
  void fill(void* to, unsigned char byte, size_t n) override { cpu_->fill(to, byte, n); }
  Status sync() override { return {}; }
  bool reads_host_memory() const override { return true; }
  size_t allocated = 0, copied = 0;

 private:
  std::unique_ptr<Device> cpu_ = make_cpu_device();
};

TEST(Load, AMappedCheckpointIsNotCopied) {
  CountingDevice device;
  ThreadPool pool(2);
  const auto m = load_model(make_model("mini"), device, pool);
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_GT(m->arch.text_parameters(), 18'000'000);
  EXPECT_EQ(device.allocated, 0u);
  EXPECT_EQ(device.copied, 0u);
}

TEST(Load, EveryNamingSchemeIsOneModel) {
  auto full = load(make_model("tiny")),
       text = load(make_model("tiny", [](NewModel& n) { n.text_only_names = true; }, "text"));
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(full->weights_digest, text->weights_digest);
  EXPECT_EQ(text->tensors[0].name.substr(0, 21), "model.language_model.");
}

TEST(Load, ThreadsAndDevicesDoNotChangeTheDigest) {
  const std::string dir = make_model("mini");
  auto a = load(dir, 1), b = load(dir, 3);
  auto guard = make_guard_device();
  ThreadPool pool(2);
  {
    auto c = load_model(dir, *guard, pool);
    ASSERT_TRUE(c) << c.error().text();
    EXPECT_EQ(a->weights_digest, b->weights_digest);
    EXPECT_EQ(a->weights_digest, c->weights_digest);
    std::vector<bf16> row(336);
    guard->copy_out(row.data(), c->weights.final_norm.ptr, 672);
    EXPECT_EQ(row[17], a->weights.final_norm.as<bf16>()[17]);
  }
}

TEST(Load, VirtualEqualsMaterialised) {
  const std::string real = make_model("tiny"), dir = fresh_dir("virtual");
  write_file(dir + "/config.json", *read_text(real + "/config.json"));
  write_file(dir + "/" + kVirtualFile,
             R"({"samebits":"virtual/1","scheme":"philox4x32-10.v1","preset":"tiny","seed":0})");
  auto a = load(real), b = load(dir);
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_EQ(a->weights_digest, b->weights_digest);
  EXPECT_EQ(b->weights.head.ptr, b->weights.embed.ptr);
  auto guard = make_guard_device();
  ThreadPool pool(2);
  auto c = load_model(dir, *guard, pool);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(a->weights_digest, c->weights_digest);
  write_file(dir + "/model.safetensors", "x");
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("both"));
}

TEST(Load, AModelTooLargeForMemoryIsRefusedBeforeItIsMade) {
  const std::string dir = make_model("gemma4-31b");
  if (available_host_bytes() < 0 || available_host_bytes() > int64_t{61394690680}) {
    GTEST_SKIP() << "this machine could hold it";
  }
  const std::string text = load_error(dir, Code::kEnvironment);
  EXPECT_THAT(text, HasSubstr("61394690680 bytes"));
  EXPECT_THAT(text, HasSubstr("--materialize"));
}

TEST(Load, ALostLayerScalarIsAnErrorThatNamesIt) {
  const auto dir = damaged([](RawTensors& r) { r.erase(kLayer + "3.layer_scalar"); });
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr(kLayer + "3.layer_scalar"));
}

TEST(Load, EveryTensorIsRequired) {
  const std::string dir = make_model("tiny");
  const RawTensors all = read_raw(dir);
  for (const auto& [name, tensor] : all) {
    RawTensors some = all;
    some.erase(name);
    write_raw(dir + "/model.safetensors", some);
    EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr(name));
  }
}

TEST(Load, ValueProjectionOnASharedLayer) {
  const std::string v = kLayer + "5.self_attn.v_proj.weight",
                    k = kLayer + "5.self_attn.k_proj.weight";
  auto m = load(damaged([&](RawTensors& r) { r[v] = r[k]; }));
  ASSERT_TRUE(m) << m.error().text();
  ASSERT_EQ(m->warnings.size(), 1u);
  EXPECT_THAT(m->warnings[0], HasSubstr(v));
  const auto dir = damaged([&](RawTensors& r) {
    r[v] = r[k];
    r[v].bytes[77] = static_cast<char>(r[v].bytes[77] ^ 1);
  });
  const std::string text = load_error(dir, Code::kBrokenData);
  EXPECT_THAT(text, HasSubstr(v));
  EXPECT_THAT(text, HasSubstr(k));
}

TEST(Load, StoredHeadMustBeTheEmbedding) {
  auto same = load(damaged([&](RawTensors& r) { r["lm_head.weight"] = r[kEmbed]; }));
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(same->weights.head.ptr, same->weights.embed.ptr);
  // Only the embedding was updated: the stored head is stale.
  const auto dir = damaged([&](RawTensors& r) {
    r["lm_head.weight"] = r[kEmbed];
    put(r[kEmbed], 5, 0x3f80);
  });
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("lm_head.weight differs"));
}

TEST(Load, NonFiniteValuesNameTensorAndElement) {
  for (uint16_t bits : {0x7fc0, 0x7f80, 0xff80, 0xffff}) {
    const auto dir = damaged([&](RawTensors& r) { put(r[kEmbed], 1234, bits); });
    const std::string text = load_error(dir, Code::kBrokenData);
    EXPECT_THAT(text, HasSubstr(kEmbed));
    EXPECT_THAT(text, HasSubstr("element 1234"));
  }
}

TEST(Load, HugeFiniteValuesWarn) {
  auto m = load(damaged([&](RawTensors& r) { put(r[kEmbed], 4321, 0x7e96); }));  // 1e38
  ASSERT_TRUE(m) << m.error().text();
  ASSERT_EQ(m->warnings.size(), 1u);
  EXPECT_THAT(m->warnings[0], HasSubstr("element 4321"));
}

TEST(Load, OtherDtypesAreRefusedByName) {
  const auto dir = damaged([&](RawTensors& r) {
    RawTensor& t = r[kLayer + "0.layer_scalar"];
    t.dtype = "F32";
    t.bytes = std::string(4, 0);
  });
  const std::string text = load_error(dir, Code::kRefused);
  EXPECT_THAT(text, HasSubstr(kLayer + "0.layer_scalar"));
  EXPECT_THAT(text, HasSubstr("F32"));
}

TEST(Load, UnknownTensorsAreListed) {
  const auto dir = damaged(
      [&](RawTensors& r) { r["model.language_model.layers.9.bias"] = {"BF16", {1}, "ab"}; });
  EXPECT_THAT(load_error(dir, Code::kBrokenData),
              HasSubstr("1 tensors are not known: model.language_model.layers.9.bias"));
}

TEST(Load, ConfigAndEmbeddingMustAgreeOnTheVocabulary) {
  const std::string dir = make_model("tiny");
  auto config = nlohmann::json::parse(*read_text(dir + "/config.json"));
  config["text_config"]["vocab_size"] = 2560;
  write_file(dir + "/config.json", config.dump());
  EXPECT_THAT(load_error(dir, Code::kBrokenData),
              HasSubstr("[2500, 96], the config asks for [2560, 96]"));
}

TEST(Load, TokenizerMustFitTheVocabulary) {
  const std::string dir = make_model("tiny");
  auto tokenizer = [&](int top, const char* added) {
    write_file(dir + "/tokenizer.json",
               "{\"model\":{\"vocab\":{\"a\":0,\"b\":" + std::to_string(top) +
                   "}},\"added_tokens\":" + added + "}");
  };
  tokenizer(2499, "[]");
  auto m = load(dir);
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_TRUE(m->warnings.empty());
  tokenizer(2400, "[]");
  EXPECT_THAT(load(dir)->warnings.at(0), HasSubstr("2401 ids, vocab_size is 2500"));
  tokenizer(2400, R"([{"id": 2500, "content": "<x>"}])");
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("\"<x>\" has id 2500"));
  tokenizer(2400, R"([{"id": "no", "content": "<x>"}])");
  load_error(dir, Code::kBrokenData);
}

TEST(Load, VisionTensorsAreRecognisedAndCounted) {
  const std::string dir = make_model("tiny");
  const std::string config = fixture("tiny_full_transformers_5.24.0");
  write_file(dir + "/config.json", config);
  EXPECT_THAT(load(dir)->warnings.at(0), HasSubstr("holds none of it"));
  RawTensors all = read_raw(dir);
  const auto arch = *parse_config(config, "c");
  for (const auto& t : vision_tensors(arch)) {
    all[t.name] = {"BF16", t.shape, std::string(static_cast<size_t>(2 * t.numel()), 0)};
  }
  write_raw(dir + "/model.safetensors", all);
  auto m = load(dir);
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_EQ(m->tensors.size(), 85u);
  EXPECT_THAT(m->warnings.at(0), HasSubstr(std::to_string(2 + 2 * 13 + 3) +
                                           " vision tensors: recognised, not run yet"));
}

TEST(Load, MisalignedDataIsCopied) {
  const std::string dir = make_model("tiny");
  const std::string path = dir + "/model.safetensors", good = *read_text(path);
  auto before = load(dir);
  ASSERT_TRUE(before);
  // One more space in the header moves every tensor to an odd address.
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(good[i]);
  std::string odd = good;
  odd.insert(8 + length, " ");
  ++length;
  for (int i = 0; i < 8; ++i) odd[i] = static_cast<char>(length >> (8 * i));
  const std::string other = fresh_dir("odd");
  write_file(other + "/config.json", *read_text(dir + "/config.json"));
  write_file(other + "/model.safetensors", odd);
  auto m = load(other);
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_EQ(m->weights_digest, before->weights_digest);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(m->weights.embed.ptr) % 2, 0u);
}

TEST(Load, PathsThatAreNoModel) {
  EXPECT_THAT(load_error("/nonexistent/folder", Code::kUsage), HasSubstr("no such folder"));
  const std::string dir = fresh_dir();
  EXPECT_THAT(load_error(dir, Code::kUsage), HasSubstr("no config.json"));
  write_file(dir + "/config.json", write_config(*preset_architecture("tiny")));
  EXPECT_THAT(load_error(dir, Code::kUsage), HasSubstr("neither"));
}

TEST(Load, GenerationConfigIsPartOfTheFingerprint) {
  const std::string dir = make_model("tiny");
  const auto before = load(dir)->arch_digest;
  write_file(dir + "/generation_config.json", R"({"eos_token_id": [1, 106, 50]})");
  auto m = load(dir);
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_NE(m->arch_digest, before);
  EXPECT_EQ(m->arch.tokens.eos, (std::vector<int64_t>{1, 106, 50}));
}

TEST(Scan, PiecesAddUpToTheWhole) {
  const SyntheticTensor s({"x", {100, 37}}, 0);
  std::vector<bf16> v(3700);
  s.fill(v.data(), 0, 3700);
  const TensorScan whole = scan_bf16(v.data(), 0, 3700);
  TensorScan parts;
  for (int64_t at = 0; at < 3700; at += 411) {
    parts.merge(scan_bf16(v.data() + at, at, std::min<int64_t>(411, 3700 - at)));
  }
  EXPECT_EQ(whole.digest, parts.digest);
  TensorDigest by_hand;
  for (int64_t i = 0; i < 3700; ++i) by_hand.add(v[i].bits, static_cast<uint64_t>(i));
  EXPECT_EQ(whole.digest, by_hand);
}

TEST(Load, LayersAndWindowInsteadOfThePresets) {
  const std::string dir = make_model("tiny", [](NewModel& n) {
    n.layers = {LayerType::kSliding, LayerType::kGlobal};
    n.window = 9;
  });
  const auto arch = load_architecture(dir);
  ASSERT_TRUE(arch) << arch.error().text();
  EXPECT_EQ(arch->num_layers(), 2);
  EXPECT_EQ(arch->layers[1], LayerType::kGlobal);
  EXPECT_EQ(arch->window, 9);
  NewModel last_sliding{.dir = fresh_dir("s"), .layers = {LayerType::kSliding}};
  const auto refused = write_synthetic(last_sliding);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kRefused);
}

}  // namespace
}  // namespace sb
