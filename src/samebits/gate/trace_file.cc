#include "samebits/gate/trace_file.h"

#include <bit>
#include <cstring>

#include "samebits/base/digest.h"
#include "samebits/gate/header_json.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/json_line.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

static_assert(std::endian::native == std::endian::little, "trace files are mapped as they are");
static_assert(sizeof(TraceRow) == 8 && alignof(TraceRow) == 4);

using Kind = JsonValue::Kind;
constexpr std::string_view kMagicStem = "samebits trace/";
constexpr std::string_view kTrailerStem = "sha256 ";
constexpr size_t kTrailerBytes = 7 + 64 + 1;
constexpr int kMaxLayer = 4095;  // keeps causal order numbers far inside int
constexpr int64_t kMaxRows = INT32_MAX;

tl::unexpected<Refusal> bad(const std::string& where, std::string what, std::string remedy = {}) {
  return refuse(Code::kBrokenData, "use trace " + where, std::move(what), std::move(remedy));
}

int64_t rows_of(const TraceView& view, const TraceColumnView& column) {
  return static_cast<int64_t>(column.scored ? view.scored.size() : view.rows.size());
}

// ---- writing ----

// Hashes what it writes.
class SealedOutput {
 public:
  explicit SealedOutput(OutputFile out) : out_(std::move(out)) {}
  Status write(const void* data, size_t bytes) {
    sha_.update(data, bytes);
    bytes_ += bytes;
    return out_.write(data, bytes);
  }
  Status pad() {
    constexpr char kZeros[8] = {};
    return write(kZeros, (8 - bytes_ % 8) % 8);
  }
  Status seal() {
    SB_DO(out_.write(std::string(kTrailerStem) + sha_.hex() + "\n"));
    return out_.commit();
  }

 private:
  OutputFile out_;
  Sha256 sha_;
  size_t bytes_ = 0;
};

std::string string_array(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const auto& text : texts) (out += out.size() > 1 ? "," : "") += json_string(text);
  return out + "]";
}

std::string manifest_line(const TraceView& view) {
  std::string out = "{\"samebits\":\"trace/1\"," + header_members(view.header);
  out += ",\"ids\":" + string_array(view.ids) + ",\"tokens\":" + string_array(view.tokens);
  out += ",\"rows\":" + std::to_string(view.rows.size());
  out += ",\"scored\":" + std::to_string(view.scored.size()) + ",\"columns\":[";
  for (size_t i = 0; i < view.columns.size(); ++i) {
    const TraceColumnView& c = view.columns[i];
    out += (i ? ",{\"name\":" : "{\"name\":") + json_string(boundary_name(c.boundary));
    out += ",\"dtype\":" + json_string(c.dtype) + ",\"width\":" + std::to_string(c.width);
    out += c.scored ? ",\"scored\":true" : ",\"scored\":false";
    out += c.values.empty() ? "}" : ",\"values\":true}";
  }
  out += "]}";
  while ((kTraceMagic.size() + out.size() + 1) % 8 != 0) out += ' ';
  return out + "\n";
}

// ---- reading ----

