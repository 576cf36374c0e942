#include "samebits/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace sb {
namespace {

tl::unexpected<Refusal> io_error(Code code, const std::string& what, const std::string& path) {
  return refuse(code, what + " " + path, std::strerror(errno));
}

// Without `force` an existing target is EEXIST, so two writers of one path cannot both win.
int move_into_place(const char* temp, const char* path, bool force) {
  if (force) return std::rename(temp, path);
  if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // A file system without that flag: link() refuses an existing target too.
  if (link(temp, path) != 0) return -1;
  return unlink(temp);
}

// The temporary files that exist now, for a signal handler: paths that it may read and unlink
// without a lock. A file beyond the last slot is written all the same and just not listed.
constexpr int kMaxTemporaries = 64;
constinit std::atomic<char*> g_temporaries[kMaxTemporaries] = {};
static_assert(std::atomic<char*>::is_always_lock_free);

int list_temporary(const std::string& path) {
  char* copy = strdup(path.c_str());
  for (int i = 0; copy && i < kMaxTemporaries; ++i) {
    char* none = nullptr;
    if (g_temporaries[i].compare_exchange_strong(none, copy)) return i;
  }
  std::free(copy);
  return -1;
}

void unlist_temporary(int slot) {
  // Whoever takes the pointer out owns it; a handler that was first ends the process.
  if (slot >= 0) std::free(g_temporaries[slot].exchange(nullptr));
}

// The message names the path that was asked for, never the temporary file beside it.
tl::unexpected<Refusal> cannot_create(const std::string& path) {
  auto error = io_error(Code::kEnvironment, "write", path);
  if (errno == ENOENT || errno == ENOTDIR) {
    const size_t slash = path.rfind('/');
    error.value().reasons = {"there is no folder " + (slash == std::string::npos
                                                          ? std::string(".")
                                                          : path.substr(0, slash))};
    error.value().remedy = "make the folder first";
  }
  return error;
}

// Pipes and character devices, which are never renamed over.
Result<std::FILE*> open_stream(const std::string& path, mode_t mode) {
  if (!S_ISCHR(mode) && !S_ISFIFO(mode)) {
    return refuse(Code::kUsage, "write " + path,
                  S_ISSOCK(mode) ? "it is a socket" : "it is a disk, not a file",
                  "the name of a file");
  }
  // Without O_NONBLOCK the open of a pipe waits for a reader, for ever if none comes.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && errno == ENXIO && S_ISFIFO(mode)) {
    return refuse(Code::kEnvironment, "write " + path, "it is a pipe that nobody reads",
                  "start its reader first");
  }
  if (fd < 0) return io_error(Code::kEnvironment, "write", path);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  std::FILE* file = fdopen(fd, "wb");
  if (!file) {
    auto error = io_error(Code::kEnvironment, "write", path);
    ::close(fd);
    return error;
  }
  return file;
}

}  // namespace

void remove_temporary_files() {
  for (auto& slot : g_temporaries) {
    if (const char* path = slot.exchange(nullptr)) unlink(path);
  }
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return io_error(errno == ENOENT || errno == ENOTDIR ? Code::kUsage : Code::kEnvironment, "read",
                    path);
  struct stat st{};
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return refuse(Code::kUsage, "read " + path, "it is not a regular file");
  }
  MappedFile out;
  out.size_ = static_cast<size_t>(st.st_size);
  if (out.size_ > 0) {
    void* p = mmap(nullptr, out.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
      ::close(fd);
      return io_error(Code::kEnvironment, "map", path);
    }
    out.data_ = static_cast<const unsigned char*>(p);
  }
  ::close(fd);
  return out;
}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<unsigned char*>(data_), size_);
}

Result<OutputFile> OutputFile::create(const std::string& path, bool force) {
  OutputFile out;
  out.path_ = path;
  out.force_ = force;
  if (path == "-") {
    out.file_ = stdout;
    return out;
  }
  struct stat st{};
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return refuse(Code::kUsage, "write " + path, "it is a folder");
    if (!S_ISREG(st.st_mode)) {
      SB_TRY(stream, open_stream(path, st.st_mode));
      out.file_ = stream;
      return out;
    }
    if (!force) {
      return refuse(Code::kUsage, "write " + path, "it exists already",
                    "another --out, or --force to replace it");
    }
    if (char* real = realpath(path.c_str(), nullptr)) {
      out.path_ = real;
      std::free(real);
    }
  }
  // A fresh name each time: two outputs of one path must not write into one temporary file.
  static std::atomic<unsigned> count{0};
  do {
    out.temp_ = out.path_ + ".tmp." + std::to_string(getpid()) + "." + std::to_string(count++);
    unlist_temporary(std::exchange(out.slot_, -1));
    // Listed before it exists: a signal between the two lines must find it.
    out.slot_ = list_temporary(out.temp_);
    out.file_ = std::fopen(out.temp_.c_str(), "wbxe");
  } while (!out.file_ && errno == EEXIST);
  if (!out.file_) {
    const int why = errno;
    unlist_temporary(std::exchange(out.slot_, -1));
    out.temp_.clear();
    errno = why;
    return cannot_create(path);
  }
  return out;
}

