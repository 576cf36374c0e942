// One safetensors file; or, with parts, a checkpoint folder: index, a.safetensors, b.safetensors,
// model.safetensors. An empty part is a file that is not there.
#include "samebits/model/safetensors.h"

#include <cstring>
#include <filesystem>
#include <map>

#include "fuzz/harness.h"

namespace sb::fuzz {
namespace {

void check_tensor(const SafeTensor& t, uint64_t file_bytes) {
  int64_t bytes = safetensors_dtype_bytes(t.dtype);
  FUZZ_CHECK(bytes > 0, "the dtype is known");
  for (const int64_t n : t.shape) bytes *= n;
  FUZZ_CHECK(bytes == t.bytes, "the range has the size of the shape");
  FUZZ_CHECK(t.offset >= 8 && t.bytes >= 0, "the range is behind the header's length");
  FUZZ_CHECK(static_cast<uint64_t>(t.offset) + static_cast<uint64_t>(t.bytes) <= file_bytes,
             "the range lies in the file");
}

// Tensors of one file tile its end, so no two overlap.
void check_tiling(const std::vector<SafeTensor>& tensors, uint64_t file_bytes) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafeTensor& t = tensors[i];
    check_tensor(t, file_bytes);
    const int64_t next =
        i + 1 < tensors.size() ? tensors[i + 1].offset : static_cast<int64_t>(file_bytes);
    FUZZ_CHECK(t.offset + t.bytes == next, "ranges follow each other to the end of the file");
  }
}

void check_rewrite(const std::vector<SafeTensor>& tensors, std::string_view bytes) {
  std::vector<SafetensorsWriter::Entry> entries;
  for (const SafeTensor& t : tensors) entries.push_back({t.name, t.dtype, t.shape});
  const std::string path = scratch("again.safetensors");
  {
    auto writer = SafetensorsWriter::create(path, entries, true);
    FUZZ_CHECK(writer, "the file can be written");
    for (const SafeTensor& t : tensors) {
      FUZZ_CHECK(writer->write(bytes.data() + t.offset, static_cast<size_t>(t.bytes)), "write");
    }
    FUZZ_CHECK(writer->commit(), "commit");
  }
  const auto text = read_text(path);
  const auto again = parse_safetensors(*text, path);
  FUZZ_CHECK(again, "what was written is read: " + (again ? "" : again.error().text()));
  FUZZ_CHECK(again->size() == tensors.size(), "as many tensors as were written");
  std::map<std::string, const SafeTensor*> by_name;
  for (const SafeTensor& t : *again) by_name[t.name] = &t;
  for (const SafeTensor& t : tensors) {
    const SafeTensor* a = by_name[t.name];
    FUZZ_CHECK(a && a->dtype == t.dtype && a->shape == t.shape && a->bytes == t.bytes,
               "name, dtype and shape come back");
    FUZZ_CHECK(std::memcmp(text->data() + a->offset, bytes.data() + t.offset,
                           static_cast<size_t>(t.bytes)) == 0,
               "bytes come back");
  }
}

void run_folder(const std::vector<std::string_view>& parts) {
  const char* const names[] = {"model.safetensors.index.json", "a.safetensors", "b.safetensors",
                               "model.safetensors"};
  std::map<std::string, std::string_view> files;
  for (size_t i = 0; i < std::size(names); ++i) {
    std::error_code ignored;
    std::filesystem::remove(scratch(names[i]), ignored);
    if (i >= parts.size() || parts[i].empty()) continue;
    write_scratch(names[i], parts[i]);
    files[names[i]] = parts[i];
  }
  if (!files.contains(names[0]) && !files.contains(names[3])) return;  // no checkpoint at all
  const std::string dir = scratch("");
  const auto checkpoint = Checkpoint::open(dir);
  if (!accepted(checkpoint, dir)) return;
  const SafeTensor* last = nullptr;
  for (const SafeTensor& t : checkpoint->tensors()) {
    FUZZ_CHECK(!last || last->name < t.name, "names are sorted and unique");
    const std::string_view file = files.at(checkpoint->files().at(static_cast<size_t>(t.file)));
    check_tensor(t, file.size());
    FUZZ_CHECK(
        std::memcmp(checkpoint->data(t), file.data() + t.offset, static_cast<size_t>(t.bytes)) == 0,
        "data() is the tensor's bytes");
    FUZZ_CHECK(checkpoint->find(t.name) == &t, "find() finds it");
    last = &t;
  }
}

}  // namespace

void safetensors(std::string_view bytes) {
  const auto parts = parts_of(bytes);
  if (parts.size() > 1) return run_folder(parts);
  const auto tensors = parse_safetensors(bytes, "in.safetensors");
  if (!accepted(tensors, "in.safetensors")) return;
  check_tiling(*tensors, bytes.size());
  check_rewrite(*tensors, bytes);
}

}  // namespace sb::fuzz
