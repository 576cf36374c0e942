#include "samebits/base/result.h"

#include <cstdio>
#include <cstdlib>

#include "samebits/base/utf8.h"

namespace sb {

const char* code_name(Code code) {
  switch (code) {
    case Code::kEqual: return "equal";
    case Code::kDrift: return "numeric drift";
    case Code::kNotComparable: return "not comparable";
    case Code::kWeightsDiffer: return "weights differ";
    case Code::kSemanticsDiffer: return "semantics differ";
    case Code::kRefused: return "refused";
    case Code::kBrokenData: return "broken data";
    case Code::kEnvironment: return "environment";
    case Code::kUsage: return "usage";
    case Code::kInterrupted: return "interrupted";
  }
  return "unknown";
}

std::string Refusal::text() const {
  std::string out = std::string(code_name(code)) + ": " + asked;
  for (const auto& reason : reasons) out += "\n  why:   " + reason;
  if (!remedy.empty()) out += "\n  try:   " + remedy;
  return out;
}

tl::unexpected<Refusal> refuse(Code code, std::string asked, std::string reason,
                               std::string remedy) {
  // Names out of files and arguments stand in these texts.
  for (std::string* text : {&asked, &reason, &remedy}) *text = printable(*text);
  return tl::unexpected<Refusal>(
      Refusal{code, std::move(asked), {std::move(reason)}, std::move(remedy)});
}

void assert_failed(const char* expr, const char* file, int line, const char* what) {
  std::fprintf(stderr, "samebits bug: %s\n  %s failed at %s:%d\n", what, expr, file, line);
  std::abort();
}

}  // namespace sb
