// Reports as one offline HTML page: no script, no network, readable in print and in the dark.
#include <cmath>

#include "samebits/base/digest.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --dim: #59636e;
  --good: #1a7f37; --bad: #cf222e; --warn: #9a6700; --bar: #cf222e33 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d;
  --dim: #9198a1; --good: #3fb950; --bad: #f85149; --warn: #d29922; --bar: #f8514955 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.good { color: var(--good) } .bad { color: var(--bad) } .warn { color: var(--warn) }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code, td.c { font-family: ui-monospace, monospace; font-size: .9em }
.bar { background: var(--bar); height: 1em; display: block }
.dim { color: var(--dim) }
)";

const char* tone_class(Code code) {
  if (code == Code::kEqual) return "good";
  return code == Code::kDrift || code == Code::kBrokenData ? "bad" : "warn";
}

std::string row(std::initializer_list<std::string> cells) {
  std::string out = "<tr>";
  for (const auto& cell : cells) out += "<td class=\"c\">" + html_escape(cell) + "</td>";
  return out + "</tr>\n";
}

std::string runs(const Comparison& c) {
  std::string out = "<h2>Runs</h2>\n<table><tr><th></th><th>A</th><th>B</th></tr>\n";
  out += row({"file", c.name_a, c.name_b});
  const auto either = [](const RunHeader& h, const std::string& text) {
    return h.profile.empty() ? std::string("not stated") : text;
  };
  const auto both = [&](const char* name, const std::string& a, const std::string& b) {
    out += row({name, either(c.a, a), either(c.b, b)});
  };
  both("model", c.a.model, c.b.model);
  both("weights", c.a.weights, c.b.weights);
  both("contracts", c.a.contracts, c.b.contracts);
  both("profile", c.a.profile, c.b.profile);
  both("temperature", shortest(c.a.temperature), shortest(c.b.temperature));
  both("schedule", c.a.schedule, c.b.schedule);
  return out + "</table>\n";
}

std::string difference(const char* title, const std::optional<Difference>& d) {
  if (!d) return {};
  const auto bits = [&](bool a) {
    const float x = a ? d->value_a : d->value_b;
    if (!d->is_value) return "row digest " + hex64(a ? d->bits_a : d->bits_b);
    return bits_text(*d, a) + (std::isfinite(x) ? " = " + shortest(x) : "");
  };
  std::string out = std::string("<h2>") + title + "</h2>\n<table>\n";
  out += row({"boundary", d->boundary}) + row({"row", d->id});
  out += row({"position", std::to_string(d->pos)});
  if (d->column >= 0) out += row({"column", std::to_string(d->column)});
  out += row({"A", bits(true)}) + row({"B", bits(false)});
  if (d->is_value && !d->non_finite) out += row({"distance", grouped(d->ulp) + " ulp"});
  return out + "</table>\n";
}

std::string boundaries(const Comparison& c) {
  if (c.boundaries.empty()) return {};
  std::string out =
      "<h2>Boundaries, in causal order</h2>\n<table><tr><th>boundary</th><th class=\"n\">rows</th>"
      "<th class=\"n\">differ</th><th class=\"n\">inf/NaN A, B</th><th "
      "style=\"width:30%\">share</th>"
      "</tr>\n";
  for (const BoundaryCount& b : c.boundaries) {
    // Thousandths of the width; a single differing row still shows.
    int64_t share = b.rows ? b.differing * 1000 / b.rows : 0;
    if (b.differing > 0 && share < 5) share = 5;
    out += "<tr><td class=\"c\">" + html_escape(b.boundary) + "</td><td class=\"n\">" +
           grouped(b.rows) + "</td><td class=\"n\">" + grouped(b.differing) +
           "</td><td class=\"n\">" + grouped(b.non_finite_a) + ", " + grouped(b.non_finite_b) +
           "</td><td><span class=\"bar\" style=\"width:" + std::to_string(share / 10) + "." +
           std::to_string(share % 10) + "%\"></span></td></tr>\n";
  }
  return out + "</table>\n";
}

// Every row of a score comparison that is not simply equal.
std::string rows_table(const Comparison& c) {
  std::string lines;
  int64_t equal = 0;
  for (const RowCount& r : c.rows) {
    if (r.differing == 0 && r.bad == 0) {
      ++equal;
      continue;
    }
    lines += row({r.id, grouped(r.compared), grouped(r.differing),
                  r.first ? std::to_string(r.first->pos) : "", shortest_or_null(r.max_abs_diff),
                  grouped(r.masked), grouped(r.bad)});
  }
  if (lines.empty()) return {};
  return "<h2>Rows that differ</h2>\n<table><tr><th>row</th><th>compared</th><th>differ</th>"
         "<th>first at</th><th>largest |Δ|</th><th>masked</th><th>no numbers</th></tr>\n" +
         lines + "</table>\n<p class=\"dim\">" + grouped(equal) + " more are equal.</p>\n";
}

std::string metrics(const Comparison& c) {
  if (c.metrics.empty()) return {};
  std::string out = std::string("<h2>Metrics</h2>\n<p class=\"dim\">Training is ") +
                    (c.a_is_train ? "A" : "B") + ", rollout the other side.</p>\n<table>\n";
  for (const Metric& m : c.metrics) {
    out += row({m.name, std::isfinite(m.value) ? shortest_or_null(m.value) : "undefined"});
  }
  return out + "</table>\n";
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html_page(std::string_view title, std::string_view body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         html_escape(title) + "</title>\n<style>" + kStyle + "</style></head>\n<body>\n" +
         std::string(body) + "</body></html>\n";
}

std::string verdict_heading(Code code) {
  return std::string("<h1 class=\"") + tone_class(code) + "\">" + verdict_word(code) +
         " <span class=\"dim\">exit " + std::to_string(static_cast<int>(code)) + "</span></h1>\n";
}

std::string comparison_body(const Comparison& c) {
  std::string body = "<p>" + html_escape(c.finding) + ".</p>\n";
  if (!c.hint.empty()) body += "<p><b>Hint.</b> " + html_escape(c.hint) + ".</p>\n";
  body += "<p>" + grouped(c.sequences) + " rows, " + grouped(c.compared) + " compared, " +
          grouped(c.differing) + " differ; comparator " + html_escape(c.comparator) + ".</p>\n";
  if (!c.notes.empty()) {
    body += "<ul>\n";
    for (const auto& note : c.notes) body += "<li>" + html_escape(note) + "</li>\n";
    body += "</ul>\n";
  }
  body += difference("First difference", c.first) + difference("Largest difference", c.largest);
  return body + boundaries(c) + rows_table(c) + runs(c) + metrics(c);
}

std::string comparison_html(const Comparison& c) {
  return html_page("samebits compare: " + c.name_a + " and " + c.name_b,
                   verdict_heading(c.code) + comparison_body(c));
}

}  // namespace sb
