// samebits model new writes a synthetic checkpoint folder; samebits model show prints the
// fingerprint of a checkpoint and refuses one that cannot run. show reads names, shapes and dtypes;
// with
// --weights also every value.
#include "samebits/cli/cmd_model.h"

#include <fmt/format.h>

#include <CLI/Option.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "samebits/cli/number_options.h"
#include "samebits/gate/interrupt.h"
#include "samebits/model/fingerprint.h"
#include "samebits/model/load.h"
#include "samebits/model/source.h"

namespace sb {
namespace {

using nlohmann::json;

std::string with_commas(int64_t n) {
  std::string s = std::to_string(n);
  for (int at = static_cast<int>(s.size()) - 3; at > 0; at -= 3) s.insert(at, ",");
  return s;
}

void line(std::string& out, const std::string& name, const std::string& value) {
  out += fmt::format("  {:<22}{}\n", name, value);
}

std::string layers_text(const Architecture& a) {
  int global = 0;
  std::string places;
  for (int i = 0; i < a.num_layers(); ++i) {
    if (a.layers[i] != LayerType::kGlobal) continue;
    if (++global <= 12) places += (global > 1 ? ", " : "") + std::to_string(i);
  }
  if (global > 12) places += ", …";
  return fmt::format("{}: {} sliding, {} global (at {})", a.num_layers(), a.num_layers() - global,
                     global, places);
}

std::string heads_text(const Architecture& a, LayerType t) {
  const AttentionSpec& s = a.attention(t);
  return fmt::format("{} query heads on {} KV heads of {}; theta {:g}, {} of {} pairs rotate",
                     a.num_heads, s.num_kv_heads, s.head_dim, s.rope_theta, s.rotary_pairs,
                     s.head_dim / 2);
}

std::string ids_text(const std::vector<int64_t>& ids) {
  std::string out;
  for (int64_t id : ids) out += (out.empty() ? "" : ", ") + std::to_string(id);
  return out.empty() ? "none" : out;
}

struct Shown {
  Architecture arch;
  std::string digest, weights, source;
  std::vector<std::string> warnings;
  std::string fingerprint;
};

Result<Shown> look(const ModelShowOptions& o) {
  Shown s;
  if (o.path.ends_with(".json")) {
    if (o.weights) {
      return refuse(Code::kUsage, "digest the weights of " + o.path, "it is a config by itself",
                    "the checkpoint folder");
    }
    SB_TRY(text, read_text(o.path));
    SB_TRY(arch, parse_config(text, o.path));
    s.arch = std::move(arch);
    s.source = "config alone";
  } else if (o.weights) {
    auto device = make_cpu_device();
    ThreadPool pool(o.global.threads);
    SB_TRY(model, load_model(o.path, *device, pool, [] { return interrupted(); }));
    s.fingerprint = fingerprint_json(model);
    s.weights = model.weights_digest;
    s.warnings = model.warnings;
    s.source = fmt::format("{} tensors, every value read", model.tensors.size());
    s.arch = std::move(model.arch);
  } else {
    SB_TRY(arch, load_architecture(o.path));
    s.arch = std::move(arch);
    SB_TRY(source, open_source(o.path, s.arch, text_tensors(s.arch)));
    SB_DO(check_tokenizer(o.path, s.arch, source.warnings));
    s.warnings = source.warnings;
    const size_t files = source.files.files().size();
    s.source =
        source.is_virtual
            ? fmt::format("virtual, seed {}", source.seed)
            : fmt::format("{}, {} tensors", files == 1 ? "1 file" : fmt::format("{} files", files),
                          source.files.tensors().size());
  }
  if (s.fingerprint.empty()) s.fingerprint = fingerprint_json(s.arch);
  s.digest = fingerprint_digest(s.arch);
  return s;
}

std::string table(const Shown& s) {
  const Architecture& a = s.arch;
  std::string out = toned("Gemma 4 text model", Tone::kBold) + "\n";
  line(out, "layers", layers_text(a));
  line(out, "hidden, intermediate", fmt::format("{}, {}", a.hidden, a.intermediate));
  line(out, "sliding attention",
       heads_text(a, LayerType::kSliding) + fmt::format("; window {}", a.window));
  line(out, "global attention",
       heads_text(a, LayerType::kGlobal) + fmt::format("; K = V; segment {}", a.segment));
  line(out, "vocabulary", fmt::format("{}, tied head, softcap {:g}", a.vocab, a.softcap));
  line(out, "positions", std::to_string(a.max_position));
  line(out, "embedding scale", fmt::format("{:g} (bf16)", a.embedding_scale()));
  line(out, "norms",
       fmt::format("weight w (not 1 + w), eps {:g}; v_norm has no weight", a.rms_eps));
  line(out, "end of sequence ids", ids_text(a.tokens.eos));
  line(out, "suppressed ids", ids_text(a.tokens.suppress));
  line(out, "vision", a.has_vision ? "described; recognised, not run yet" : "none");
  line(out, "parameters",
       with_commas(a.text_parameters()) +
           (a.has_vision ? " text, " + with_commas(a.vision_parameters()) + " vision" : ""));
  line(out, "tensors", s.source);
  line(out, "fingerprint", s.digest);
  line(out, "weights", s.weights.empty() ? "not read (--weights)" : s.weights);
  for (const auto& w : s.warnings) out += toned("  warning: ", Tone::kWarn) + w + "\n";
  return out;
}

}  // namespace

Result<int64_t> parse_size(const std::string& text) {
  int64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  const std::string unit(at, end);
  int64_t factor = 0;
  for (const auto& [name, bytes] : {std::pair<const char*, int64_t>{"", 1},
                                    {"B", 1},
                                    {"kB", 1000},
                                    {"KB", 1000},
                                    {"MB", 1000000},
                                    {"GB", 1000000000},
                                    {"KiB", 1 << 10},
                                    {"MiB", 1 << 20},
                                    {"GiB", 1 << 30}}) {
    if (unit == name) factor = bytes;
  }
  if (error != std::errc() || n < 1 || factor == 0 || n > INT64_MAX / factor) {
    return refuse(Code::kUsage, "read \"" + text + "\" as a size",
                  "a size is a whole number above 0 and a unit", "600kB, 5GB, 4GiB, 1000000");
  }
  return n * factor;
}

int cmd_model_new(const ModelNewOptions& o) {
  auto run = [&]() -> Status {
    NewModel what = o.model;
    what.force = o.global.force;
    what.interrupted = [] { return interrupted(); };
    if (o.prefix != kFullPrefix && o.prefix != kTextPrefix) {
      return refuse(Code::kUsage, "write tensors named \"" + o.prefix + "…\"",
                    "no reader of this model knows that prefix",
                    std::string(kFullPrefix) + " or " + std::string(kTextPrefix));
    }
    for (const std::string& layer : o.layers) {
      what.layers.push_back(layer == "global" ? LayerType::kGlobal : LayerType::kSliding);
    }
    what.text_only_names = o.prefix == kTextPrefix;
    SB_TRY(bytes, parse_size(o.shard_size));
    what.shard_bytes = bytes;
    SB_TRY(r, write_synthetic(what));
    if (o.global.json) {
      print(json{{"dir", what.dir},
                 {"preset", what.preset},
                 {"seed", what.seed},
                 {"virtual", r.is_virtual},
                 {"files", r.files},
                 {"tensors", r.tensors},
                 {"parameters", r.parameters},
                 {"bytes", r.bytes}}
                .dump(-1, ' ', false, json::error_handler_t::replace) +
            "\n");
      return {};
    }
    print(r.is_virtual
              ? fmt::format(
                    "{}: {} with seed {}, virtual: {} parameters are made when it is loaded\n",
                    what.dir, what.preset, what.seed, with_commas(r.parameters))
              : fmt::format("{}: {} with seed {}, {} parameters in {} tensors, {} bytes in {} {}\n",
                            what.dir, what.preset, what.seed, with_commas(r.parameters), r.tensors,
                            with_commas(r.bytes), r.files, r.files == 1 ? "file" : "files"));
    return {};
  };
  const Status s = run();
  return s ? 0 : report(s.error(), o.global);
}

int cmd_model_show(const ModelShowOptions& o) {
  const auto s = look(o);
  if (!s) return report(s.error(), o.global);
  if (!o.global.json) {
    print(table(*s));
    return 0;
  }
  json out = json::parse(s->fingerprint);
  out["digest"] = s->digest;
  out["warnings"] = s->warnings;
  print(out.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  return 0;
}

void add_model_commands(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* model = app.add_subcommand("model", "Synthetic checkpoints, and what a checkpoint is");
  model->require_subcommand(1);
  model->footer(
      "Examples:\n"
      "  samebits model new tiny --preset tiny\n"
      "  samebits model show tiny --weights");

  CLI::App* make = model->add_subcommand("new", "Write a synthetic checkpoint folder");
  auto n = std::make_shared<ModelNewOptions>();
  std::string list;
  for (const Preset& p : presets()) {
    list += fmt::format("  {:<12}{}{}\n", p.name, p.summary,
                        p.virtual_by_default ? "; virtual unless --materialize" : "");
  }
  make->add_option("DIR", n->model.dir, "folder to write; made if it is not there")->required();
  make->add_option("--preset", n->model.preset, "size of the model")->capture_default_str();
  make->add_option("--seed", n->model.seed, "weights differ with it, nothing else does")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  make->add_option("--layers", n->layers,
                   "layers instead of the preset's: sliding,sliding,global; the last one global")
      ->delimiter(',')
      ->check(CLI::IsMember({"sliding", "global"}));
  make->add_option("--window", n->model.window, "of sliding layers, instead of the preset's")
      ->check(CLI::Range(1, 1 << 20));
  make->add_flag("--materialize", n->model.materialize,
                 "write the tensors of a large preset instead of a recipe");
  make->add_option("--prefix", n->prefix, "of tensor names: model.language_model. or model.")
      ->capture_default_str();
  make->add_option("--shard-size", n->shard_size, "largest file, unless one tensor is larger")
      ->capture_default_str();
  make->footer("Presets:\n" + list +
               "Examples:\n"
               "  samebits model new tiny --preset tiny\n"
               "  samebits model new short --preset mini --layers sliding,global --window 64\n"
               "  samebits model new big --preset gemma4-31b --seed 7\n"
               "  samebits model new mini --preset mini --shard-size 10MB --force");
  make->callback([n, &options, &exit_code] {
    n->global = options;
    exit_code = cmd_model_new(*n);
  });

  CLI::App* show = model->add_subcommand("show", "Print the fingerprint of a checkpoint");
  auto s = std::make_shared<ModelShowOptions>();
  show->add_option("DIR", s->path, "checkpoint folder, or a config.json by itself")->required();
  show->add_flag("--weights", s->weights, "read every value: digest of the weights, NaN, infinity");
  show->footer(
      "Examples:\n"
      "  samebits model show tiny\n"
      "  samebits model show gemma-4-31B-it --weights --json > fingerprint.json\n"
      "  samebits model show gemma-4-31B-it/config.json\n"
      "A model that cannot run is refused; exit codes: samebits help codes");
  show->callback([s, &options, &exit_code] {
    s->global = options;
    exit_code = cmd_model_show(*s);
  });
}

}  // namespace sb
