// Bad checkpoints, one table: a tiny checkpoint is damaged in one way, and the program must name
// the file, tensor or key, the value and the limit, with the right exit code.
#include <filesystem>
#include <functional>
#include <map>

#include "samebits/cli/program_testing.h"
#include "samebits/model/safetensors.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using nlohmann::json;
namespace fs = std::filesystem;
using testing::HasSubstr;

struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Tensor>;

const std::string kLayer = "model.language_model.layers.";
const std::string kEmbed = "model.language_model.embed_tokens.weight";
const std::string kScalar = kLayer + "3.layer_scalar";
constexpr const char* kFile = "model.safetensors";

// One checkpoint folder that is made anew for every case.
class Folder {
 public:
  Folder() : dir_(scratch() + "/checkpoint") {
    fs::remove_all(dir_);
    fs::copy(shared_model(), dir_);
  }
  const std::string& dir() const { return dir_; }
  std::string text(const std::string& name) const { return read_text(dir_ + "/" + name).value(); }
  void write(const std::string& name, const std::string& text) const {
    put("checkpoint/" + name, text);
  }
  void config(const std::function<void(json& top, json& text)>& change) const {
    json top = json::parse(text("config.json"));
    change(top, top.contains("text_config") ? top["text_config"] : top);
    write("config.json", top.dump());
  }
  void tensors(const std::function<void(Tensors&)>& change) const {
    Tensors all = read();
    change(all);
    write_file(kFile, all);
  }
  Tensors read() const {
    Tensors all;
    const auto files = Checkpoint::open(dir_);
    EXPECT_TRUE(files);
    for (const auto& t : files->tensors()) {
      all[t.name] = {
          t.dtype, t.shape,
          std::string(reinterpret_cast<const char*>(files->data(t)), static_cast<size_t>(t.bytes))};
    }
    return all;
  }
  void write_file(const std::string& name, const Tensors& all) const {
    std::vector<SafetensorsWriter::Entry> entries;
    for (const auto& [key, t] : all) entries.push_back({key, t.dtype, t.shape});
    auto out = SafetensorsWriter::create(dir_ + "/" + name, entries, true);
    ASSERT_TRUE(out);
    for (const auto& [key, t] : all) ASSERT_TRUE(out->write(t.bytes.data(), t.bytes.size()));
    ASSERT_TRUE(out->commit());
  }
  // The header's JSON, changed, before the same data.
  void header(const std::function<void(json&)>& change) const {
    const std::string old = text(kFile);
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(old[i]);
    json j = json::parse(old.substr(8, length));
    change(j);
    write(kFile, prefix(j.dump().size()) + j.dump() + old.substr(8 + length));
  }
  static std::string prefix(uint64_t length) {
    std::string out(8, '\0');
    for (int i = 0; i < 8; ++i) out[i] = static_cast<char>(length >> (8 * i));
    return out;
  }
  // Two shards and their index.
  void shard(const std::function<void(Tensors& first, Tensors& second, json& map)>& change) const {
    Tensors first, second;
    json map = json::object();
    for (auto& [name, tensor] : read()) {
      map[name] = name < kScalar ? "first.safetensors" : "second.safetensors";
      (name < kScalar ? first : second)[name] = tensor;
    }
    change(first, second, map);
    fs::remove(dir_ + "/" + kFile);
    if (!first.empty()) write_file("first.safetensors", first);
    write_file("second.safetensors", second);
    write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  }

 private:
  std::string dir_;
};

void set_bits(Tensor& t, size_t index, uint16_t bits) {
  t.bytes[2 * index] = static_cast<char>(bits & 0xff);
  t.bytes[2 * index + 1] = static_cast<char>(bits >> 8);
}

struct Case {
  const char* what;
  std::function<void(const Folder&)> damage;
  int code;
  std::vector<std::string> says;
};

