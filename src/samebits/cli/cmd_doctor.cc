// Checks of the machine itself: floating-point environment, instruction sets, backends of the
// build, a canary chain whose bits are known, and on request recorded outputs of a GPU's matrix
// unit.
#include "samebits/cli/cmd_doctor.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "samebits/arith/chain.h"
#include "samebits/arith/mma_golden.h"
#include "samebits/backend/implementation.h"
#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/base/fp_env.h"
#include "samebits/base/rng.h"
#include "samebits/cli/doctor_backend.h"
#include "samebits/cli/number_options.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

struct Finding {
  std::string what, state;
  bool ok = true;
};

// Digest of a fixed chain: 5 rows × 40 columns × 200 products with four large values.
uint64_t canary(const arith::ChainKernels& kernels) {
  constexpr int kRows = 5, kCols = 40, kDepth = 200;
  CounterRng rng(0xca4a);
  std::vector<bf16> a(kRows * kDepth), b(kCols * kDepth);
  for (auto* v : {&a, &b}) {
    for (auto& x : *v)
      x = round_bf16((rng.uniform() - 0.5f) * (rng.below(50) == 0 ? 4096.0f : 1.0f));
  }
  const bf16 *rows[kRows], *cols[kCols];
  for (int i = 0; i < kRows; ++i) rows[i] = a.data() + i * kDepth;
  for (int i = 0; i < kCols; ++i) cols[i] = b.data() + i * kDepth;
  std::vector<float> c(kRows * kCols, 0.0f);
  kernels.b_rows(rows, kRows, cols, kCols, kDepth, c.data(), kCols);
  uint64_t sum = 0;
  for (size_t i = 0; i < c.size(); ++i) sum += digest_element(float_bits(c[i]), i);
  return sum;
}

std::vector<Finding> examine() {
  std::vector<Finding> out;
  const auto env = check_fp_env();
  out.push_back({"floating-point control",
                 env ? "nearest-even, subnormals kept" : env.error().reasons[0], env.has_value()});
  for (Isa isa : kIsas) {
    const bool there = arith::chain_kernels(Profile::kSm90, isa) != nullptr;
    std::string state = there ? "available" : "not on this CPU or build";
    if (isa == arith::best_isa()) state += ", used";
    out.push_back({std::string("instruction set ") + isa_name(isa), state, true});
  }
  for (Profile p : kProfiles) {
    const uint64_t want = canary(*arith::chain_kernels(p, Isa::kPlain));
    std::string equal = isa_name(Isa::kPlain), differs;
    for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      const auto* kernels = arith::chain_kernels(p, isa);
      if (!kernels) continue;
      (canary(*kernels) == want ? equal : differs) += std::string(" ") + isa_name(isa);
    }
    out.push_back({std::string("canary ") + profile_name(p),
                   differs.empty() ? hex64(want) + " on " + equal : "differs on" + differs,
                   differs.empty()});
  }
  out.push_back({"backend cpu", "all profiles", true});
  out.push_back({"backend cuda", cuda_absence() ? cuda_absence() : "built", true});
  out.push_back({"backend hip", hip_absence() ? hip_absence() : "built", true});
  return out;
}

Result<Code> run_golden(const std::string& path, const GlobalOptions& options) {
  SB_TRY(report, arith::check_mma_golden(path));
  const int64_t equal = report.outputs - report.mismatches;
  if (options.json) {
    nlohmann::ordered_json j = {{"samebits", "mma-golden/1"},
                                {"trials", report.trials},
                                {"outputs", report.outputs},
                                {"equal", equal},
                                {"checked", report.checked}};
    print(j.dump(1) + "\n");
  } else {
    print(fmt::format("{}/{} recorded outputs equal ({} trials), by", grouped(equal),
                      grouped(report.outputs), grouped(report.trials)));
    for (const auto& who : report.checked) print(" " + who + ",");
    print(" all of them\n");
    if (report.first) {
      const auto& m = *report.first;
      print(fmt::format(
          "  first: trial {}, row {}, column {}: recorded 0x{:08x}, {} gives 0x{:08x}\n", m.trial,
          m.row, m.col, m.expect, m.who, m.got));
    }
  }
  return report.mismatches == 0 ? Code::kEqual : Code::kDrift;
}

