// The GPU kernels, emulated with the lane maps of both vendors, against the oracle: every operator
// at every shape of tiny, to the last byte. And that acceptance can fail.
#include "samebits/gate/acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samebits/model/presets.h"

namespace sb {
namespace {

using testing::HasSubstr;

AcceptanceOptions options_for(const char* backend, Profile profile) {
  AcceptanceOptions o;
  o.backend = *find_backend(backend);
  o.profile = profile;
  o.rows = {1, 16, 17};
  o.cases.rows = 65;
  o.cases.head_rows = 5;
  return o;
}

struct EmulatedRun {
  const char* backend;
  Profile profile;
};

class EmulatedKernels : public testing::TestWithParam<EmulatedRun> {};

TEST_P(EmulatedKernels, MakeTheOraclesBytesAtEveryShapeOfTiny) {
  const auto [backend, profile] = GetParam();
  AcceptanceOptions o = options_for(backend, profile);
  o.grid_caps = {0, 13};
  ThreadPool pool(2);
  const auto device = make_cpu_device();
  const auto report = accept_operators(*preset_architecture("tiny"), *device, pool, o, nullptr);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->passed());
  EXPECT_EQ(report->lines.size(), 29u);
  for (const auto& l : report->lines) {
    EXPECT_EQ(l.differing, 0) << l.op << " " << l.shape << ": " << l.first;
    EXPECT_GT(l.outputs, 0) << l.op << " " << l.shape;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedKernels,
                         testing::Values(EmulatedRun{"emulated-sm90a", Profile::kSm90},
                                         EmulatedRun{"emulated-sm90a", Profile::kIeee},
                                         EmulatedRun{"emulated-gfx942", Profile::kGfx942},
                                         EmulatedRun{"emulated-gfx942", Profile::kIeee}),
                         [](const auto& p) {
                           return std::string(p.param.backend == std::string("emulated-sm90a")
                                                  ? "warp32"
                                                  : "wave64") +
                                  "_" + profile_name(p.param.profile);
                         });

// A device that changes one bit of what it hands back.
class FlippingDevice : public Device {
 public:
  explicit FlippingDevice(size_t at) : at_(at) {}
  DeviceId id() const override { return cpu_->id(); }
  Result<void*> alloc(size_t n) override { return cpu_->alloc(n); }
  void release(void* p, size_t n) override { cpu_->release(p, n); }
  void copy_in(void* to, const void* from, size_t n) override { cpu_->copy_in(to, from, n); }
  void copy_out(void* to, const void* from, size_t n) override {
    cpu_->copy_out(to, from, n);
    if (at_ < n) static_cast<unsigned char*>(to)[at_] ^= 1;
  }
  void copy(void* to, const void* from, size_t n) override { cpu_->copy(to, from, n); }
  void fill(void* to, unsigned char byte, size_t n) override { cpu_->fill(to, byte, n); }
  Status sync() override { return {}; }

 private:
  size_t at_;
  std::unique_ptr<Device> cpu_ = make_cpu_device();
};

TEST(Acceptance, OneBitInAnOutputOrBesideItIsRed) {
  ThreadPool pool(1);
  AcceptanceOptions o = options_for("emulated-sm90a", Profile::kSm90);
  o.cases.only = "residual";
  for (const auto& [at, words] :
       {std::pair<size_t, const char*>{3, "outside the buffer"}, {256 + 20, "element 10 is"}}) {
    FlippingDevice device(at);
    const auto report = accept_operators(*preset_architecture("tiny"), device, pool, o, nullptr);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_FALSE(report->passed());
    EXPECT_THAT(report->lines[0].first, HasSubstr(words));
  }
}

TEST(Acceptance, NothingToCompareIsNoPass) {
  EXPECT_FALSE(AcceptanceReport{}.passed());
  ThreadPool pool(1);
  AcceptanceOptions o = options_for("emulated-sm90a", Profile::kSm90);
  o.cases.only = "norm";
  const auto device = make_cpu_device();
  const auto report = accept_operators(*preset_architecture("tiny"), *device, pool, o, nullptr);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kUsage);
  EXPECT_THAT(report.error().text(), HasSubstr("embed, rmsnorm, gemm, rope"));
}

TEST(Acceptance, AProfileTheKernelsDoNotHaveIsRefused) {
  ThreadPool pool(1);
  const auto device = make_cpu_device();
  const auto report = accept_operators(*preset_architecture("tiny"), *device, pool,
                                       options_for("emulated-sm90a", Profile::kGfx942), nullptr);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kRefused);
}

}  // namespace
}  // namespace sb