void expect_each(const std::vector<Case>& cases) {
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const Folder folder;
    c.damage(folder);
    const Outcome o = samebits("model show --weights --threads 1 " + folder.dir());
    EXPECT_EQ(o.code, c.code) << o.err;
    const std::string& said = c.code == 0 ? o.out : o.err;
    if (c.code != 0) {
      EXPECT_EQ(o.out, "");
    }
    for (const auto& text : c.says) EXPECT_THAT(said, HasSubstr(text));
    EXPECT_THAT(o.err, testing::Not(HasSubstr("json.exception")));
  }
}

Case tensors(const char* what, const std::function<void(Tensors&)>& change, int code,
             std::vector<std::string> says) {
  return {what, [=](const Folder& f) { f.tensors(change); }, code, std::move(says)};
}

TEST(BadCheckpoint, Tensors) {
  const std::string v = kLayer + "5.self_attn.v_proj.weight",
                    k = kLayer + "5.self_attn.k_proj.weight";
  expect_each({
      tensors("layer_scalar missing", [](Tensors& t) { t.erase(kScalar); }, 6,
              {"1 of 85 tensors are missing", kScalar}),
      tensors("two missing",
              [&](Tensors& t) {
                t.erase(kScalar);
                t.erase(kEmbed);
              },
              6, {"2 of 85", kScalar, kEmbed}),
      tensors("unknown", [](Tensors& t) { t["model.language_model.extra"] = {"BF16", {1}, "ab"}; },
              6, {"1 tensors are not known: model.language_model.extra"}),
      tensors("a bias",
              [](Tensors& t) { t[kLayer + "0.self_attn.q_proj.bias"] = {"BF16", {1}, "ab"}; }, 6,
              {"not known", "q_proj.bias"}),
      tensors("two naming schemes",
              [](Tensors& t) { t["model.norm.weight"] = {"BF16", {1}, "ab"}; }, 6, {"one scheme"}),
      tensors("layer_scalar fp32", [](Tensors& t) { t[kScalar] = {"F32", {1}, "abcd"}; }, 5,
              {kScalar, "dtype F32", "BF16"}),
      tensors("a norm fp16",
              [](Tensors& t) { t[kLayer + "0.input_layernorm.weight"].dtype = "F16"; }, 5,
              {"input_layernorm.weight", "dtype F16"}),
      tensors("quantised", [](Tensors& t) { t[kScalar] = {"F8_E4M3", {2}, "ab"}; }, 5,
              {kScalar, "F8_E4M3"}),
      tensors("transposed",
              [](Tensors& t) {
                auto& s = t[kLayer + "0.mlp.up_proj.weight"].shape;
                std::swap(s[0], s[1]);
              },
              6, {"mlp.up_proj.weight is [96, 256], the config asks for [256, 96]"}),
      tensors("layer_scalar a scalar", [](Tensors& t) { t[kScalar].shape = {}; }, 6,
              {kScalar, "[1]"}),
      tensors("v_proj where K = V",
              [&](Tensors& t) {
                t[v] = t[k];
                t[v].bytes[7] ^= 1;
              },
              6, {v, k, "one projection for K and V"}),
      tensors("v_proj equal to k_proj", [&](Tensors& t) { t[v] = t[k]; }, 0, {"warning", v}),
      tensors("another lm_head",
              [](Tensors& t) {
                t["lm_head.weight"] = t[kEmbed];
                t["lm_head.weight"].bytes[9] ^= 1;
              },
              6, {"lm_head.weight differs from " + kEmbed}),
      tensors("lm_head equal", [](Tensors& t) { t["lm_head.weight"] = t[kEmbed]; }, 0,
              {"warning", "lm_head.weight"}),
      tensors("NaN", [](Tensors& t) { set_bits(t[kEmbed], 1234, 0x7fc0); }, 6,
              {kEmbed, "element 1234"}),
      tensors("infinity", [](Tensors& t) { set_bits(t[kScalar], 0, 0xff80); }, 6,
              {kScalar, "element 0"}),
      tensors("1e38", [](Tensors& t) { set_bits(t[kEmbed], 4321, 0x7e96); }, 0,
              {"warning", kEmbed, "element 4321", "e+37"}),
  });
}