Result<Code> run_doctor(const GlobalOptions& options) {
  bool ok = true;
  TextTable table({"check", "found", ""});
  auto rows = nlohmann::ordered_json::array();
  for (const auto& f : examine()) {
    ok &= f.ok;
    table.add({f.what, f.state, f.ok ? "ok" : "BAD"});
    rows.push_back({{"check", f.what}, {"found", f.state}, {"ok", f.ok}});
  }
  print(options.json
            ? nlohmann::ordered_json({{"samebits", "doctor/1"}, {"ok", ok}, {"checks", rows}})
                      .dump(1) +
                  "\n"
            : table.text());
  return ok ? Code::kEqual : Code::kEnvironment;
}

}  // namespace

void add_doctor_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand("doctor", "Can this machine run the declared arithmetic?");
  auto golden = std::make_shared<std::string>();
  cmd->add_option("--mma-golden", *golden,
                  "replay recorded outputs of a Hopper matrix unit instead, and count equal ones");
  auto check = std::make_shared<BackendCheck>();
  const char* group = "Operators of a backend (with --backend)";
  cmd->add_option("--shapes", check->shapes, "preset whose operators are accepted")
      ->capture_default_str()
      ->group(group);
  cmd->add_option("--rows", check->rows, "row counts of the runs; default 1,17")
      ->delimiter(',')
      ->check(whole_number(1, 65536))
      ->group(group);
  cmd->add_option("--head-rows", check->head_rows, "most rows of the head and of sampling")
      ->check(whole_number(1, 4096))
      ->capture_default_str()
      ->group(group);
  cmd->add_option("--grid-caps", check->grid_caps, "most blocks of a grid, one run each; 0: no cap")
      ->delimiter(',')
      ->check(whole_number(0, 1 << 20))
      ->group(group);
  cmd->add_option("--repeats", check->repeats, "repeats of the largest run")
      ->check(whole_number(1, 1000))
      ->capture_default_str()
      ->group(group);
  cmd->add_option("--seed", check->seed, "of the operands")
      ->check(whole_number(0, INT64_MAX))
      ->capture_default_str()
      ->group(group);
  cmd->add_option("--operator", check->only, "one operator only, as the first column names it")
      ->group(group);
  cmd->footer(
      "Without options: the floating-point environment, instruction sets and a chain whose bits "
      "are\n"
      "known. With --backend: every operator of --shapes on that backend and on the oracle, from "
      "the\n"
      "same bytes; every byte has to be equal. Exit: 0 all holds · 1 bytes differ · 6 nothing was\n"
      "compared · 7 this machine or build cannot\n"
      "Examples:\n"
      "  samebits doctor\n"
      "  samebits doctor --backend emulated-sm90a\n"
      "  samebits doctor --backend emulated-gfx942 --profile gfx942 --operator attention\n"
      "  samebits doctor --backend cuda --shapes gemma4-31b --rows 1,17,4096 --json\n"
      "  samebits doctor --mma-golden goldens/mma_sm90.bin");
  cmd->callback([golden, check, cmd, group, &app, &options, &exit_code] {
    if (options.backend == "cpu") {
      auto unused = cmd->get_options([&](const CLI::Option* o) { return o->get_group() == group; });
      unused.push_back(app.get_option("--profile"));
      unused.push_back(app.get_option("--threads"));
      for (const CLI::Option* option : unused) {
        if (option->count() == 0) continue;
        const auto no = refuse(Code::kUsage, "doctor " + option->get_name(),
                               "it is about the operators of a backend and would be ignored",
                               "--backend emulated-sm90a, or leave it out");
        exit_code = report(no.value(), options);
        return;
      }
    }
    if (!golden->empty() && options.backend != "cpu") {
      const auto no = refuse(Code::kUsage, "--backend with --mma-golden",
                             "recorded outputs are replayed on the CPU, so it would be ignored",
                             "one of the two");
      exit_code = report(no.value(), options);
      return;
    }
    const auto code = !golden->empty()           ? run_golden(*golden, options)
                      : options.backend != "cpu" ? examine_backend(*check, options)
                                                 : run_doctor(options);
    exit_code = code ? static_cast<int>(*code) : report(code.error(), options);
  });
}

}  // namespace sb
