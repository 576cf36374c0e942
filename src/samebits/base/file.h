// Files: read-only maps, and outputs that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "samebits/base/result.h"

namespace sb {

// A read-only memory map of a whole file.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& o) noexcept { *this = std::move(o); }
  MappedFile& operator=(MappedFile&& o) noexcept;
  ~MappedFile();
  const unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

// Writes to PATH.tmp.PID.N and renames at commit(); dropped without commit it leaves nothing
// behind. Pipes and devices (/dev/null) are written as they are; a symbolic link stays one.
class OutputFile {
 public:
  // An existing PATH is refused (kUsage) unless `force`. "-" is standard output.
  static Result<OutputFile> create(const std::string& path, bool force);
  OutputFile(OutputFile&& o) noexcept { *this = std::move(o); }
  OutputFile& operator=(OutputFile&& o) noexcept;
  ~OutputFile();
  Status write(const void* data, size_t bytes);
  Status write(std::string_view s) { return write(s.data(), s.size()); }
  Status commit();

 private:
  OutputFile() = default;
  void drop();
  std::string path_, temp_;
  std::FILE* file_ = nullptr;
  bool force_ = false;
};

// Whole file as text.
Result<std::string> read_text(const std::string& path);

}  // namespace sb
