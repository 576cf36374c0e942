// The record gate: a run passes only if its records say that every operator of every layer ran the
// contract it claims, on the backend that was asked for, without fallback. It reads records alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/model/architecture.h"
#include "samebits/ops/records.h"

namespace sb {

struct RecordExpectation {
  std::string profile, backend = "cpu";
  int tp = 1;            // ranks; records are rank 0's
  bool paged = false;    // keys were written to a cache
  bool sampled = false;  // tokens were drawn
};

// kEqual, or kDrift with the first field that is not as it must be: a missing or unknown operator,
// another contract, digest or shape, an implementation that this build does not have, a fallback,
// counts that do not agree among layers.
Status check_records(const std::vector<Record>& records, const Architecture& arch,
                     const RecordExpectation& expect);

// As check_records, after proving the chain: a broken link is kBrokenData.
Status check_sealed(const std::vector<SealedRecord>& records, const Architecture& arch,
                    const RecordExpectation& expect);

// The records in an OUT.run.json, checked as check_sealed does against this profile and backend;
// the file's own schedule, command and tp say which operators must have run. Returns their number.
Result<size_t> check_run_file(const std::string& path, const Architecture& arch,
                              const std::string& profile, const std::string& backend);

nlohmann::ordered_json sealed_json(const SealedRecord& r);
// Records of an OUT.run.json; strict.
Result<std::vector<SealedRecord>> read_run_records(const std::string& path);

}  // namespace sb