// Takes typed spans off the front of the payload; sizes are below 2^62, so sums cannot overflow.
class Payload {
 public:
  explicit Payload(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  bool take(int64_t count, std::span<const T>& out) {
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    const uint64_t padded = (bytes + 7) / 8 * 8;
    if (padded > rest_.size()) return false;
    out = {reinterpret_cast<const T*>(rest_.data()), static_cast<size_t>(count)};
    rest_.remove_prefix(padded);
    return true;
  }
  // rows · width elements of `bytes` each; false also where that is no size.
  bool take_values(int64_t rows, int64_t width, int64_t bytes, std::span<const std::byte>& out) {
    if (rows != 0 && width > static_cast<int64_t>(rest_.size()) / bytes / rows) return false;
    return take(rows * width * bytes, out);
  }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

std::string read_strings(const JsonValue& json, const char* key, std::vector<std::string>& out) {
  const JsonValue* v = json.find(key);
  if (!v || !v->is(Kind::kArray)) return std::string("the manifest lacks the list ") + key;
  for (const JsonValue& item : v->items) {
    if (!item.is(Kind::kString)) return std::string(key) + " holds " + value_text(item);
    out.push_back(item.text);
  }
  return {};
}

std::string read_count(const JsonValue& json, const char* key, int64_t limit, int64_t& out) {
  const JsonValue* v = json.find(key);
  if (!v || !v->is(Kind::kInt) || v->integer < 0 || v->integer > limit) {
    return std::string(key) + " = " + (v ? value_text(*v) : "nothing") + " is not in 0…" +
           std::to_string(limit);
  }
  out = v->integer;
  return {};
}

std::string read_column(const JsonValue& json, TraceColumnView& out, bool& values) {
  const JsonValue* name = json.find("name");
  if (!name || !name->is(Kind::kString)) return "a column has no name";
  const auto boundary = parse_boundary(name->text);
  if (!boundary || boundary_name(*boundary) != name->text || boundary->layer > kMaxLayer) {
    return "unknown boundary " + in_quotes(name->text);
  }
  out.boundary = *boundary;
  const JsonValue* dtype = json.find("dtype");
  if (!dtype || !dtype->is(Kind::kString)) return name->text + " has no dtype";
  out.dtype = dtype->text;
  const JsonValue* scored = json.find("scored");
  if (!scored || !scored->is(Kind::kBool)) return name->text + " does not say whether it is scored";
  out.scored = scored->integer != 0;
  const JsonValue* kept = json.find("values");
  if (kept && !kept->is(Kind::kBool)) return name->text + ": values = " + value_text(*kept);
  values = kept && kept->integer != 0;
  std::string error = read_count(json, "width", int64_t{1} << 40, out.width);
  return error.empty() ? error : name->text + ": " + error;
}

Status parse_manifest(const JsonValue& json, const std::string& where, TraceView& view,
                      int64_t& rows, int64_t& scored, std::vector<bool>& has_values) {
  const JsonValue* version = json.find("samebits");
  if (!version || !version->is(Kind::kString) || version->text != "trace/1") {
    return bad(where, "the manifest does not say trace/1");
  }
  auto header = header_from_json(json);
  if (!header) return bad(where, header.error());
  view.header = std::move(*header);
  std::string error = read_strings(json, "ids", view.ids);
  if (error.empty()) error = read_strings(json, "tokens", view.tokens);
  if (error.empty()) error = read_count(json, "rows", kMaxRows, rows);
  if (error.empty()) error = read_count(json, "scored", kMaxRows, scored);
  if (!error.empty()) return bad(where, error);
  const JsonValue* columns = json.find("columns");
  if (!columns || !columns->is(Kind::kArray)) return bad(where, "the manifest lacks its columns");
  for (const JsonValue& item : columns->items) {
    TraceColumnView column;
    bool values = false;
    if (error = read_column(item, column, values); !error.empty()) return bad(where, error);
    view.columns.push_back(std::move(column));
    has_values.push_back(values);
  }
  return {};
}

Status check_seal(std::string_view bytes, const std::string& where) {
  const std::string_view trailer = bytes.substr(bytes.size() - kTrailerBytes);
  if (!trailer.starts_with(kTrailerStem) || trailer.back() != '\n') {
    return bad(where, "it does not end in its checksum: cut short or damaged");
  }
  Sha256 sha;
  constexpr size_t kChunk = size_t{16} << 20;
  std::string_view body = bytes.substr(0, bytes.size() - kTrailerBytes);
  for (; !body.empty(); body.remove_prefix(std::min(kChunk, body.size()))) {
    if (interrupted()) return stopped("read trace " + where);
    sha.update(body.substr(0, kChunk));
  }
  if (sha.hex() != trailer.substr(kTrailerStem.size(), 64)) {
    return bad(where, "its checksum does not match: damaged");
  }
  return {};
}

// `bytes` is 8-byte aligned and outlives the view.
Status parse_view(std::string_view bytes, const std::string& where, TraceView& view) {
  if (!bytes.starts_with(kTraceMagic)) {
    if (!bytes.starts_with(kMagicStem)) return bad(where, "it is no trace, or cut short");
    return bad(where, "unknown version; this program reads trace/1");
  }
  if (bytes.size() < kTraceMagic.size() + kTrailerBytes) return bad(where, "cut short");
  SB_DO(check_seal(bytes, where));
  std::string_view body = bytes.substr(0, bytes.size() - kTrailerBytes);
  const size_t end = body.find('\n', kTraceMagic.size());
  if (end == std::string_view::npos || (end + 1) % 8 != 0) {
    return bad(where, "the manifest has no end at a multiple of 8 bytes");
  }
  auto json = parse_json_line(body.substr(kTraceMagic.size(), end - kTraceMagic.size()));
  if (!json) return bad(where, "the manifest is " + json.error());
  int64_t rows = 0, scored = 0;
  std::vector<bool> has_values;
  SB_DO(parse_manifest(*json, where, view, rows, scored, has_values));
  Payload payload(body.substr(end + 1));
  bool fits = payload.take(rows, view.rows) && payload.take(scored, view.scored);
  for (size_t i = 0; i < view.columns.size(); ++i) {
    TraceColumnView& column = view.columns[i];
    const int64_t count = rows_of(view, column);
    fits = fits && payload.take(count, column.digests) && payload.take(count, column.non_finite);
    if (has_values[i]) {
      fits =
          fits && payload.take_values(count, column.width, column.element_bytes(), column.values);
    }
  }
  if (!fits) return bad(where, "it is shorter than its manifest says");
  if (payload.left() != 0) {
    return bad(where, std::to_string(payload.left()) + " bytes more than its manifest says");
  }
  return check_trace(view, where);
}

}  // namespace

uint32_t TraceColumnView::bits_at(size_t row, size_t column) const {
  const size_t bytes = static_cast<size_t>(element_bytes());
  uint32_t bits = 0;
  std::memcpy(&bits, values.data() + (row * static_cast<size_t>(width) + column) * bytes, bytes);
  return bits;
}

TraceView view_of(const Trace& trace, const RunHeader& header, std::vector<std::string> tokens) {
  TraceView view{.header = header,
                 .ids = trace.ids,
                 .tokens = std::move(tokens),
                 .rows = trace.rows,
                 .scored = trace.scored,
                 .columns = {}};
  for (const TraceColumn& c : trace.columns) {
    view.columns.push_back(
        {c.boundary, c.dtype, c.width, c.scored, c.digests, c.non_finite, c.values});
  }
  return view;
}

Status write_trace_file(const std::string& path, bool force, const TraceView& view) {
  SB_DO(check_trace(view, path));
  SB_TRY(file, OutputFile::create(path, force));
  SealedOutput out(std::move(file));
  SB_DO(out.write(kTraceMagic.data(), kTraceMagic.size()));
  const std::string manifest = manifest_line(view);
  SB_DO(out.write(manifest.data(), manifest.size()));
  SB_DO(out.write(view.rows.data(), view.rows.size_bytes()));
  SB_DO(out.write(view.scored.data(), view.scored.size_bytes()));
  SB_DO(out.pad());
  for (const TraceColumnView& column : view.columns) {
    if (interrupted()) return stopped("write trace " + path);
    SB_DO(out.write(column.digests.data(), column.digests.size_bytes()));
    SB_DO(out.write(column.non_finite.data(), column.non_finite.size_bytes()));
    SB_DO(out.pad());
    SB_DO(out.write(column.values.data(), column.values.size()));
    SB_DO(out.pad());
  }
  return out.seal();
}

Result<TraceFile> read_trace_file(const std::string& path) {
  SB_TRY(map, MappedFile::open(path));
  TraceFile file{.map = std::move(map), .copy = nullptr, .view = {}};
  SB_DO(parse_view(file.map.text(), path, file.view));
  return file;
}

Result<TraceFile> parse_trace_file(std::string_view bytes, const std::string& where) {
  auto copy = std::make_shared<std::vector<uint64_t>>((bytes.size() + 7) / 8);
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  TraceFile file{.map = {}, .copy = copy, .view = {}};
  const std::string_view text{reinterpret_cast<const char*>(copy->data()), bytes.size()};
  SB_DO(parse_view(text, where, file.view));
  return file;
}

}  // namespace sb
