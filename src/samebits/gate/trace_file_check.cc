// The rules every trace obeys, in memory or in a file.
#include <algorithm>
#include <unordered_set>

#include "samebits/base/digest.h"
#include "samebits/gate/header_json.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/trace_file.h"

namespace sb {
namespace {

// Each returns what is wrong, or "".

std::string check_ids(const TraceView& view) {
  if (view.tokens.size() != view.ids.size()) return "ids and token digests differ in number";
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < view.ids.size(); ++i) {
    const std::string& id = view.ids[i];
    if (id.empty()) return "an id is empty";
    if (!is_utf8(id)) return "the id " + in_quotes(id) + " is not UTF-8";
    if (!seen.insert(id).second) return "the id " + in_quotes(id) + " appears twice";
    if (!is_hex_digest(view.tokens[i])) {
      return "the token digest of " + in_quotes(id) + " is no digest";
    }
  }
  return {};
}

std::string check_rows(const TraceView& view) {
  if (view.rows.empty()) return "it holds no rows";
  const int32_t num_ids = static_cast<int32_t>(view.ids.size());
  TraceRow last{-1, 0};
  for (const TraceRow& row : view.rows) {
    const auto place = [&row] {
      return "sequence " + std::to_string(row.seq) + ", position " + std::to_string(row.pos);
    };
    if (row.seq < 0 || row.seq >= num_ids || row.pos < 0) {
      return "a row names " + place() + " of " + std::to_string(num_ids) + " sequences";
    }
    const bool next = row.seq == last.seq + 1, same = row.seq == last.seq && row.pos > last.pos;
    if (!next && !same) return "rows out of order, repeated, or a sequence left out at " + place();
    last = row;
  }
  if (last.seq + 1 != num_ids) {
    return "the id " + in_quotes(view.ids[static_cast<size_t>(last.seq) + 1]) + " has no rows";
  }
  int64_t previous = -1;
  for (const int32_t s : view.scored) {
    if (s <= previous || s >= static_cast<int64_t>(view.rows.size())) {
      return "scored row " + std::to_string(s) + " is out of order or range";
    }
    previous = s;
  }
  return {};
}

// Values are those that were digested: a value that nobody wrote, or that lies in another row's
// place, cannot pass.
std::string check_values(const TraceColumnView& c, size_t count) {
  if (c.values.empty()) return "";
  const size_t width = static_cast<size_t>(c.width);
  if (c.values.size() != count * width * static_cast<size_t>(c.element_bytes())) {
    return "has " + std::to_string(c.values.size()) + " bytes of values for " +
           std::to_string(count) + " rows of " + std::to_string(width);
  }
  const uint32_t exponent = c.dtype == "f32" ? 0x7f800000u : 0x7f80u;
  for (size_t row = 0; row < count; ++row) {
    uint64_t digest = 0;
    bool non_finite = false;
    for (size_t i = 0; i < width; ++i) {
      const uint32_t bits = c.bits_at(row, i);
      digest += digest_element(bits, i);
      non_finite |= (bits & exponent) == exponent;
    }
    if (digest != c.digests[row] || non_finite != (c.non_finite[row] != 0)) {
      return "has values whose digest is another than that of row " + std::to_string(row);
    }
  }
  return "";
}

std::string check_columns(const TraceView& view) {
  if (view.columns.empty()) return "it holds no boundaries";
  int layers = 0, order = -1;
  for (const auto& c : view.columns) layers = std::max(layers, c.boundary.layer + 1);
  for (const auto& c : view.columns) {
    const std::string name = boundary_name(c.boundary);
    const size_t count = c.scored ? view.scored.size() : view.rows.size();
    if (boundary_order(c.boundary, layers) <= order) {
      return name + " is not in causal order, or appears twice";
    }
    order = boundary_order(c.boundary, layers);
    if (c.dtype != "bf16" && c.dtype != "f32") {
      return name + " has the unknown dtype " + in_quotes(c.dtype);
    }
    if (c.width < 1) return name + " has no elements";
    if (c.digests.size() != count || c.non_finite.size() != count) {
      return name + " holds " + std::to_string(c.digests.size()) + " digests and " +
             std::to_string(c.non_finite.size()) + " flags for " + std::to_string(count) + " rows";
    }
    const auto flag =
        std::find_if(c.non_finite.begin(), c.non_finite.end(), [](uint8_t f) { return f > 1; });
    if (flag != c.non_finite.end()) return name + " has a flag that is neither 0 nor 1";
    if (const std::string error = check_values(c, count); !error.empty()) return name + " " + error;
  }
  return {};
}

}  // namespace

Status check_trace(const TraceView& view, const std::string& where) {
  std::string error = check_ids(view);
  if (error.empty()) error = check_rows(view);
  if (error.empty()) error = check_columns(view);
  if (!error.empty()) return refuse(Code::kBrokenData, "use trace " + where, error);
  return {};
}

}  // namespace sb