TEST(BadCheckpoint, FilesOfTensors) {
  const auto cut = [](size_t bytes) {
    return [bytes](const Folder& f) {
      const std::string all = f.text(kFile);
      f.write(kFile, all.substr(0, all.size() - bytes));
    };
  };
  const auto raw = [](const std::string& bytes) {
    return [bytes](const Folder& f) { f.write(kFile, bytes); };
  };
  const auto header = [](const std::function<void(json&)>& change) {
    return [change](const Folder& f) { f.header(change); };
  };
  expect_each({
      {"1 byte short", cut(1), 6, {kFile, "truncated", "lacks 1 of", "cuts 1 tensors: model."}},
      {"4 KiB short", cut(4096), 6, {"truncated", "lacks 4096 of"}},
      {"half", cut(1 << 20), 6, {"truncated", "lacks 1048576 of", "tensors: ", "…"}},
      {"one byte more",
       [](const Folder& f) { f.write(kFile, f.text(kFile) + "x"); },
       6,
       {"1 trailing bytes follow the last tensor", "cut it to"}},
      {"empty", raw(""), 6, {"0 bytes, too few"}},
      {"seven bytes", raw("1234567"), 6, {"7 bytes, too few"}},
      {"header of 2^63 - 1",
       raw(Folder::prefix(INT64_MAX) + "{}"),
       6,
       {"9223372036854775807", "100000000"}},
      {"header of 2^64 - 1", raw(Folder::prefix(UINT64_MAX) + "{}"), 6, {"18446744073709551615"}},
      {"header beyond the file",
       raw(Folder::prefix(99) + "{}"),
       6,
       {"truncated inside its header", "99"}},
      {"header no JSON", raw(Folder::prefix(3) + "{x}"), 6, {"the header of", kFile}},
      {"header an array", raw(Folder::prefix(2) + "[]"), 6, {"does not start with {"}},
      {"a name twice", raw(Folder::prefix(13) + R"({"a":1,"a":2})"), 6, {"\"a\" appears twice"}},
      {"overlap",
       header([](json& j) { j[kScalar]["data_offsets"] = {0, 2}; }),
       6,
       {"overlap", kScalar}},
      {"descending range",
       header([](json& j) { j[kScalar]["data_offsets"] = {4, 2}; }),
       6,
       {kScalar, "[4,2]", "ascending"}},
      {"range beyond 2^62",
       header([](json& j) { j[kScalar]["data_offsets"] = {INT64_MAX - 1, INT64_MAX}; }),
       6,
       {kScalar, "below 2^62"}},
      {"range of another size",
       header([](json& j) { j[kScalar]["shape"] = {2}; }),
       6,
       {kScalar, "span 2 bytes, shape and dtype need 4"}},
      {"negative shape", header([](json& j) { j[kScalar]["shape"] = {-1}; }), 6, {kScalar, "[-1]"}},
      {"shape that overflows",
       header([](json& j) { j[kScalar]["shape"] = {INT64_MAX, INT64_MAX}; }),
       6,
       {kScalar, "2^62"}},
      {"unknown dtype",
       header([](json& j) { j[kScalar]["dtype"] = "BF17"; }),
       6,
       {kScalar, "BF17"}},
      {"dtype missing",
       header([](json& j) { j[kScalar].erase("dtype"); }),
       6,
       {kScalar, "dtype, shape"}},
      {"metadata of numbers",
       header([](json& j) { j["__metadata__"] = {{"a", 1}}; }),
       6,
       {"__metadata__"}},
      {"a folder in its place",
       [](const Folder& f) {
         fs::remove(f.dir() + "/" + kFile);
         fs::create_directory(f.dir() + "/" + kFile);
       },
       64,
       {kFile, "not a regular file"}},
      {"no tensors at all",
       [](const Folder& f) { fs::remove(f.dir() + "/" + kFile); },
       64,
       {"neither model.safetensors nor"}},
  });
}

