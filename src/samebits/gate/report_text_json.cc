// Reports as JSON. Key order is fixed; numbers are the shortest that read back; NaN is null.
#include <cmath>
#include <nlohmann/json.hpp>

#include "samebits/base/digest.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

using Json = nlohmann::ordered_json;

// The shortest decimal of an fp32, as a JSON number.
Json fp32(float x) { return std::isfinite(x) ? Json::parse(shortest(x)) : Json(nullptr); }

Json json_of(const RunHeader& h, const std::string& name) {
  Json out = {{"file", name}};
  if (h.profile.empty()) {
    out["external"] = true;
    return out;
  }
  out["model"] = h.model;
  out["weights"] = h.weights;
  out["contracts"] = h.contracts;
  out["profile"] = h.profile;
  out["temperature"] = fp32(h.temperature);
  out["suppress"] = h.suppress;
  out["schedule"] = h.schedule;
  return out;
}

Json json_of(const std::optional<Difference>& d) {
  if (!d) return nullptr;
  Json out = {{"boundary", d->boundary}, {"layer", d->layer}, {"id", d->id}, {"position", d->pos}};
  if (d->layer < 0) out["layer"] = nullptr;
  out["non_finite"] = d->non_finite;
  if (d->is_value) {
    if (d->column >= 0) out["column"] = d->column;
    out["bits_a"] = bits_text(*d, true);
    out["bits_b"] = bits_text(*d, false);
    out["value_a"] = fp32(d->value_a);
    out["value_b"] = fp32(d->value_b);
    out["abs_diff"] = std::fabs(static_cast<double>(d->value_a) - d->value_b);
    out["ulp"] = d->non_finite ? Json(nullptr) : Json(d->ulp);
  } else {
    out["digest_a"] = hex64(d->bits_a);
    out["digest_b"] = hex64(d->bits_b);
  }
  return out;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string comparison_json(const Comparison& c) {
  Json out = {{"samebits", "comparison/1"},
              {"code", static_cast<int>(c.code)},
              {"verdict", code_name(c.code)},
              {"finding", c.finding},
              {"kind", c.kind},
              {"comparator", c.comparator},
              {"a", json_of(c.a, c.name_a)},
              {"b", json_of(c.b, c.name_b)},
              {"rows", c.sequences},
              {"compared", c.compared},
              {"differing", c.differing},
              {"masked", c.masked},
              {"masked_rows", c.masked_rows},
              {"bad_a", c.bad_a},
              {"bad_b", c.bad_b},
              {"signatures", c.signatures},
              {"first", json_of(c.first)},
              {"largest", json_of(c.largest)},
              {"hint", c.hint},
              {"notes", c.notes}};
  if (c.kind == "trace") {
    Json& list = out["boundaries"] = Json::array();
    for (const BoundaryCount& b : c.boundaries) {
      list.push_back({{"name", b.boundary},
                      {"rows", b.rows},
                      {"differing", b.differing},
                      {"non_finite_a", b.non_finite_a},
                      {"non_finite_b", b.non_finite_b}});
    }
  } else {
    Json& rows = out["per_row"] = Json::array();
    for (const RowCount& r : c.rows) {
      rows.push_back({{"id", r.id},
                      {"compared", r.compared},
                      {"differing", r.differing},
                      {"max_abs_diff", r.max_abs_diff},
                      {"masked", r.masked},
                      {"bad", r.bad},
                      {"first", json_of(r.first)}});
    }
    out["training_side"] = c.a_is_train ? "a" : "b";
    Json& metrics = out["metrics"] = Json::object();
    for (const Metric& m : c.metrics) {
      metrics[m.name] = std::isfinite(m.value) ? Json(m.value) : Json(nullptr);
    }
  }
  return dump(out);
}

std::string refusal_json(const Refusal& refusal) {
  return dump({{"error",
                {{"code", static_cast<int>(refusal.code)},
                 {"name", code_name(refusal.code)},
                 {"asked", refusal.asked},
                 {"reasons", refusal.reasons},
                 {"remedy", refusal.remedy}}}});
}

}  // namespace sb
