// Safetensors, read strictly. A checkpoint folder holds model.safetensors, or an index
// (model.safetensors.index.json) and the shards it names; only those are opened. Both at once is
// refused: tools disagree on which one counts.
//
// Policy, each with a message of its own (kBrokenData): a header longer than the file or 100 MB;
// JSON that is malformed or names a tensor twice; unknown dtypes; a byte range that is not
// shape × dtype; ranges that overlap; holes between ranges; bytes after the last tensor; a file
// shorter than its header says (with the tensors hit and the missing bytes); a shard the index
// names that is not there; a tensor in two shards or in another shard than the index says; shard
// names that leave the folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/file.h"

namespace sb {

struct SafeTensor {
  std::string name, dtype;  // dtype as the format spells it: BF16, F32, …
  std::vector<int64_t> shape;
  int64_t offset = 0, bytes = 0;  // from the start of the file
  int file = 0;                   // index into Checkpoint::files
};

// Tensors of one file's bytes, by offset.
Result<std::vector<SafeTensor>> parse_safetensors(std::string_view file, const std::string& where);

class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::string& dir);
  const std::vector<SafeTensor>& tensors() const { return tensors_; }  // sorted by name
  const SafeTensor* find(const std::string& name) const;
  const unsigned char* data(const SafeTensor& t) const { return files_[t.file].data() + t.offset; }
  const std::vector<std::string>& files() const { return names_; }  // inside the folder

 private:
  std::vector<std::string> names_;
  std::vector<MappedFile> files_;
  std::vector<SafeTensor> tensors_;
};

// Bytes an element, 0 for a dtype the format does not have.
int64_t safetensors_dtype_bytes(std::string_view dtype);

bool path_exists(const std::string& path);

// Writes one file as a stream: the header first, then every tensor's bytes in the order given.
class SafetensorsWriter {
 public:
  struct Entry {
    std::string name, dtype;
    std::vector<int64_t> shape;
  };
  static Result<SafetensorsWriter> create(const std::string& path,
                                          const std::vector<Entry>& entries, bool force);
  Status write(const void* data, size_t bytes) {
    written_ += static_cast<int64_t>(bytes);
    return file_.write(data, bytes);
  }
  Status commit();  // asserts that all bytes came

 private:
  SafetensorsWriter(OutputFile file, int64_t expected)
      : file_(std::move(file)), expected_(expected) {}
  OutputFile file_;
  int64_t expected_ = 0, written_ = 0;
};

}  // namespace sb
