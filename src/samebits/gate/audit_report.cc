// audit's report as text, JSON and one offline HTML page.
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/gate/audit.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

std::string value(const std::optional<Difference>& d, bool log) {
  if (!d) return "";
  const float x = log ? d->value_a : d->value_b;
  return shortest(x) + " (" + bits_hex(x) + ")";
}

std::string result_word(const RowCount& row) {
  if (row.bad) return "broken data";
  return row.differing ? "differs" : "equal";
}

std::string source(const AuditReport& r) {
  return grouped(static_cast<int64_t>(r.drawn.size())) + " of " + grouped(r.log_rows) +
         " rows, drawn by seed " + std::to_string(r.seed);
}

}  // namespace

std::string audit_text(const AuditReport& r) {
  const Comparison& c = r.comparison;
  std::string out = std::string(verdict_word(r.code)) + "  " + r.finding + "\n";
  out += "  log, A       " + r.log + ", " + source(r) + "\n";
  out +=
      "  rescored, B  " + r.model + ", profile " + c.b.profile + ", weights " + c.b.weights + "\n";
  out += "  compared     " + grouped(c.compared) + " log-probabilities, " + grouped(c.differing) +
         " differ, " + grouped(c.masked) + " masked\n\n";
  TextTable table(
      {"row", "place", "T", "compared", "differ", "result", "first at", "log", "rescored"},
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft,
       Align::kRight, Align::kLeft, Align::kLeft});
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const RowCount& row = c.rows[i];
    table.add({in_quotes(row.id, 40), std::to_string(r.drawn[i]), shortest(r.temperatures[i]),
               grouped(row.compared), grouped(row.differing), result_word(row),
               row.first ? "token " + std::to_string(row.first->pos) : "", value(row.first, true),
               value(row.first, false)});
  }
  out += table.text();
  if (!r.notes.empty() || !c.notes.empty()) out += "\n";
  for (const auto& note : r.notes) out += "  note  " + note + "\n";
  for (const auto& note : c.notes) {
    out += "  note  " + note + "\n";
  }
  return out;
}

std::string audit_json(const AuditReport& r) {
  const Comparison& c = r.comparison;
  nlohmann::ordered_json j = {{"samebits", "audit/1"},
                              {"code", static_cast<int>(r.code)},
                              {"verdict", code_name(r.code)},
                              {"finding", r.finding},
                              {"log", r.log},
                              {"model", r.model},
                              {"log_rows", r.log_rows},
                              {"seed", r.seed},
                              {"drawn", r.drawn},
                              {"compared", c.compared},
                              {"differing", c.differing},
                              {"seconds", r.seconds},
                              {"notes", r.notes}};
  // A is the log, B what was rescored.
  j["comparison"] = nlohmann::ordered_json::parse(comparison_json(c));
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string audit_html(const AuditReport& r) {
  const Comparison& c = r.comparison;
  std::string body = verdict_heading(r.code) + "<p>" + html_escape(r.finding) + ".</p>\n<p>" +
                     html_escape(r.log + ": " + source(r) + "; rescored with " + r.model) +
                     ".</p>\n<table><tr><th>row</th><th>place</th><th>T</th><th>compared</th>"
                     "<th>differ</th><th>result</th><th>first at</th><th>log</th><th>rescored</th>"
                     "</tr>\n";
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const RowCount& row = c.rows[i];
    body += "<tr>";
    for (const std::string& cell :
         {row.id, std::to_string(r.drawn[i]), shortest(r.temperatures[i]), grouped(row.compared),
          grouped(row.differing), result_word(row),
          row.first ? "token " + std::to_string(row.first->pos) : std::string(),
          value(row.first, true), value(row.first, false)}) {
      body += "<td class=\"c\">" + html_escape(cell) + "</td>";
    }
    body += "</tr>\n";
  }
  body += "</table>\n";
  if (!r.notes.empty()) {
    body += "<ul>\n";
    for (const auto& note : r.notes) body += "<li>" + html_escape(note) + "</li>\n";
    body += "</ul>\n";
  }
  return html_page("samebits audit: " + r.log, body +
                                                   "<h2>As a comparison</h2>\n<p class=\"dim\">A "
                                                   "is the log, B what was rescored.</p>\n" +
                                                   comparison_body(c));
}

}  // namespace sb
