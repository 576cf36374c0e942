// The fuzz harnesses: each gives one reader any bytes at all and checks what the reader promises.
// A reader refuses with kRefused or kBrokenData and a message that names the file, or it accepts,
// and then what it accepted has the properties that the rest of the program relies on and, where
// the program can write the format, comes back equal after writing.
//
// The same functions run under libFuzzer (preset `fuzz`, libfuzzer.cc) and over the committed
// corpora in every build (replay_test.cc). A property that does not hold aborts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/result.h"

namespace sb::fuzz {

// Readers of …
void safetensors(std::string_view bytes);  // one file, or an index and its shards
void config(std::string_view bytes);       // config.json and the JSON files beside it
void token_rows(std::string_view bytes);   // token rows, rollout logs, prompts
void score_file(std::string_view bytes);   // score/1
void trace_file(std::string_view bytes);   // trace/1
void mma_golden(std::string_view bytes);   // recorded matrix steps

struct Harness {
  const char* name;
  void (*run)(std::string_view bytes);
};
inline constexpr Harness kHarnesses[] = {{"safetensors", safetensors}, {"config", config},
                                         {"token_rows", token_rows},   {"score_file", score_file},
                                         {"trace_file", trace_file},   {"mma_golden", mma_golden}};

[[noreturn]] void fail(const char* file, int line, const std::string& what);

// A refusal of broken input: code, reasons, the name of the file, and text that is safe to print.
void check_refusal(const Refusal& refusal, std::string_view where);

// Whether the reader accepted; a refusal is checked.
template <class T>
bool accepted(const Result<T>& result, std::string_view where) {
  if (!result) check_refusal(result.error(), where);
  return result.has_value();
}

// An input that stands for several files: parts between lines of "%%%%". They are one checkpoint
// for safetensors and config, and otherwise one file after the other.
std::vector<std::string_view> parts_of(std::string_view bytes);

// A path inside this process's scratch folder (in memory where the system has /dev/shm).
std::string scratch(const std::string& name);
void write_scratch(const std::string& name, std::string_view bytes);

}  // namespace sb::fuzz

#define FUZZ_CHECK(condition, what) \
  ((condition) ? void(0) : ::sb::fuzz::fail(__FILE__, __LINE__, what))
