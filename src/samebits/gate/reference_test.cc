// Our CPU chain against transformers' Gemma 4 in fp32, at the samples of tests/fixtures/reference.
// The measure is the relative L2 norm of the difference; the yardstick is what transformers' own
// bf16 run reached at the same elements. These are the only tolerances of the chain: the reference
// is other people's code in another arithmetic. docs/reference.md has the figures over all
// elements.
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "samebits/chain/trace_taps.h"
#include "samebits/gate/engine_testing.h"
#include "samebits/gate/trace_values.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)

// Reference tolerance: times transformers' own bf16 error.
constexpr double kLayerTolerance = 1.10;
constexpr double kMeanTolerance = 1.0;   // on average over layers
constexpr double kLogitTolerance = 1.0;  // in the final capped logits
constexpr double kFaultBar = 2.0;        // what a fault must exceed, at a layer or in the logits

const std::string kFolder = std::string(SB_SOURCE_DIR) + "/tests/fixtures/reference/";

struct Shape {
  std::string name;
  NewModel model;
};

Shape shape_of(const std::string& name) {
  NewModel m;
  m.preset = name == "tiny" ? "tiny" : "mini";
  m.seed = 1;
  m.text_only_names = true;
  if (name != "tiny") m.window = 64;
  if (name == "short") m.layers = {LayerType::kSliding, LayerType::kGlobal};
  m.dir = scratch() + "/" + name;
  return {name, m};
}

// The tokens of tools/reference/make_rows.py.
std::vector<Sequence> rows_of_shape(int rows, int length, int64_t vocab) {
  uint64_t state = 1;
  std::vector<Sequence> out;
  for (int r = 0; r < rows; ++r) {
    Sequence s{"r" + std::to_string(r), {2}, 1};
    while (s.size() < length) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      s.tokens.push_back(3 +
                         static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab - 3)));
    }
    out.push_back(std::move(s));
  }
  return out;
}

// Our error at a boundary over transformers' own.
using Ratios = std::map<std::string, double>;

Ratios measure(const Shape& shape, const std::vector<std::string>& inject = {}) {
  static const nlohmann::json index =
      nlohmann::json::parse(read_text(kFolder + "samples.json").value());
  static const std::string samples = read_text(kFolder + "samples.bin").value();
  const nlohmann::json& expected = index.at("shapes").at(shape.name);
  if (!fs::exists(shape.model.dir)) {
    const auto made = write_synthetic(shape.model);
    EXPECT_TRUE(made) << made.error().text();
  }
  auto engine = Engine::open(shape.model.dir, {.threads = 2, .inject = inject});
  EXPECT_TRUE(engine) << engine.error().text();
  const Architecture& arch = engine->model->arch;
  EXPECT_EQ(engine->model->weights_digest, expected.at("weights")) << "samples of other weights";
  const auto rows = rows_of_shape(expected.at("rows"), expected.at("length"), arch.vocab);
  auto store = make_value_store(arch, rows, {"layers.*.out", "head.softcap"}, scratch() + "/v");
  EXPECT_TRUE(store) << store.error().text();
  RunOptions run = engine->run_options(schedule_of("train"));
  run.trace = true;
  run.trace_values = store->values;
  const auto result = engine->score(rows, run);
  EXPECT_TRUE(result) << result.error().text();
  Ratios out;
  for (const TraceValues& v : store->values) {
    const nlohmann::json& b = expected.at("boundaries").at(boundary_name(v.boundary));
    const auto count = b.at("count").get<size_t>(), stride = b.at("stride").get<size_t>();
    const char* reference = samples.data() + b.at("offset").get<size_t>() * sizeof(float);
    const bool fp32 = is_fp32(v.boundary.tap);
    const size_t elements = v.memory.size() / (fp32 ? 4 : 2);
    EXPECT_EQ(count, (elements + stride - 1) / stride) << boundary_name(v.boundary);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < count; ++i) {
      float want = 0, got = 0;
      std::memcpy(&want, reference + i * sizeof want, sizeof want);
      if (fp32) {
        std::memcpy(&got, v.memory.data() + i * stride * 4, 4);
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, v.memory.data() + i * stride * 2, 2);
        got = bits_float(uint32_t{bits} << 16);
      }
      difference += (double{got} - want) * (double{got} - want);
      norm += double{want} * want;
    }
    const double ratio = std::sqrt(difference / norm) / b.at("yardstick").get<double>();
    EXPECT_TRUE(std::isfinite(ratio)) << boundary_name(v.boundary);
    out[boundary_name(v.boundary)] = ratio;
  }
  EXPECT_EQ(out.size(), expected.at("boundaries").size());
  return out;
}

class ReferenceShape : public testing::TestWithParam<std::string> {};

TEST_P(ReferenceShape, IsCloserToFp32ThanTransformersInBf16) {
  const Ratios ratios = measure(shape_of(GetParam()));
  double sum = 0;
  for (const auto& [name, ratio] : ratios) {
    if (name == "head.softcap") continue;
    EXPECT_LE(ratio, kLayerTolerance) << name;
    EXPECT_GT(ratio, 0.1) << name << ": closer than bf16 can be; is this the chain?";
    sum += ratio;
  }
  EXPECT_LE(sum / static_cast<double>(ratios.size() - 1), kMeanTolerance);
  EXPECT_LE(ratios.at("head.softcap"), kLogitTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ReferenceShape, testing::Values("tiny", "heads", "short"));

class ReferenceFault : public testing::TestWithParam<std::string> {};

TEST_P(ReferenceFault, IsFarFromTheReference) {
  double largest = 0;
  for (const auto& [name, ratio] : measure(shape_of("short"), {GetParam()})) {
    largest = std::max(largest, ratio);
  }
  EXPECT_GT(largest, kFaultBar);
}

INSTANTIATE_TEST_SUITE_P(Faults, ReferenceFault,
                         testing::Values("softcap-missing", "window-minus-1", "window-plus-1",
                                         "layer-scalar-dropped", "rope-swap", "p-rope-exponent",
                                         "p-rope-pairing", "v-after-k-norm", "norm-one-plus-w"));

}  // namespace
}  // namespace sb
