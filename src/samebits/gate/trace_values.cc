#include "samebits/gate/trace_values.h"

#include <fnmatch.h>

#include "samebits/chain/trace_taps.h"

namespace sb {

Result<std::vector<Boundary>> match_boundaries(const Architecture& arch,
                                               const std::vector<std::string>& patterns) {
  const std::vector<Boundary> all = all_boundaries(arch, /*with_acc=*/true);
  std::vector<uint8_t> chosen(all.size(), 0);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (fnmatch(pattern.c_str(), boundary_name(all[i]).c_str(), 0) != 0) continue;
      any = true;
      chosen[i] = 1;
    }
    if (!any) {
      return refuse(Code::kUsage, "keep the values of \"" + pattern + "\"",
                    "this model has no such boundary", "samebits help boundaries lists them");
    }
  }
  std::vector<Boundary> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (chosen[i]) out.push_back(all[i]);
  }
  return out;
}

Result<TraceValueStore> make_value_store(const Architecture& arch,
                                         const std::vector<Sequence>& sequences,
                                         const std::vector<std::string>& patterns,
                                         const std::string& trace) {
  SB_TRY(boundaries, match_boundaries(arch, patterns));
  int64_t rows = 0, scored = 0;
  for (const Sequence& s : sequences) {
    rows += s.size();
    scored += s.num_scored();
  }
  const auto bytes_of = [&](Boundary b) {
    return (is_per_scored_row(b.tap) ? scored : rows) * value_row_bytes(arch, b);
  };
  TraceValueStore store;
  for (const Boundary b : boundaries) store.bytes += bytes_of(b);
  SB_TRY(scratch, ScratchFile::create(trace, static_cast<size_t>(store.bytes)));
  store.scratch = std::move(scratch);
  size_t at = 0;
  for (const Boundary b : boundaries) {
    const size_t bytes = static_cast<size_t>(bytes_of(b));
    store.values.push_back({b, store.scratch.bytes().subspan(at, bytes)});
    at += bytes;
  }
  return store;
}

}  // namespace sb
