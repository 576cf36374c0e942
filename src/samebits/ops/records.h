// Records: the provenance of a run, written by the operators that really ran. Launches that agree
// in every field are one line with counts, so a long decode stays small; sealing chains the lines
// by SHA-256. Gates read only records and digests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/contract/contract.h"
#include "samebits/model/architecture.h"

namespace sb {

struct Record {
  std::string op;    // "rmsnorm"
  std::string site;  // boundary it produces: "layers.3.attn.norm"
  int layer = -1;
  std::string layer_type;  // "sliding", "global", "" outside layers
  std::string contract;    // "rmsnorm.v1"
  std::string contract_digest;
  std::string implementation;  // "cpu.rmsnorm.row.v1"
  std::string schedule;        // how work is cut
  std::string split;           // split policy of the reduction
  std::string accumulator = "f32";
  std::string profile;
  std::string backend_requested, backend_actual;
  std::string device;     // "cpu:0"
  std::string dtype;      // of the output
  std::string shape;      // without the row count: "heads=16 D=256"
  bool fallback = false;  // always false, or the run is over
  int64_t launches = 0, rows = 0;
  friend bool operator==(const Record&, const Record&) = default;
};

struct SealedRecord {
  Record record;
  std::string chain;  // SHA-256 hex of the previous link and this line
};

class Records {
 public:
  // Adds one launch over `rows` rows; `r.launches` and `r.rows` are ignored. `key` identifies every
  // other field, so that the strings of a repeated launch are made only once.
  template <class Make>
  void add(uint64_t key, int64_t rows, Make make) {
    auto [it, fresh] = index_.try_emplace(key, lines_.size());
    if (fresh) lines_.push_back(make());
    lines_[it->second].launches += 1;
    lines_[it->second].rows += rows;
  }
  const std::vector<Record>& lines() const { return lines_; }
  std::vector<SealedRecord> seal() const;
  void clear() {
    index_.clear();
    lines_.clear();
  }

 private:
  std::map<uint64_t, size_t> index_;
  std::vector<Record> lines_;
};

// Canonical one-line JSON of a record, the text that is chained.
std::string record_line(const Record& r);
std::vector<SealedRecord> seal_records(const std::vector<Record>& lines);

}  // namespace sb
