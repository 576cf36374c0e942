// Files: read-only maps, and outputs that appear whole or not at all, scratch memory on disk.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
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
// behind, and neither does a process that a signal ends (remove_temporary_files). A symbolic link
// stays one. Standard output, pipes and character devices (/dev/null) get their bytes at commit()
// alone: what is refused late has written nothing there either.
class OutputFile {
 public:
  // An existing PATH is refused (kUsage) unless `force`. "-" is standard output. A pipe that nobody
  // reads is refused at once; block devices and sockets always.
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
  std::string held_;  // bytes for a target that has no temporary file
  std::FILE* file_ = nullptr;
  bool force_ = false;
  int slot_ = -1;  // where temp_ is listed for remove_temporary_files
};

// Deletes the temporary files of this process. Async-signal-safe: for handlers of fatal signals.
void remove_temporary_files();

// Memory on disk: `bytes` zeros backed by a file without a name in the folder of `beside`. Its
// space is reserved at once, so that writing to it later cannot fail, and memory holds only the
// pages in use.
class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::string& beside, size_t bytes);
  ScratchFile() = default;
  ScratchFile(ScratchFile&& o) noexcept { *this = std::move(o); }
  ScratchFile& operator=(ScratchFile&& o) noexcept;
  ~ScratchFile();
  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Whole file as text; "-" is standard input, which may hold at most kMaxStandardInput bytes.
Result<std::string> read_text(const std::string& path);
inline constexpr size_t kMaxStandardInput = size_t{1} << 30;

}  // namespace sb
