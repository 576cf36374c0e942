// Speed of what dominates a CPU run. Every kernel is checked for equal bits before it is timed.
#include "samebits/cli/cmd_bench.h"

#include <fmt/format.h>

#include <memory>

#include "samebits/arith/chain_speed.h"
#include "samebits/cli/number_options.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

void bench_arith(double seconds, const GlobalOptions& options) {
  const auto speeds = arith::measure_chain_speed(seconds);
  if (options.json) {
    std::string text = "[\n";
    for (size_t i = 0; i < speeds.size(); ++i) {
      const auto& s = speeds[i];
      text += fmt::format(R"({{"profile":"{}","isa":"{}","rows":{},"gmac_s_core":{:.3f}}}{})",
                          profile_name(s.profile), isa_name(s.isa), s.rows, s.gmac_s_core,
                          i + 1 < speeds.size() ? ",\n" : "\n");
    }
    print(text + "]\n");
    return;
  }
  TextTable table({"profile", "isa", "rows", "GMAC/s a core"},
                  {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight});
  for (const auto& s : speeds) {
    table.add({profile_name(s.profile), isa_name(s.isa), std::to_string(s.rows),
               fmt::format("{:.2f}", s.gmac_s_core)});
  }
  print(table.text());
}

}  // namespace

void add_bench_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand("bench", "Speed of this machine at the declared arithmetic");
  cmd->require_subcommand(1);
  cmd->footer("Examples:\n  samebits bench arith\n  samebits bench arith --json");
  CLI::App* arith =
      cmd->add_subcommand("arith", "Matrix steps: each profile, instruction set, rows");
  arith->footer(
      "Billions of multiply-adds a second and core, by rows that share the weights.\n"
      "Examples:\n  samebits bench arith --json");
  auto seconds = std::make_shared<double>(0.5);
  arith->add_option("--seconds", *seconds, "time for each measurement")
      ->check(finite_number(0.01, 60.0))
      ->capture_default_str();
  arith->callback([seconds, &options, &exit_code] {
    bench_arith(*seconds, options);
    if (interrupted()) exit_code = static_cast<int>(Code::kInterrupted);
  });
}

}  // namespace sb
