#include "samebits/model/safetensors.h"

#include "samebits/base/rng.h"
#include "samebits/model/testing.h"

namespace sb {
namespace {

using testing::HasSubstr;
using namespace testing_model;

std::string file_of(uint64_t length, const std::string& header, const std::string& data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i));
  return out + header + data;
}
std::string file_of(const std::string& header, const std::string& data) {
  return file_of(header.size(), header, data);
}
std::string error_of(const std::string& file) {
  auto t = parse_safetensors(file, "x.safetensors");
  EXPECT_FALSE(t) << "accepted";
  if (t) return {};
  EXPECT_EQ(t.error().code, Code::kBrokenData);
  return t.error().text();
}
// {…} around entries; by +=, because GCC 12 warns falsely about "{" + temporary.
std::string braces(const std::string& entries) {
  std::string out = "{";
  out += entries;
  out += "}";
  return out;
}
std::string entry(const std::string& name, const std::string& shape, int64_t a, int64_t b,
                  const std::string& dtype = "BF16") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":[" + std::to_string(a) + "," + std::to_string(b) + "]}";
}

TEST(Safetensors, ReadsAGoodFile) {
  const std::string h = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "[2,2]", 2, 10) +
                        "," + entry("a", "[1]", 0, 2) + "," + entry("none", "[0,4]", 10, 10) +
                        "}   ";
  auto t = parse_safetensors(file_of(h, std::string(10, 'x')), "f");
  ASSERT_TRUE(t) << t.error().text();
  ASSERT_EQ(t->size(), 3u);
  EXPECT_EQ((*t)[0].name, "a");
  EXPECT_EQ((*t)[1].offset, static_cast<int64_t>(8 + h.size() + 2));
}

TEST(Safetensors, HeaderLengths) {
  EXPECT_THAT(error_of("1234567"), HasSubstr("7 bytes"));
  EXPECT_THAT(error_of(file_of(5, "{}", "")), HasSubstr("truncated inside its header"));
  for (uint64_t n : {uint64_t{100'000'001}, uint64_t{1} << 62, (uint64_t{1} << 63) - 1,
                     uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    EXPECT_THAT(error_of(file_of(n, "{}", "")), HasSubstr("limit"));
  }
  EXPECT_THAT(error_of(file_of("[]", "")), HasSubstr("start with {"));
  EXPECT_THAT(error_of(file_of("", "")), HasSubstr("start with {"));
  EXPECT_THAT(error_of(file_of("{\"a\":", "")), HasSubstr("JSON"));
}

TEST(Safetensors, EntriesThatLie) {
  const std::string data(8, 0);
  auto with = [&](const std::string& e) { return error_of(file_of(braces(e), data)); };
  EXPECT_THAT(with(entry("a", "[4]", 0, 8, "BF17")), HasSubstr("\"BF17\""));
  EXPECT_THAT(with(entry("a", "[3]", 0, 8)), HasSubstr("need 6"));
  EXPECT_THAT(with(entry("a", "[-4]", 0, 8)), HasSubstr("shape"));
  EXPECT_THAT(with(entry("a", "[4.0]", 0, 8)), HasSubstr("shape"));
  EXPECT_THAT(with(entry("a", "[4294967296,4294967296,4]", 0, 8)), HasSubstr("2^62"));
  EXPECT_THAT(with(entry("a", "[4611686018427387904]", 0, 8)), HasSubstr("2^62"));
  EXPECT_THAT(with(entry("a", "[4]", 8, 0)), HasSubstr("ascending"));
  EXPECT_THAT(with("\"a\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,1.8e19]}"),
              HasSubstr("data_offsets"));
  EXPECT_THAT(with("\"a\":{\"dtype\":\"BF16\",\"shape\":[4]}"), HasSubstr("data_offsets"));
  EXPECT_THAT(with("\"a\":3"), HasSubstr("entry"));
  EXPECT_THAT(with("\"__metadata__\":{\"a\":1}," + entry("a", "[4]", 0, 8)),
              HasSubstr("__metadata__"));
  EXPECT_THAT(with(entry("a", "[4]", 0, 8) + "," + entry("a", "[4]", 0, 8)), HasSubstr("twice"));
}

TEST(Safetensors, OverlapsHolesAndTrailingBytesHaveTheirOwnMessages) {
  auto two = [](int64_t b0, int64_t b1) {
    return braces(entry("a", "[2]", 0, 4) + "," + entry("b", "[2]", b0, b1));
  };
  EXPECT_THAT(error_of(file_of(two(2, 6), std::string(6, 0))), HasSubstr("a and b overlap by 2"));
  EXPECT_THAT(error_of(file_of(two(8, 12), std::string(12, 0))), HasSubstr("hole of 4 bytes"));
  EXPECT_THAT(error_of(file_of(two(4, 8), std::string(11, 0))), HasSubstr("3 trailing bytes"));
  EXPECT_THAT(error_of(file_of(braces(entry("a", "[2]", 2, 6)), std::string(6, 0))),
              HasSubstr("hole of 2 bytes"));
}

TEST(Safetensors, TruncationNamesTensorsAndBytes) {
  const std::string dir = make_model("tiny");
  const std::string path = dir + "/model.safetensors";
  const std::string whole = *read_text(path);
  for (size_t lost : {size_t{1}, size_t{4096}, whole.size() / 2}) {
    write_file(path, whole.substr(0, whole.size() - lost));
    const std::string text = load_error(dir, Code::kBrokenData);
    EXPECT_THAT(text, HasSubstr("lacks " + std::to_string(lost) + " of"));
    EXPECT_THAT(text, HasSubstr("model.language_model."));
  }
  write_file(path, whole.substr(0, 100));
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("inside its header"));
  write_file(path, whole + "x");
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("trailing"));
  write_file(path, "");
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("0 bytes"));
}

