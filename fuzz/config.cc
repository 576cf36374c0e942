// config.json; in further parts generation_config.json, tokenizer.json and the recipe of a virtual
// checkpoint. With an empty first part the others are read against a model of 2500 tokens.
#include <bit>
#include <cmath>

#include "fuzz/harness.h"
#include "samebits/model/load.h"
#include "samebits/model/presets.h"

namespace sb::fuzz {
namespace {

void check_heads(const AttentionSpec& a, const Architecture& arch) {
  FUZZ_CHECK(a.num_kv_heads > 0 && arch.num_heads % a.num_kv_heads == 0, "kv heads divide heads");
  FUZZ_CHECK(a.head_dim > 0 && a.head_dim % 2 == 0, "head_dim is even");
  FUZZ_CHECK(a.rotary_pairs > 0 && a.rotary_pairs <= a.head_dim / 2, "pairs fit the head");
  FUZZ_CHECK(a.rope_theta > 0 && std::isfinite(a.rope_theta), "theta is finite");
}

void check_architecture(const Architecture& a) {
  FUZZ_CHECK(a.num_heads > 0 && a.num_layers() > 0 && a.window > 0, "sizes are positive");
  FUZZ_CHECK(a.layers.back() == LayerType::kGlobal, "the last layer is global");
  FUZZ_CHECK(a.segment > 0 && a.segment % 64 == 0, "a segment is whole blocks");
  FUZZ_CHECK(a.rms_eps > 0 && std::isfinite(a.rms_eps), "eps is finite");
  FUZZ_CHECK(a.softcap > 0 && std::isfinite(a.softcap), "softcap is finite");
  const auto [left, right] = window_left_right(a.window);
  FUZZ_CHECK(window_from_left_right(left, right) == a.window, "the other spelling of the window");
  FUZZ_CHECK(!window_from_left_right(left, right + 1), "text is causal");
  check_heads(a.sliding, a);
  check_heads(a.global, a);
  int64_t total = 0;
  for (const ExpectedTensor& t : text_tensors(a)) {
    FUZZ_CHECK(t.numel() > 0, "no tensor is empty");
    total += t.numel();
  }
  FUZZ_CHECK(total == a.text_parameters(), "tensors and their count agree");
  FUZZ_CHECK(a.vision_parameters() >= 0, "the count of the tower has no overflow");
}

bool same(const AttentionSpec& a, const AttentionSpec& b) {
  return a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim &&
         a.rope_theta == b.rope_theta && a.rotary_pairs == b.rotary_pairs;
}

void check_rewrite(const Architecture& a) {
  const std::string text = write_config(a);
  const auto again = parse_config(text, "again.json");
  FUZZ_CHECK(again, "what was written is read: " + (again ? "" : again.error().text()));
  const Architecture& b = *again;
  FUZZ_CHECK(b.hidden == a.hidden && b.intermediate == a.intermediate && b.vocab == a.vocab &&
                 b.max_position == a.max_position && b.num_heads == a.num_heads &&
                 b.window == a.window && b.segment == a.segment && b.layers == a.layers,
             "sizes come back");
  FUZZ_CHECK(std::bit_cast<uint32_t>(b.rms_eps) == std::bit_cast<uint32_t>(a.rms_eps) &&
                 std::bit_cast<uint32_t>(b.softcap) == std::bit_cast<uint32_t>(a.softcap),
             "constants come back to the bit");
  FUZZ_CHECK(same(a.sliding, b.sliding) && same(a.global, b.global), "heads come back");
  FUZZ_CHECK(b.has_vision == a.has_vision && b.bidirectional_vision == a.bidirectional_vision &&
                 b.vision == a.vision,
             "the tower comes back");
  FUZZ_CHECK(b.tokens == a.tokens, "token ids come back");
  FUZZ_CHECK(write_config(b) == text, "writing is stable");
}

}  // namespace

void config(std::string_view bytes) {
  const auto parts = parts_of(bytes);
  Architecture arch;
  arch.vocab = 2500;
  if (!parts[0].empty() || parts.size() == 1) {
    auto parsed = parse_config(std::string(parts[0]), "in.json");
    if (!accepted(parsed, "in.json")) return;
    check_architecture(*parsed);
    check_rewrite(*parsed);
    arch = std::move(*parsed);
  }
  if (parts.size() > 1 && !parts[1].empty() &&
      accepted(parse_generation_config(std::string(parts[1]), "generation.json", arch),
               "generation.json")) {
    for (const auto* ids : {&arch.tokens.eos, &arch.tokens.suppress}) {
      for (const int64_t id : *ids) FUZZ_CHECK(id >= -1 && id <= (1 << 26), "ids are small");
    }
    for (const int64_t id : arch.tokens.suppress) FUZZ_CHECK(id < arch.vocab, "ids are tokens");
  }
  if (parts.size() > 2 && !parts[2].empty()) {
    write_scratch("tokenizer.json", parts[2]);
    std::vector<std::string> warnings;
    const std::string dir = scratch("");
    (void)accepted(check_tokenizer(dir, arch, warnings), dir);
  }
  if (parts.size() > 3)
    (void)accepted(parse_virtual(std::string(parts[3]), "virtual.json"), "virtual.json");
}

}  // namespace sb::fuzz
