#include "samebits/model/presets.h"

namespace sb {
namespace {

struct Row {
  const char* name;
  const char* summary;
  int64_t hidden, intermediate, vocab;
  int layers, heads, sliding_kv, sliding_dim, global_kv, global_dim, window, segment;
  bool is_virtual;
};

// Rotary parameters and max_position are the published ones in every preset.
constexpr Row kRows[] = {
    {"tiny", "a second of work; every branch of the model", 96, 256, 2500, 6, 16, 8, 16, 2, 32, 24,
     128, false},
    {"mini", "real head sizes and window, small widths", 336, 640, 5000, 6, 8, 4, 256, 1, 512, 1024,
     512, false},
    {"layer31b", "six layers of the real size", 5376, 21504, 262144, 6, 32, 16, 256, 4, 512, 1024,
     4096, true},
    {"gemma4-31b", "the real size", 5376, 21504, 262144, 60, 32, 16, 256, 4, 512, 1024, 4096, true},
};

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> out;
    for (const Row& r : kRows) out.push_back({r.name, r.summary, r.is_virtual});
    return out;
  }();
  return all;
}

Result<Architecture> preset_architecture(const std::string& name) {
  std::string known;
  for (const Row& r : kRows) {
    known += (known.empty() ? "" : ", ") + std::string(r.name);
    if (name != r.name) continue;
    Architecture a;
    a.hidden = r.hidden;
    a.intermediate = r.intermediate;
    a.vocab = r.vocab;
    a.max_position = 262144;
    a.num_heads = r.heads;
    a.window = r.window;
    a.segment = r.segment;
    a.sliding = {r.sliding_kv, r.sliding_dim, 1e4, r.sliding_dim / 2};
    a.global = {r.global_kv, r.global_dim, 1e6, r.global_dim / 8};  // a quarter of the pairs
    for (int i = 0; i < r.layers; ++i) {
      a.layers.push_back(i % 6 == 5 ? LayerType::kGlobal : LayerType::kSliding);
    }
    a.bidirectional_vision = true;
    a.tokens.pad = 0;
    a.tokens.bos = 2;
    a.tokens.eos = {1, 106};
    if (a.vocab > 258884) {  // the ids exist only in the real vocabulary
      a.tokens.image = 258880;
      a.tokens.begin_image = 255999;
      a.tokens.end_image = 258882;
      a.tokens.audio = 258881;
      a.tokens.video = 258884;
    }
    return a;
  }
  return refuse(Code::kUsage, "use the preset \"" + name + "\"", "there is no such preset", known);
}

}  // namespace sb