TEST(BadCheckpoint, Shards) {
  const auto shard = [](const std::function<void(Tensors&, Tensors&, json&)>& change) {
    return [change](const Folder& f) { f.shard(change); };
  };
  const auto as_is = [](Tensors&, Tensors&, json&) {};
  expect_each({
      {"two good shards", shard(as_is), 0, {"85 tensors"}},
      {"a shard missing",
       [&](const Folder& f) {
         f.shard(as_is);
         fs::remove(f.dir() + "/first.safetensors");
       },
       6,
       {"names 1 of 2 shards that are not there: first.safetensors"}},
      {"a stray file beside them",
       [&](const Folder& f) {
         f.shard(as_is);
         f.write("stray.safetensors", "x");
       },
       0,
       {"85 tensors"}},
      {"the whole beside them",
       [&](const Folder& f) {
         f.shard(as_is);
         f.write(kFile, "x");
       },
       6,
       {"beside an index that does not name it"}},
      {"one tensor in both",
       shard([](Tensors& a, Tensors& b, json&) { a[kScalar] = b[kScalar]; }),
       6,
       {kScalar, "is in two shards: first.safetensors and second.safetensors"}},
      {"a tensor elsewhere",
       shard([](Tensors&, Tensors&, json& m) { m[kScalar] = "first.safetensors"; }),
       6,
       {kScalar, "lies in second.safetensors, but the index says first.safetensors"}},
      {"a tensor not indexed",
       shard([](Tensors&, Tensors&, json& m) { m.erase(kScalar); }),
       6,
       {kScalar, "nothing of it"}},
      {"an index of more",
       shard([](Tensors&, Tensors&, json& m) { m["more"] = "first.safetensors"; }),
       6,
       {"do not hold, first more (first.safetensors)"}},
      {"a shard outside",
       shard([](Tensors&, Tensors&, json& m) { m[kScalar] = "../x.safetensors"; }),
       6,
       {kScalar, "inside the checkpoint folder"}},
      {"an empty index",
       [&](const Folder& f) {
         f.shard(as_is);
         f.write("model.safetensors.index.json", "{}");
       },
       6,
       {"index.json", "weight_map"}},
      {"an index cut short",
       [&](const Folder& f) {
         f.shard(as_is);
         f.write("model.safetensors.index.json", "{\"wei");
       },
       6,
       {"index.json", "line 1, column 6"}},
  });
}

Case config(const char* what, const std::function<void(json&, json&)>& change, int code,
            std::vector<std::string> says) {
  return {what, [=](const Folder& f) { f.config(change); }, code, std::move(says)};
}
// A key of the text model with a value that cannot run.
Case key(const char* name, const json& value, int code, std::vector<std::string> says) {
  says.push_back(name);
  return config(name, [=](json&, json& text) { text[name] = value; }, code, std::move(says));
}