TEST(Safetensors, RandomDamageNeverCrashes) {
  const std::string h = "{\"__metadata__\":{\"f\":\"p\"}," + entry("a", "[2,3]", 0, 12) + "," +
                        entry("b", "[1]", 12, 14) + "}";
  const std::string good = file_of(h, std::string(14, 1));
  CounterRng rng(7);
  for (int n = 0; n < 20000; ++n) {
    std::string f = good;
    for (uint32_t k = 1 + rng.below(4); k > 0; --k) {
      f[rng.below(static_cast<uint32_t>(f.size()))] = static_cast<char>(rng.next());
    }
    if (rng.below(4) == 0) f.resize(rng.below(static_cast<uint32_t>(f.size())));
    auto t = parse_safetensors(f, "f");
    if (!t) continue;
    for (const auto& x : *t) {
      ASSERT_GE(x.offset, 8);
      ASSERT_LE(x.offset + x.bytes, static_cast<int64_t>(f.size()));
    }
  }
}

// A sharded tiny checkpoint, and its index as JSON.
std::string sharded(nlohmann::json& index) {
  const std::string dir = make_model("tiny", [](NewModel& n) { n.shard_bytes = 600000; });
  index = nlohmann::json::parse(*read_text(dir + "/model.safetensors.index.json"));
  return dir;
}
void put_index(const std::string& dir, const nlohmann::json& index) {
  write_file(dir + "/model.safetensors.index.json", index.dump());
}

TEST(Shards, LoadTheSameModelAsOneFile) {
  nlohmann::json index;
  const std::string dir = sharded(index);
  auto c = Checkpoint::open(dir);
  ASSERT_TRUE(c);
  EXPECT_GE(c->files().size(), 4u);
  auto m = load(dir), one = load(make_model("tiny", {}, "one"));
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_EQ(m->weights_digest, one->weights_digest);
}

TEST(Shards, MissingFilesAreListed) {
  nlohmann::json index;
  const std::string dir = sharded(index);
  auto files = Checkpoint::open(dir)->files();
  std::filesystem::remove(dir + "/" + files[1]);
  std::filesystem::remove(dir + "/" + files[2]);
  const std::string text = load_error(dir, Code::kBrokenData);
  EXPECT_THAT(text, HasSubstr("2 of " + std::to_string(files.size()) + " shards"));
  EXPECT_THAT(text, HasSubstr(files[1] + ", " + files[2]));
}

TEST(Shards, OnlyIndexedFilesAreRead) {
  nlohmann::json index;
  const std::string dir = sharded(index);
  write_file(dir + "/model-00099-of-00099.safetensors", "garbage");
  EXPECT_TRUE(load(dir));
  write_file(dir + "/model.safetensors", "garbage");
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("beside an index"));
}

TEST(Shards, OneNameInTwoShards) {
  nlohmann::json index;
  const std::string dir = sharded(index);
  auto files = Checkpoint::open(dir)->files();
  RawTensors all = read_raw(dir), second;
  const std::string name = "model.language_model.norm.weight";  // in the last shard
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (file == files[1] || tensor == name) second[tensor] = all[tensor];
  }
  write_raw(dir + "/" + files[1], second);
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr(name + " is in two shards"));
}

TEST(Shards, IndexAndShardsMustAgree) {
  nlohmann::json index;
  const std::string dir = sharded(index);
  auto files = Checkpoint::open(dir)->files();
  const std::string name = "model.language_model.norm.weight";
  nlohmann::json edited = index;
  edited["weight_map"].erase(name);
  put_index(dir, edited);
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("the index says nothing of it"));
  edited = index;
  edited["weight_map"]["model.language_model.extra"] = files[0];
  put_index(dir, edited);
  EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("model.language_model.extra"));
  for (const char* bad : {"../model.safetensors", "/etc/passwd", "..", "", "a/b", "a\\b"}) {
    edited = index;
    edited["weight_map"][name] = bad;
    put_index(dir, edited);
    EXPECT_THAT(load_error(dir, Code::kBrokenData), HasSubstr("inside the checkpoint folder"))
        << bad;
  }
  for (const char* bad : {"[]", "{}", "{\"weight_map\": 3}", "{\"weight_map\": {}}", "{"}) {
    write_file(dir + "/model.safetensors.index.json", bad);
    load_error(dir, Code::kBrokenData);
  }
}

TEST(Safetensors, WriterIsReadBackAndLeavesNothingWithoutCommit) {
  const std::string dir = fresh_dir();
  RawTensors raw;
  raw["z"] = {"F32", {2, 3}, std::string(24, 'q')};
  raw["a"] = {"BF16", {1}, "xy"};
  write_raw(dir + "/model.safetensors", raw);
  const RawTensors back = read_raw(dir);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back.at("z").bytes, raw["z"].bytes);
  EXPECT_EQ(back.at("a").shape, std::vector<int64_t>{1});
  auto c = Checkpoint::open(dir);
  EXPECT_EQ(c->tensors()[0].offset % 64, 0);
  {
    auto w = SafetensorsWriter::create(dir + "/other.safetensors", {{"a", "BF16", {1}}}, false);
  }
  EXPECT_FALSE(path_exists(dir + "/other.safetensors"));
  auto again = SafetensorsWriter::create(dir + "/model.safetensors", {{"a", "BF16", {1}}}, false);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kUsage);
}

}  // namespace
}  // namespace sb
