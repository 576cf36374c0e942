// samebits help [codes|formats|boundaries]: what a script or a reader of reports needs to know.
#include "samebits/cli/cmd_help.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "samebits/contract/boundary.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<Code, const char*> kCodes[] = {
    {Code::kEqual, "every bit that was to be compared is equal"},
    {Code::kDrift, "bits differ, or a boundary holds inf or NaN; the first place is named"},
    {Code::kNotComparable, "ids, rows, tokens, boundaries, profiles or contracts are not the same"},
    {Code::kWeightsDiffer, "the weights (buffers included) are not the same"},
    {Code::kSemanticsDiffer, "temperature, suppressed ids or model configuration differ"},
    {Code::kRefused, "asked for something no contract covers"},
    {Code::kBrokenData, "a file is damaged, contradicts itself or holds nothing to compare"},
    {Code::kEnvironment, "disk, memory or device"},
    {Code::kUsage, "the command line"},
    {Code::kInterrupted, "stopped by Ctrl-C, SIGTERM or SIGHUP; no output file was left"},
};

std::string codes_text() {
  TextTable table({"exit", "name", "meaning"}, {Align::kRight});
  for (const auto& [code, meaning] : kCodes) {
    table.add({std::to_string(static_cast<int>(code)), code_name(code), meaning});
  }
  return table.text("") +
         "\nOf several, the first in 130, 64, 6, 2, 3, 4, 5, 7, 1, 0 is returned.\n"
         "70 is a bug in samebits; please report it with the command line.\n";
}

Json codes_json() {
  Json out = {{"samebits", "help/1"}, {"topic", "codes"}};
  for (const auto& [code, meaning] : kCodes) {
    out["codes"].push_back(
        {{"code", static_cast<int>(code)}, {"name", code_name(code)}, {"meaning", meaning}});
  }
  out["precedence"] = {130, 64, 6, 2, 3, 4, 5, 7, 1, 0};
  return out;
}

constexpr const char* kFormats =
    R"(Lines of JSON are UTF-8 and at most 64 MiB; standard input at most 1 GiB. docs/formats.md says more.

Token rows: JSON lines, what is scored.
  {"id":"r1","tokens":[2,17,5],"prompt_len":1}
  id          text or integer, unique in the file
  tokens      ids in 0…V-1, at least 2
  prompt_len  1…n-1; tokens[prompt_len…] are scored
  logprobs    optional, one per scored token, at most 0: decimals, "0xbf800000" (fp32 bits) or
              "-0x1p+0" (C99); needed by compare
  mask        optional, 0 or 1 per scored token or per token; 0 is left out of comparisons
  temperature optional, above 0        suppress  optional list of ids
              in a run all rows agree, or none has it, or the command line says it
  Other keys are kept and ignored. --key logprobs=rollout_log_probs reads another name.
  A first line {"samebits":"rollout/1", …} with the members of a score file's first line says what
  the run was; rollout writes it, logs of other engines do without. compare and audit read null,
  NaN and Infinity as values that are no log-probabilities, count them and end with 6.

Prompts of rollout: {"id","tokens"} with at least 1 token; a prompt_len cuts the tokens to it.

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
  columns  per boundary: u64 digest per row, then one byte per row (1: inf or NaN), padded to 8;
           then, where the column says "values":true, width elements of its dtype (bf16 or f32) per
           row, padded to 8. --trace-values layers.*.out,head.logit asks for them.
  sha256 HEX NEWLINE, over all bytes before
  Digest of a row: wrapping sum over elements of mix64(bits ^ (index+1)*0x9E3779B97F4A7C15),
  mix64 = SplitMix64's finaliser.

OUT.run.json beside the output of score and rollout: host, time, backend, and the records of every
operator that ran, chained by SHA-256; verify DIR --records checks them.

Files are recognised by content. - is standard input.
)";

// "layers.i.attn.q" for every layer i.
std::vector<std::string> boundary_patterns() {
  std::vector<std::string> names;
  for (int t = 0; t < kNumTaps; ++t) {
    const Tap tap = static_cast<Tap>(t);
    names.push_back(boundary_name({tap, is_layer_tap(tap) ? 0 : -1}));
    if (is_layer_tap(tap)) names.back().replace(0, sizeof("layers.0.") - 1, "layers.i.");
  }
  return names;
}

std::string boundaries_text() {
  std::string out =
      "Boundaries in causal order; i is a layer. A name ending in .acc is the fp32 result "
      "before rounding.\nGlobal layers have no attn.v; their attn.k holds the shared "
      "projection.\n\n";
  for (const auto& name : boundary_patterns()) out += "  " + name + "\n";
  return out;
}

Json command_json(const CLI::App& command, const std::string& name, const std::string& text) {
  Json out = {{"samebits", "help/1"},
              {"topic", name},
              {"description", command.get_description()},
              {"commands", Json::array()},
              {"options", Json::array()},
              {"text", text}};
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    out["commands"].push_back({{"name", sub->get_name()}, {"description", sub->get_description()}});
  }
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_group().empty()) continue;  // refused with a reason; not offered
    out["options"].push_back({{"name", o->get_name(true)},
                              {"description", o->get_description()},
                              {"default", o->get_default_str()},
                              {"required", o->get_required()}});
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
    const auto show = [&](const std::string& text, const auto& json) {
      print(options.json ? json().dump(1) + "\n" : text);
    };
    if (*topic == "codes") {
      show(codes_text(), codes_json);
    } else if (*topic == "formats") {
      show(kFormats,
           [] { return Json{{"samebits", "help/1"}, {"topic", "formats"}, {"text", kFormats}}; });
    } else if (*topic == "boundaries") {
      show(boundaries_text(), [] {
        return Json{
            {"samebits", "help/1"}, {"topic", "boundaries"}, {"boundaries", boundary_patterns()}};
      });
    } else if (named) {
      const std::string name = topic->empty() ? "samebits" : "samebits " + *topic;
      const std::string text = help_of(named, name);
      show(text, [&] { return command_json(*named, name, text); });
    } else {
      const auto no = refuse(Code::kUsage, "help " + *topic, "there is no such topic or command",
                             "samebits help codes|formats|boundaries|COMMAND");
      exit_code = report(no.value(), options);
    }
  });
}

}  // namespace sb