OutputFile& OutputFile::operator=(OutputFile&& o) noexcept {
  if (this != &o) {
    drop();
    path_ = std::move(o.path_);
    temp_ = std::move(o.temp_);
    held_ = std::move(o.held_);
    slot_ = std::exchange(o.slot_, -1);
    file_ = std::exchange(o.file_, nullptr);
    force_ = o.force_;
    o.temp_.clear();
  }
  return *this;
}

OutputFile::~OutputFile() { drop(); }

void OutputFile::drop() {
  if (file_ && file_ != stdout) std::fclose(file_);
  file_ = nullptr;
  if (!temp_.empty()) unlink(temp_.c_str());
  temp_.clear();
  unlist_temporary(std::exchange(slot_, -1));
}

Status OutputFile::write(const void* data, size_t bytes) {
  if (temp_.empty()) {
    held_.append(static_cast<const char*>(data), bytes);
    return {};
  }
  if (bytes && std::fwrite(data, 1, bytes, file_) != bytes) {
    return io_error(Code::kEnvironment, "write", path_);
  }
  return {};
}

Status OutputFile::commit() {
  SB_ASSERT(file_, "commit of an output that is closed");
  if (!held_.empty() && std::fwrite(held_.data(), 1, held_.size(), file_) != held_.size()) {
    return io_error(Code::kEnvironment, "write", path_);
  }
  held_.clear();
  if (std::fflush(file_) != 0) return io_error(Code::kEnvironment, "write", path_);
  if (file_ == stdout) return {};
  if (!temp_.empty() && fsync(fileno(file_)) != 0) {
    return io_error(Code::kEnvironment, "write", path_);
  }
  if (std::fclose(std::exchange(file_, nullptr)) != 0) {
    return io_error(Code::kEnvironment, "write", path_);
  }
  if (temp_.empty()) return {};
  if (move_into_place(temp_.c_str(), path_.c_str(), force_) != 0) {
    if (errno != EEXIST) return io_error(Code::kEnvironment, "write", path_);
    return refuse(Code::kUsage, "write " + path_,
                  "it did not exist at the start; another process wrote it since, and was first",
                  "compare the two runs under two names, or --force to replace it");
  }
  temp_.clear();
  unlist_temporary(std::exchange(slot_, -1));
  return {};
}

Result<ScratchFile> ScratchFile::create(const std::string& beside, size_t bytes) {
  ScratchFile out;
  if (bytes == 0) return out;
  std::string path = beside + ".tmp.XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return io_error(Code::kEnvironment, "create", path);
  unlink(path.c_str());
  // Not ftruncate: a hole without disk space behind it is a SIGBUS when it is written.
  errno = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* p = MAP_FAILED;
  if (errno == 0) p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) {
    auto error = io_error(Code::kEnvironment,
                          "reserve " + std::to_string(bytes) + " bytes of disk beside", beside);
    ::close(fd);
    return error;
  }
  ::close(fd);
  out.data_ = static_cast<std::byte*>(p);
  out.size_ = bytes;
  return out;
}

ScratchFile& ScratchFile::operator=(ScratchFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

ScratchFile::~ScratchFile() {
  if (data_) munmap(data_, size_);
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") {
    std::string out;
    char buf[1 << 16];
    size_t n;
    while ((n = std::fread(buf, 1, sizeof buf, stdin)) > 0) {
      out.append(buf, n);
      if (out.size() > kMaxStandardInput) {
        return refuse(Code::kRefused, "read standard input",
                      "it holds more than " + std::to_string(kMaxStandardInput) + " bytes",
                      "a file: those are mapped, not copied");
      }
    }
    if (std::ferror(stdin)) return io_error(Code::kEnvironment, "read", "standard input");
    return out;
  }
  SB_TRY(map, MappedFile::open(path));
  return std::string(map.text());
}

}  // namespace sb
