#include "samebits/chain/schedule.h"

#include <algorithm>
#include <charconv>

namespace sb {
namespace {

Result<std::vector<int64_t>> parse_counts(const std::string& text, const std::string& list) {
  std::vector<int64_t> counts;
  const char* at = list.data();
  const char* end = at + list.size();
  while (true) {
    int64_t n = 0;
    const auto [next, error] = std::from_chars(at, end, n);
    if (error != std::errc() || n < 1 || (next != end && *next != ',')) {
      return refuse(Code::kUsage, "use schedule " + text,
                    "'" + list + "' is not a list of positive token counts",
                    "for example chunked:512 or chunked:7,1,30");
    }
    counts.push_back(n);
    if (next == end) return counts;
    at = next + 1;
  }
}

}  // namespace

std::string Schedule::name() const {
  switch (kind) {
    case ScheduleKind::kTrain: return "train";
    case ScheduleKind::kPrefill: return "prefill";
    case ScheduleKind::kDecode: return tail ? "decode:" + std::to_string(tail) : "decode";
    case ScheduleKind::kChunked: break;
  }
  std::string text = "chunked:";
  for (size_t i = 0; i < cuts.size(); ++i) text += (i ? "," : "") + std::to_string(cuts[i]);
  return text;
}

Result<Schedule> parse_schedule(const std::string& text) {
  Schedule s;
  if (text == "train") return s;
  if (text == "prefill") {
    s.kind = ScheduleKind::kPrefill;
    return s;
  }
  const size_t colon = text.find(':');
  const std::string head = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (head == "decode") {
    s.kind = ScheduleKind::kDecode;
    if (colon == std::string::npos) return s;
    SB_TRY(counts, parse_counts(text, rest));
    s.tail = counts[0];
    if (counts.size() == 1) return s;
  }
  if (head == "chunked" && colon != std::string::npos) {
    s.kind = ScheduleKind::kChunked;
    SB_TRY(counts, parse_counts(text, rest));
    s.cuts = std::move(counts);
    return s;
  }
  return refuse(Code::kUsage, "use schedule " + text, "there is no schedule of this name",
                "train, prefill, chunked:N, chunked:N,M,…, decode or decode:TAIL");
}

int64_t first_decoded(const Schedule& schedule, const Sequence& sequence, int64_t start) {
  const int64_t prompt =
      schedule.tail ? std::max<int64_t>(1, sequence.size() - schedule.tail) : sequence.prompt_len;
  return std::max(prompt, start);
}

std::vector<int64_t> step_sizes(const Schedule& schedule, const Sequence& sequence, int64_t start) {
  std::vector<int64_t> sizes;
  int64_t at = start;
  const int64_t end = sequence.size();
  auto step = [&](int64_t n) {
    n = std::min(n, end - at);
    if (n > 0) sizes.push_back(n);
    at += std::max<int64_t>(n, 0);
  };
  switch (schedule.kind) {
    case ScheduleKind::kTrain:
    case ScheduleKind::kPrefill: step(end - at); break;
    case ScheduleKind::kChunked:
      for (size_t i = 0; at < end; ++i) step(schedule.cuts[i % schedule.cuts.size()]);
      break;
    case ScheduleKind::kDecode: {
      step(first_decoded(schedule, sequence, start) - at);
      while (at < end) step(1);
      break;
    }
  }
  return sizes;
}

}  // namespace sb
