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

}  // namespace

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
    if (!S_ISREG(st.st_mode)) {  // never rename over a device or a pipe
      out.file_ = std::fopen(path.c_str(), "wbe");
      if (!out.file_) return io_error(Code::kEnvironment, "write", path);
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
    out.file_ = std::fopen(out.temp_.c_str(), "wbxe");
  } while (!out.file_ && errno == EEXIST);
  if (!out.file_) {
    auto error = io_error(Code::kEnvironment, "create", out.temp_);
    out.temp_.clear();
    return error;
  }
  return out;
}

OutputFile& OutputFile::operator=(OutputFile&& o) noexcept {
  if (this != &o) {
    drop();
    path_ = std::move(o.path_);
    temp_ = std::move(o.temp_);
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
}

Status OutputFile::write(const void* data, size_t bytes) {
  if (bytes && std::fwrite(data, 1, bytes, file_) != bytes) {
    return io_error(Code::kEnvironment, "write", path_);
  }
  return {};
}

Status OutputFile::commit() {
  SB_ASSERT(file_, "commit of an output that is closed");
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
    return io_error(errno == EEXIST ? Code::kUsage : Code::kEnvironment, "write", path_);
  }
  temp_.clear();
  return {};
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") {
    std::string out;
    char buf[1 << 16];
    size_t n;
    while ((n = std::fread(buf, 1, sizeof buf, stdin)) > 0) out.append(buf, n);
    if (std::ferror(stdin)) return io_error(Code::kEnvironment, "read", "standard input");
    return out;
  }
  SB_TRY(map, MappedFile::open(path));
  return std::string(map.text());
}

}  // namespace sb
