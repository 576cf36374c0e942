// samebits help [codes|formats|boundaries]: what a script or a reader of reports needs to know.
#include "samebits/cli/cmd_help.h"

#include <memory>

#include "samebits/contract/boundary.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

std::string codes_text() {
  TextTable table({"exit", "name", "meaning"}, {Align::kRight});
  const auto add = [&](Code code, const char* meaning) {
    table.add({std::to_string(static_cast<int>(code)), code_name(code), meaning});
  };
  add(Code::kEqual, "every bit that was to be compared is equal");
  add(Code::kDrift, "bits differ, or a boundary holds inf or NaN; the first place is named");
  add(Code::kNotComparable,
      "ids, rows, tokens, boundaries, profiles or contracts are not the same");
  add(Code::kWeightsDiffer, "the weights (buffers included) are not the same");
  add(Code::kSemanticsDiffer, "temperature, suppressed ids or model configuration differ");
  add(Code::kRefused, "asked for something no contract covers");
  add(Code::kBrokenData, "a file is damaged, contradicts itself or holds nothing to compare");
  add(Code::kEnvironment, "disk, memory or device");
  add(Code::kUsage, "the command line");
  add(Code::kInterrupted, "stopped by Ctrl-C; no output file was left");
  return table.text("") +
         "\nOf several, the first in 130, 64, 6, 2, 3, 4, 5, 7, 1, 0 is returned.\n"
         "70 is a bug in samebits; please report it with the command line.\n";
}

constexpr const char* kFormats = R"(Token rows: JSON lines, what is scored.
  {"id":"r1","tokens":[2,17,5],"prompt_len":1}
  id          text or integer, unique in the file
  tokens      ids in 0…V-1, at least 2
  prompt_len  1…n-1; tokens[prompt_len…] are scored
  logprobs    optional, one per scored token, at most 0: decimals, "0xbf800000" (fp32 bits) or
              "-0x1p+0" (C99); needed by compare
  mask        optional, 0 or 1 per scored token or per token; 0 is left out of comparisons
  temperature optional, above 0        suppress  optional list of ids
  Other keys are kept and ignored. --key logprobs=rollout_log_probs reads another name.

Score file: JSON lines, version score/1. First line, then one line per row in input order:
  {"samebits":"score/1","model":M,"weights":W,"contracts":"ID:DIGEST","profile":"sm90",
   "temperature":1,"suppress":[],"schedule":"train"}
  {"id":"r1","tokens":"16 hex digits","prompt_len":1,"logprobs":[-1.25,-0.5]}
  logprobs[i] belongs to tokens[prompt_len + i]; numbers are the shortest decimals that read back to
  the same fp32. tokens is the digest of the ids. Equal runs write equal bytes.

Trace: version trace/1, little endian.
  samebits trace/1 NEWLINE
  one line of JSON: run header, ids, token digests, rows, scored, columns; padded to 8 bytes
  rows     int32 sequence, int32 position, ascending
  scored   int32 index into rows, padded to 8 bytes
  columns  per boundary: u64 digest per row, then one byte per row (1: inf or NaN), padded to 8
  sha256 HEX NEWLINE, over all bytes before
  Digest of a row: wrapping sum over elements of mix64(bits ^ (index+1)*0x9E3779B97F4A7C15),
  mix64 = SplitMix64's finaliser.

Files are recognised by content. - is standard input.
)";

std::string boundaries_text() {
  std::string out =
      "Boundaries in causal order; i is a layer. A name ending in .acc is the fp32 result "
      "before rounding.\nGlobal layers have no attn.v; their attn.k holds the shared "
      "projection.\n\n";
  for (int t = 0; t < kNumTaps; ++t) {
    const Tap tap = static_cast<Tap>(t);
    std::string name = boundary_name({tap, is_layer_tap(tap) ? 0 : -1});
    if (is_layer_tap(tap)) name.replace(0, sizeof("layers.0.") - 1, "layers.i.");
    out += "  " + name + "\n";
  }
  return out;
}

}  // namespace

void add_help_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand("help", "Explain codes, formats, boundaries or a command");
  auto topic = std::make_shared<std::string>();
  cmd->add_option("topic", *topic, "codes, formats, boundaries or a command");
  cmd->footer("Examples:\n  samebits help codes\n  samebits help compare");
  cmd->callback([topic, &app, &options, &exit_code] {
    const auto help_of = [&](const CLI::App* a, const std::string& name) {
      return a->get_formatter()->make_help(a, name, CLI::AppFormatMode::Normal);
    };
    const auto matches =
        app.get_subcommands([&](const CLI::App* a) { return a->get_name() == *topic; });
    const CLI::App* named = topic->empty() ? &app : matches.empty() ? nullptr : matches[0];
    if (*topic == "codes") {
      print(codes_text());
    } else if (*topic == "formats") {
      print(kFormats);
    } else if (*topic == "boundaries") {
      print(boundaries_text());
    } else if (named) {
      print(help_of(named, topic->empty() ? "samebits" : "samebits " + *topic));
    } else {
      const auto no = refuse(Code::kUsage, "help " + *topic, "there is no such topic or command",
                             "samebits help codes|formats|boundaries|COMMAND");
      exit_code = report(no.value(), options);
    }
  });
}

}  // namespace sb
