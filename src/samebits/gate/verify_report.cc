// verify's report as a table, JSON and one offline HTML page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "samebits/gate/numbers.h"
#include "samebits/gate/report_text.h"
#include "samebits/gate/verify.h"

namespace sb {
namespace {

std::string verdict_line(const VerifyReport& r) {
  int64_t red = 0;
  for (const auto& s : r.scenarios) red += s.code != Code::kEqual;
  if (r.code == Code::kEqual) {
    return fmt::format(
        "{}: {} scenarios, {} log-probabilities and {} row digests compared, 0 differ",
        verdict_word(r.code), r.scenarios.size(), grouped(r.compared), grouped(r.digests));
  }
  return fmt::format("{}: {} of {} scenarios differ, {} of {} log-probabilities",
                     verdict_word(r.code), red, r.scenarios.size(), grouped(r.differing),
                     grouped(r.compared));
}

std::string spread_line(const VerifyReport& r) {
  const Spread& s = r.spread;
  return fmt::format(
      "attention scores spread {:.2f} … {:.2f}, largest |logit| {:.1f}, {} of {} log-probabilities "
      "distinct{}",
      s.score_sigma_min, s.score_sigma_max, s.max_abs_logit, grouped(s.distinct),
      grouped(s.logprobs),
      s.healthy() ? "" : " (narrow: this model may hide faults; expected 1 … 4, > 20, 99 %)");
}

std::string result_word(const ScenarioResult& s) {
  return s.code == Code::kEqual ? "equal" : code_name(s.code);
}

}  // namespace

std::string verify_text(const VerifyReport& r) {
  std::string text = verdict_line(r) + "\n\n";
  text += fmt::format("  profile {}  contracts {}\n  weights {}\n  {}\n\n", r.header.profile,
                      r.header.contracts, r.header.weights, spread_line(r));
  TextTable table({"", "scenario", "compared", "differ", "result", "first difference", "s"},
                  {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft,
                   Align::kLeft, Align::kRight});
  std::string group;
  for (const auto& s : r.scenarios) {
    table.add({s.group == group ? "" : s.group, s.name, grouped(s.compared), grouped(s.differing),
               result_word(s), s.finding, fmt::format("{:.2f}", s.seconds)});
    group = s.group;
  }
  return text + table.text() + fmt::format("\n  {:.1f} s\n", r.seconds);
}

std::string verify_json(const VerifyReport& r) {
  nlohmann::ordered_json j = {
      {"samebits", "verify/1"},
      {"code", static_cast<int>(r.code)},
      {"result", code_name(r.code)},
      {"model", r.header.model},
      {"weights", r.header.weights},
      {"contracts", r.header.contracts},
      {"profile", r.header.profile},
      {"compared", r.compared},
      {"differing", r.differing},
      {"digests", r.digests},
      {"distinct", r.spread.distinct},
      {"reference_logprobs", r.spread.logprobs},
      {"score_sigma", {r.spread.score_sigma_min, r.spread.score_sigma_max}},
      {"max_abs_logit", r.spread.max_abs_logit},
      {"spread_healthy", r.spread.healthy()},
      {"seconds", r.seconds},
  };
  auto rows = nlohmann::ordered_json::array();
  for (const auto& s : r.scenarios) {
    rows.push_back({{"group", s.group},
                    {"scenario", s.name},
                    {"code", static_cast<int>(s.code)},
                    {"compared", s.compared},
                    {"differing", s.differing},
                    {"boundary", s.boundary},
                    {"row", s.row},
                    {"position", s.position},
                    {"finding", s.finding},
                    {"seconds", s.seconds}});
  }
  j["scenarios"] = std::move(rows);
  return j.dump(1) + "\n";
}

std::string verify_html(const VerifyReport& r) {
  std::string body =
      "<h1>samebits verify</h1><p>" + html_escape(verdict_line(r)) + "</p><p>" +
      html_escape(spread_line(r)) +
      "</p><table><tr><th>group</th><th>scenario</th>"
      "<th>compared</th><th>differ</th><th>result</th><th>first difference</th></tr>";
  for (const auto& s : r.scenarios) {
    body += "<tr><td>" + html_escape(s.group) + "</td><td>" + html_escape(s.name) + "</td><td>" +
            grouped(s.compared) + "</td><td>" + grouped(s.differing) + "</td><td>" +
            html_escape(result_word(s)) + "</td><td>" + html_escape(s.finding) + "</td></tr>";
  }
  return html_page("samebits verify", body + "</table>");
}

}  // namespace sb