TEST(BadCheckpoint, Configs) {
  expect_each({
      {"no JSON",
       [](const Folder& f) { f.write("config.json", "{"); },
       6,
       {"config.json", "line 1, column 2"}},
      {"a list",
       [](const Folder& f) { f.write("config.json", "[]"); },
       6,
       {"config.json", "not an object"}},
      {"empty", [](const Folder& f) { f.write("config.json", ""); }, 6, {"config.json"}},
      {"not UTF-8",
       [](const Folder& f) { f.write("config.json", "{\"a\":\"\xff\"}"); },
       6,
       {"UTF-8"}},
      {"deep",
       [](const Folder& f) { f.write("config.json", std::string(5000, '[')); },
       6,
       {"deeper than 64"}},
      {"a key twice",
       [](const Folder& f) { f.write("config.json", R"({"a":1,"a":2})"); },
       6,
       {"\"a\" appears twice"}},
      {"NaN", [](const Folder& f) { f.write("config.json", R"({"a":NaN})"); }, 6, {"config.json"}},
      {"head_dim missing",
       [](const Folder& f) { f.config([](json&, json& t) { t.erase("head_dim"); }); },
       6,
       {"head_dim", "missing"}},
      {"rope missing",
       [](const Folder& f) { f.config([](json&, json& t) { t.erase("rope_parameters"); }); },
       6,
       {"rope_parameters"}},
      {"layer_types missing",
       [](const Folder& f) { f.config([](json&, json& t) { t.erase("layer_types"); }); },
       6,
       {"layer_types", "never assumed"}},
      key("enable_moe_block", true, 5, {"mixture-of-experts"}),
      key("num_experts", 8, 5, {"mixture-of-experts"}),
      key("hidden_size_per_layer_input", 256, 5, {"per-layer input"}),
      key("num_kv_shared_layers", 2, 5, {"share another layer's KV"}),
      key("attention_bias", true, 5, {"bias"}),
      key("attention_k_eq_v", false, 5, {"v_proj"}),
      key("use_double_wide_mlp", true, 5, {"double-wide"}),
      key("hidden_activation", "silu", 5, {"gelu_pytorch_tanh"}),
      key("attn_logit_softcapping", 50.0, 5, {"not capped"}),
      key("query_pre_attn_scalar", 256, 5, {"1.0"}),
      key("rope_scaling", {{"factor", 2}}, 5, {"scaled rotary"}),
      key("use_bidirectional_attention", "all", 5, {"causal"}),
      key("sliding_window", {1023, 0}, 6, {"[1023,0]", "counts the query"}),
      key("sliding_window", 0, 5, {"1 to"}),
      key("hidden_size", -1, 5, {"-1"}),
      key("hidden_size", 96.5, 6, {"96.5", "whole number"}),
      config("another vocabulary", [](json&, json& t) { t["vocab_size"] = 2560; }, 6,
             {"embed_tokens.weight is [2500, 96], the config asks for [2560, 96]"}),
      key("vocab_size", 9223372036854775807, 5, {"9223372036854775807"}),
      key("num_hidden_layers", 7, 6, {"names 6 layers"}),
      key("rms_norm_eps", 0, 5, {"above 0"}),
      key("final_logit_softcapping", nullptr, 6, {"missing"}),
      key("dtype", "float16", 5, {"bfloat16"}),
      config("layer_types end sliding",
             [](json&, json& t) { t["layer_types"].back() = "sliding_attention"; }, 5,
             {"layer_types", "full attention"}),
      config(
          "untied",
          [](json& top, json& t) { top["tie_word_embeddings"] = t["tie_word_embeddings"] = false; },
          5, {"tie_word_embeddings", "one tensor"}),
      config("clipped linears",
             [](json& top, json&) { top["vision_config"] = {{"use_clipped_linears", true}}; }, 6,
             {"vision_config"}),
      config("an audio tower", [](json& top, json&) { top["audio_config"] = json::object(); }, 5,
             {"audio"}),
      config("another segment", [](json& top, json&) { top["samebits"] = {{"segment", 100}}; }, 5,
             {"samebits.segment is", "64-key blocks"}),
      {"stop id beyond V",
       [](const Folder& f) { f.write("generation_config.json", R"({"eos_token_id":2500})"); },
       6,
       {"eos_token_id", "2500", "0 to 2499"}},
      {"tokenizer beyond V",
       [](const Folder& f) { f.write("tokenizer.json", R"({"model":{"vocab":{"<a>":2500}}})"); },
       6,
       {"\"<a>\" has id 2500", "vocab_size is 2500"}},
      {"tokenizer below V",
       [](const Folder& f) { f.write("tokenizer.json", R"({"model":{"vocab":{"<a>":9}}})"); },
       0,
       {"warning", "10 ids", "2500"}},
      {"tokenizer of nothing",
       [](const Folder& f) { f.write("tokenizer.json", "{}"); },
       6,
       {"no readable table"}},
      {"a recipe beside files",
       [](const Folder& f) { f.write("samebits_virtual.json", "{}"); },
       6,
       {"both"}},
  });
}

}  // namespace
}  // namespace sb
