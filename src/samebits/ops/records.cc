#include "samebits/ops/records.h"

#include <nlohmann/json.hpp>

#include "samebits/base/digest.h"

namespace sb {

std::string record_line(const Record& r) {
  const nlohmann::json j = {
      {"op", r.op},
      {"site", r.site},
      {"layer", r.layer},
      {"layer_type", r.layer_type},
      {"contract", r.contract},
      {"contract_digest", r.contract_digest},
      {"implementation", r.implementation},
      {"schedule", r.schedule},
      {"split", r.split},
      {"accumulator", r.accumulator},
      {"profile", r.profile},
      {"backend_requested", r.backend_requested},
      {"backend_actual", r.backend_actual},
      {"device", r.device},
      {"dtype", r.dtype},
      {"shape", r.shape},
      {"fallback", r.fallback},
      {"launches", r.launches},
      {"rows", r.rows},
  };
  return j.dump();  // keys ascend: std::map order
}

std::vector<SealedRecord> seal_records(const std::vector<Record>& lines) {
  std::vector<SealedRecord> out;
  std::string link(64, '0');
  for (const auto& r : lines) {
    link = sha256_hex(link + "\n" + record_line(r));
    out.push_back({r, link});
  }
  return out;
}

std::vector<SealedRecord> Records::seal() const { return seal_records(lines_); }

}  // namespace sb
