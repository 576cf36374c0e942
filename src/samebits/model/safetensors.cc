#include "samebits/model/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/model/json_strict.h"

namespace sb {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

// The element count of a shape; nothing for a malformed or absurd one.
bool read_shape(const json& list, std::vector<int64_t>& shape, uint64_t& count) {
  if (!list.is_array() || list.size() > 8) return false;
  count = 1;
  for (const json& d : list) {
    if (!d.is_number_unsigned()) return false;
    const uint64_t n = d.get<uint64_t>();
    if (n > kMaxBytes || (n != 0 && count > kMaxBytes / n)) return false;
    count *= n;
    shape.push_back(static_cast<int64_t>(n));
  }
  return true;
}

Result<SafeTensor> read_entry(const std::string& name, const json& entry, uint64_t base,
                              const std::string& asked) {
  auto bad = [&](const std::string& why) {
    return refuse(Code::kBrokenData, asked, "tensor " + name + ": " + why);
  };
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    return bad("its entry must hold dtype, shape and data_offsets and nothing else");
  }
  SafeTensor t;
  t.name = name;
  if (entry["dtype"].is_string()) t.dtype = entry["dtype"].get<std::string>();
  const int64_t width = safetensors_dtype_bytes(t.dtype);
  if (width == 0) return bad("dtype " + entry["dtype"].dump() + " is not in the format");
  uint64_t count = 0;
  if (!read_shape(entry["shape"], t.shape, count) || count > kMaxBytes / width) {
    return bad("shape " + entry["shape"].dump() + " is malformed or beyond 2^62 bytes");
  }
  const json& range = entry["data_offsets"];
  if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() ||
      !range[1].is_number_unsigned()) {
    return bad("data_offsets " + range.dump() + " is not a pair of byte positions");
  }
  const uint64_t begin = range[0].get<uint64_t>(), end = range[1].get<uint64_t>();
  if (begin > end || end > kMaxBytes) {
    return bad("data_offsets " + range.dump() + " is not an ascending range below 2^62");
  }
  if (end - begin != count * width) {
    return bad("data_offsets span " + std::to_string(end - begin) +
               " bytes, shape and dtype need " + std::to_string(count * width));
  }
  t.offset = static_cast<int64_t>(base + begin);
  t.bytes = static_cast<int64_t>(end - begin);
  return t;
}

// Ranges must tile the data area, which must end where the file does.
Status check_layout(const std::vector<SafeTensor>& tensors, uint64_t base, uint64_t size,
                    const std::string& asked) {
  int64_t at = static_cast<int64_t>(base);
  std::string last = "the header";
  std::vector<std::string> cut;
  for (const SafeTensor& t : tensors) {
    if (t.offset < at) {
      return refuse(Code::kBrokenData, asked,
                    "tensors " + last + " and " + t.name + " overlap by " +
                        std::to_string(at - t.offset) + " bytes");
    }
    if (t.offset > at) {
      return refuse(Code::kBrokenData, asked,
                    "a hole of " + std::to_string(t.offset - at) +
                        " bytes that no tensor owns lies "
                        "between " +
                        last + " and " + t.name);
    }
    at = t.offset + t.bytes;
    last = t.name;
    if (static_cast<uint64_t>(at) > size) cut.push_back(t.name);
  }
  if (static_cast<uint64_t>(at) < size) {
    return refuse(Code::kBrokenData, asked,
                  std::to_string(size - at) +
                      " trailing bytes follow the last tensor; some parsers "
                      "accept them, the format does not",
                  "write the file again, or cut it to " + std::to_string(at) + " bytes");
  }
  if (!cut.empty()) {
    std::string names;
    for (size_t i = 0; i < cut.size() && i < 8; ++i) names += (i ? ", " : "") + cut[i];
    if (cut.size() > 8) names += ", …";
    return refuse(Code::kBrokenData, asked,
                  "the file is truncated: it lacks " +
                      std::to_string(at - static_cast<int64_t>(size)) + " of the " +
                      std::to_string(at) + " bytes its header promises, which cuts " +
                      std::to_string(cut.size()) + " tensors: " + names,
                  "download or copy it again");
  }
  return {};
}

}  // namespace

int64_t safetensors_dtype_bytes(std::string_view dtype) {
  if (dtype == "BOOL" || dtype == "U8" || dtype == "I8" || dtype == "F8_E4M3" ||
      dtype == "F8_E5M2" || dtype == "F8_E8M0") {
    return 1;
  }
  if (dtype == "BF16" || dtype == "F16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  return 0;
}

bool path_exists(const std::string& path) {
  struct stat st{};
  return stat(path.c_str(), &st) == 0;
}

Result<std::vector<SafeTensor>> parse_safetensors(std::string_view file, const std::string& where) {
  const std::string asked = "read " + where + " as safetensors";
  if (file.size() < 8) {
    return refuse(Code::kBrokenData, asked,
                  "it has " + std::to_string(file.size()) + " bytes, too few for a header length");
  }
  uint64_t length = 0;  // little endian
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(file[i]);
  if (length > kMaxHeader) {
    return refuse(Code::kBrokenData, asked,
                  "the header claims " + std::to_string(length) + " bytes; the format's limit is " +
                      std::to_string(kMaxHeader));
  }
  if (length > file.size() - 8) {
    return refuse(Code::kBrokenData, asked,
                  "the file is truncated inside its header: " + std::to_string(length) +
                      " bytes are claimed, " + std::to_string(file.size() - 8) + " are there",
                  "download or copy it again");
  }
  const std::string_view text = file.substr(8, length);
  if (!text.starts_with("{")) {
    return refuse(Code::kBrokenData, asked, "the header does not start with {");
  }
  SB_TRY(header, parse_json_strict(text, "the header of " + where));
  const uint64_t base = 8 + length;
  std::vector<SafeTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      bool strings = entry.is_object();
      for (const auto& item : entry.items()) strings = strings && item.value().is_string();
      if (!strings) return refuse(Code::kBrokenData, asked, "__metadata__ must map text to text");
      continue;
    }
    SB_TRY(t, read_entry(name, entry, base, asked));
    tensors.push_back(std::move(t));
  }
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::pair(a.offset, a.offset + a.bytes) < std::pair(b.offset, b.offset + b.bytes);
  });
  SB_DO(check_layout(tensors, base, file.size(), asked));
  return tensors;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<Entry>& entries, bool force) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t at = 0;
  for (const Entry& e : entries) {
    int64_t bytes = safetensors_dtype_bytes(e.dtype);
    SB_ASSERT(bytes > 0, "a dtype that safetensors does not have");
    for (int64_t s : e.shape) bytes *= s;
    header[e.name] = {{"dtype", e.dtype}, {"shape", e.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  // Spaces after the JSON put the data on a 64-byte boundary of the file.
  text.resize(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()) + 8, 64) - 8), ' ');
  SB_TRY(file, OutputFile::create(path, force));
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  SB_DO(file.write(length, 8));
  SB_DO(file.write(text));
  return SafetensorsWriter(std::move(file), at);
}

Status SafetensorsWriter::commit() {
  SB_ASSERT(written_ == expected_, "a safetensors file got other bytes than its header says");
  return file_.commit();
}

}  // namespace sb
