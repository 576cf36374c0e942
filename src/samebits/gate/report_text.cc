#include "samebits/gate/report_text.h"

#include <algorithm>
#include <cmath>

#include "samebits/base/digest.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

struct CodeRange {
  int32_t first, last;
};
// Ranges that terminals draw in no column and in two (Unicode 15, the blocks that ids may hold).
constexpr CodeRange kZeroWidth[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
                                    {0x064b, 0x065f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
                                    {0x200b, 0x200f}, {0x2060, 0x2064}, {0x20d0, 0x20ff},
                                    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
constexpr CodeRange kWide[] = {
    {0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},  {0x4e00, 0x9fff},
    {0xa000, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},  {0xff00, 0xff60},
    {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <size_t N>
bool within(int32_t code, const CodeRange (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](CodeRange r) { return code >= r.first && code <= r.last; });
}

// Of many boundaries, those a reader wants: the one before the first difference and what follows.
constexpr size_t kBoundaryLines = 12;

std::string side_line(const char* side, const std::string& name, const RunHeader& h) {
  std::string out = std::string("  ") + side + "  " + name;
  if (h.profile.empty()) return out + "  (external log)\n";
  return out + "  profile " + h.profile + ", schedule " + h.schedule + ", T " +
         shortest(h.temperature) + "\n";
}

std::string value_line(const char* side, const Difference& d, bool a) {
  std::string out = std::string("     ") + side + "  ";
  if (!d.is_value) return out + "row digest " + hex64(a ? d.bits_a : d.bits_b) + "\n";
  const float x = a ? d.value_a : d.value_b;
  return out + bits_text(d, a) + (std::isfinite(x) ? "  " + shortest(x) : "") + "\n";
}

std::string place_line(const char* what, const Difference& d) {
  return "  " + std::string(what) + "  " + d.boundary + ", row " + in_quotes(d.id) +
         (d.boundary == "logp" && d.layer < 0 ? ", token " : ", position ") +
         std::to_string(d.pos) + (d.column >= 0 ? ", column " + std::to_string(d.column) : "") +
         (d.is_value && !d.non_finite ? ", " + grouped(d.ulp) + " ulp" : "") + "\n";
}

std::string percent(int64_t part, int64_t whole) {
  if (whole == 0) return "–";
  // Hundredths, cut; a share that is not none never reads 0.00, nor can a partial one read 100.00.
  const int64_t hundredths =
      static_cast<int64_t>(1e4 * static_cast<double>(part) / static_cast<double>(whole));
  if (part > 0 && hundredths == 0) return "< 0.01 %";
  const std::string cents = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + std::string(cents.size() < 2 ? "0" : "") + cents +
         " %";
}

std::string boundary_table(const Comparison& c) {
  if (c.boundaries.empty() || !c.first) return {};
  size_t first = 0;
  while (first < c.boundaries.size() && c.boundaries[first].boundary != c.first->boundary) ++first;
  const size_t begin = first > 0 ? first - 1 : 0;
  const size_t end = std::min(c.boundaries.size(), begin + kBoundaryLines);
  TextTable table(
      {"boundary", "rows", "differ", "share", "inf/NaN A", "B"},
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (size_t i = begin; i < end; ++i) {
    const BoundaryCount& b = c.boundaries[i];
    table.add({b.boundary, grouped(b.rows), grouped(b.differing), percent(b.differing, b.rows),
               grouped(b.non_finite_a), grouped(b.non_finite_b)});
  }
  std::string out = std::string("\n") + table.text();
  if (end < c.boundaries.size()) {
    out += "  … and " + grouped(static_cast<int64_t>(c.boundaries.size() - end)) +
           " boundaries more (--json or --html lists them)\n";
  }
  return out;
}

// Of many rows, the first that differ or hold no numbers.
constexpr size_t kRowLines = 8;

std::string row_table(const Comparison& c) {
  TextTable table({"row", "compared", "differ", "first at", "largest |Δ|", "masked", "no numbers"},
                  {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight});
  int64_t others = 0;
  for (const RowCount& r : c.rows) {
    if (r.differing == 0 && r.bad == 0) continue;
    if (table.size() >= kRowLines) {
      ++others;
      continue;
    }
    table.add({in_quotes(r.id, 40), grouped(r.compared), grouped(r.differing),
               r.first ? "token " + std::to_string(r.first->pos) : "",
               shortest(static_cast<float>(r.max_abs_diff)), grouped(r.masked), grouped(r.bad)});
  }
  if (table.size() == 0) return {};
  std::string out = std::string("\n") + table.text();
  if (others) out += "  … and " + grouped(others) + " rows more (--json or --html lists them)\n";
  return out;
}

std::string metric_table(const Comparison& c) {
  if (c.metrics.empty() || c.differing == 0) return {};
  TextTable table({"metric", "value"});
  for (const char* name :
       {"train/train_rollout_logprob_abs_diff", "train/train_rollout_logprob_max_abs_diff",
        "train/train_rollout_logprob_mismatch_count", "logprob_abs_diff/p99", "kl", "k3_kl",
        "chi2_token", "ppl_ratio", "training/rollout_probs_diff_max",
        "training/rollout_actor_probs_pearson_corr"}) {
    const double value = metric(c.metrics, name);
    table.add({name, std::isnan(value) ? "undefined" : shortest_or_null(value)});
  }
  return std::string("\n") + table.text() + "  training is " + (c.a_is_train ? "A" : "B") +
         ", rollout the other (--json lists all metrics)\n";
}

}  // namespace

std::string bits_text(const Difference& d, bool a) {
  const std::string bits = bits_hex(a ? d.value_a : d.value_b);
  return d.is_bf16 ? bits.substr(0, 6) : bits;  // the other half of a bf16 is zero
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (text.starts_with("\x1b[")) {  // a colour escape ends at its letter
      const size_t end = text.find_first_of("mK");
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      continue;
    }
    const int32_t code = next_utf8(text);
    if (code >= 0 && code < 0x20) continue;
    width += code >= 0 && within(code, kZeroWidth) ? 0 : code >= 0 && within(code, kWide) ? 2 : 1;
  }
  return width;
}

TextTable::TextTable(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {
  align_.resize(header_.size(), Align::kLeft);
}

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(std::string_view indent) const {
  std::vector<int> width(header_.size(), 0);
  const auto widen = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      width[i] = std::max(width[i], display_width(cells[i]));
  };
  widen(header_);
  for (const auto& row : rows_) widen(row);
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text(indent);
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string pad(static_cast<size_t>(width[i] - display_width(cells[i])), ' ');
      if (i) text += "  ";
      text += align_[i] == Align::kRight ? pad + cells[i] : cells[i] + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return out;
}

const char* verdict_word(Code code) {
  switch (code) {
    case Code::kEqual: return "EQUAL";
    case Code::kDrift: return "DRIFT";
    case Code::kNotComparable: return "NOT COMPARABLE";
    case Code::kWeightsDiffer: return "WEIGHTS DIFFER";
    case Code::kSemanticsDiffer: return "SEMANTICS DIFFER";
    case Code::kRefused: return "REFUSED";
    case Code::kBrokenData: return "BROKEN DATA";
    case Code::kEnvironment: return "ENVIRONMENT";
    case Code::kUsage: return "USAGE";
    case Code::kInterrupted: return "INTERRUPTED";
  }
  return "UNKNOWN";
}

std::string comparison_text(const Comparison& c) {
  std::string out = std::string(verdict_word(c.code)) + "  " + c.finding + "\n";
  out += side_line("A", c.name_a, c.a) + side_line("B", c.name_b, c.b);
  out += "  compared  " + grouped(c.sequences) + (c.sequences == 1 ? " row, " : " rows, ") +
         grouped(c.compared) + (c.kind == "trace" ? " row digests of " : " log-probabilities") +
         (c.kind == "trace" ? grouped(static_cast<int64_t>(c.boundaries.size())) + " boundaries"
                            : "") +
         ", " + grouped(c.differing) + " differ (" + percent(c.differing, c.compared) + "), by " +
         c.comparator + "\n";
  if (c.first) {
    out += place_line("first  ", *c.first) + value_line("A", *c.first, true) +
           value_line("B", *c.first, false);
  }
  if (c.largest) {
    out += place_line("largest", *c.largest) + value_line("A", *c.largest, true) +
           value_line("B", *c.largest, false);
  }
  if (!c.hint.empty()) out += "  hint  " + c.hint + "\n";
  for (const auto& note : c.notes) out += "  note  " + note + "\n";
  return out + boundary_table(c) + row_table(c) + metric_table(c);
}

}  // namespace sb
