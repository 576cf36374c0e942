#include "fuzz/harness.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "samebits/base/utf8.h"

namespace sb::fuzz {
namespace {

// Made on first use and removed when the process ends.
struct ScratchFolder {
  std::string path;
  ScratchFolder() {
    namespace fs = std::filesystem;
    const fs::path base = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    path = (base / ("samebits_fuzz_" + std::to_string(getpid()))).string();
    fs::create_directories(path);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: a property does not hold: %s\n", file, line, what.c_str());
  std::abort();
}

void check_refusal(const Refusal& r, std::string_view where) {
  FUZZ_CHECK(r.code == Code::kRefused || r.code == Code::kBrokenData, "code of " + r.text());
  FUZZ_CHECK(!r.asked.empty() && !r.reasons.empty(), "a refusal says what and why");
  const std::string text = r.text();
  FUZZ_CHECK(text.find(where) != std::string::npos, "the file is named in " + text);
  std::vector<std::string> lines = r.reasons;
  for (const std::string& reason : lines) FUZZ_CHECK(!reason.empty(), "a reason is not empty");
  lines.push_back(r.asked);
  lines.push_back(r.remedy);
  for (const std::string& line : lines) {
    FUZZ_CHECK(printable(line) == line, "a message is printable: " + printable(line));
  }
}

std::vector<std::string_view> parts_of(std::string_view bytes) {
  constexpr std::string_view kBetween = "\n%%%%\n";
  std::vector<std::string_view> parts;
  for (size_t end; (end = bytes.find(kBetween)) != std::string_view::npos;) {
    parts.push_back(bytes.substr(0, end));
    bytes.remove_prefix(end + kBetween.size());
  }
  parts.push_back(bytes);
  return parts;
}

std::string scratch(const std::string& name) {
  static const ScratchFolder folder;
  return folder.path + "/" + name;
}

void write_scratch(const std::string& name, std::string_view bytes) {
  std::FILE* file = std::fopen(scratch(name).c_str(), "wb");
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (!file || std::fclose(file) != 0 || !written) fail(__FILE__, __LINE__, "scratch is full");
}

}  // namespace sb::fuzz
