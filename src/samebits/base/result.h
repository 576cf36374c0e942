// Errors as values. A Refusal says what was asked, why it cannot be done and what would work; its
// code is the program's exit code. Our own bugs use SB_ASSERT and abort.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace sb {

enum class Code : int {
  kEqual = 0,
  kDrift = 1,          // numeric drift, localised
  kNotComparable = 2,  // inputs cannot be compared
  kWeightsDiffer = 3,
  kSemanticsDiffer = 4,  // temperature, suppressed ids, …
  kRefused = 5,          // asked for something no contract covers
  kBrokenData = 6,
  kEnvironment = 7,  // disk, memory, device
  kUsage = 64,
  kInterrupted = 130,
};

const char* code_name(Code code);

struct Refusal {
  Code code = Code::kRefused;
  std::string asked;                 // what was asked for
  std::vector<std::string> reasons;  // why not; one line each
  std::string remedy;                // what would work; may be empty
  std::string text() const;          // the message shown to a person
};

template <class T>
using Result = tl::expected<T, Refusal>;
using Status = Result<void>;

[[nodiscard]] tl::unexpected<Refusal> refuse(Code code, std::string asked, std::string reason,
                                             std::string remedy = {});

[[noreturn]] void assert_failed(const char* expr, const char* file, int line, const char* what);

}  // namespace sb

// Declares `var` from a Result expression, or returns its Refusal.
#define SB_TRY(var, ...)                                                     \
  auto var##_result = (__VA_ARGS__);                                         \
  if (!var##_result) return tl::unexpected(std::move(var##_result).error()); \
  auto var = std::move(*var##_result)

// Runs a Status expression, or returns its Refusal.
#define SB_DO(...)                                                       \
  do {                                                                   \
    auto sb_status = (__VA_ARGS__);                                      \
    if (!sb_status) return tl::unexpected(std::move(sb_status).error()); \
  } while (0)

// Always on: a failed assertion is a bug in samebits, never a bad input.
#define SB_ASSERT(cond, what) \
  ((cond) ? void(0) : ::sb::assert_failed(#cond, __FILE__, __LINE__, what))
