// Trace files. No fuzzer finds a SHA-256, so an input that is refused is read once more with its
// manifest padded to the boundary of 8 bytes and the right checksum behind it.
#include "samebits/gate/trace_file.h"

#include <algorithm>
#include <functional>
#include <set>

#include "fuzz/harness.h"
#include "samebits/base/bits.h"
#include "samebits/base/digest.h"

namespace sb::fuzz {
namespace {

std::string repaired(std::string_view bytes) {
  std::string out(bytes);
  const size_t end = out.find('\n', kTraceMagic.size());
  if (end != std::string::npos) out.insert(end, (8 - (end + 1) % 8) % 8, ' ');
  return out + "sha256 " + sha256_hex(out) + "\n";
}

bool same(const TraceColumnView& a, const TraceColumnView& b) {
  return a.boundary == b.boundary && a.dtype == b.dtype && a.width == b.width &&
         a.scored == b.scored && std::ranges::equal(a.digests, b.digests) &&
         std::ranges::equal(a.non_finite, b.non_finite);
}

void check_same(const TraceView& a, const TraceView& b) {
  const RunHeader &h = a.header, &g = b.header;
  FUZZ_CHECK(h.model == g.model && h.weights == g.weights && h.contracts == g.contracts &&
                 h.profile == g.profile && h.schedule == g.schedule && h.suppress == g.suppress &&
                 float_bits(h.temperature) == float_bits(g.temperature),
             "the header comes back");
  FUZZ_CHECK(a.ids == b.ids && a.tokens == b.tokens, "ids and token digests come back");
  FUZZ_CHECK(std::ranges::equal(a.rows, b.rows,
                                [](const TraceRow& x, const TraceRow& y) {
                                  return x.seq == y.seq && x.pos == y.pos;
                                }) &&
                 std::ranges::equal(a.scored, b.scored),
             "rows come back");
  FUZZ_CHECK(std::ranges::equal(a.columns, b.columns, same), "columns come back");
}

// What comparisons rely on, told apart from check_trace.
void check_rules(const TraceView& view) {
  const auto num_rows = static_cast<int64_t>(view.rows.size());
  FUZZ_CHECK(num_rows > 0 && !view.columns.empty(), "no rows are no data");
  FUZZ_CHECK(std::set<std::string>(view.ids.begin(), view.ids.end()).size() == view.ids.size() &&
                 view.tokens.size() == view.ids.size(),
             "ids are unique and have their tokens");
  const auto place = [](const TraceRow& r) { return std::pair(r.seq, r.pos); };
  FUZZ_CHECK(
      std::ranges::adjacent_find(view.rows, std::greater_equal<>(), place) == view.rows.end(),
      "rows ascend");
  for (const TraceRow& r : view.rows) {
    FUZZ_CHECK(r.seq >= 0 && r.seq < static_cast<int64_t>(view.ids.size()) && r.pos >= 0,
               "rows belong to sequences");
  }
  FUZZ_CHECK(std::ranges::adjacent_find(view.scored, std::greater_equal<>()) == view.scored.end(),
             "scored rows ascend");
  for (const int32_t s : view.scored) FUZZ_CHECK(s >= 0 && s < num_rows, "scored rows are rows");
  for (const TraceColumnView& c : view.columns) {
    const size_t count = c.scored ? view.scored.size() : view.rows.size();
    FUZZ_CHECK(c.digests.size() == count && c.non_finite.size() == count, "a digest a row");
    FUZZ_CHECK(std::ranges::all_of(c.non_finite, [](uint8_t f) { return f <= 1; }), "flags");
    FUZZ_CHECK(c.width > 0 && (c.dtype == "bf16" || c.dtype == "f32"), "elements of a known kind");
  }
}

// Whether the bytes are a trace; if so it obeys the rules, and writing gives it again.
bool run(std::string_view bytes) {
  const auto file = parse_trace_file(bytes, "in.sbt");
  if (!accepted(file, "in.sbt")) return false;
  const auto* begin = reinterpret_cast<const char*>(file->copy->data());
  const auto inside = [&](const auto& span) {
    const auto* first = reinterpret_cast<const char*>(span.data());
    return first >= begin && first + span.size_bytes() <= begin + bytes.size();
  };
  FUZZ_CHECK(inside(file->view.rows) && inside(file->view.scored), "rows lie in the file");
  for (const TraceColumnView& c : file->view.columns) {
    FUZZ_CHECK(inside(c.digests) && inside(c.non_finite), "columns lie in the file");
  }
  check_rules(file->view);
  FUZZ_CHECK(check_trace(file->view, "in.sbt"), "what was read passes the check of traces");

  const std::string path = scratch("again.sbt");
  FUZZ_CHECK(write_trace_file(path, true, file->view), "what was read can be written");
  const auto again = read_trace_file(path);
  FUZZ_CHECK(again, "what was written is read: " + (again ? "" : again.error().text()));
  check_same(file->view, again->view);
  return true;
}

}  // namespace

void trace_file(std::string_view bytes) {
  for (const std::string_view part : parts_of(bytes)) {
    if (!run(part)) run(repaired(part));
  }
}

}  // namespace sb::fuzz
