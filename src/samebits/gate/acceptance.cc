#include "samebits/gate/acceptance.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "samebits/arith/chain.h"
#include "samebits/gate/interrupt.h"

namespace sb {
namespace {

constexpr size_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xa5, kUnwritten = 0xff;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// One backend with everything an operator call borrows.
struct Caller {
  Caller(Device& device, ThreadPool& pool, const BackendInfo& backend, Profile profile) {
    ctx.exec = {&device, device.stream(), &pool, profile, arith::best_isa(), backend.arch};
    ctx.records = &records;
    ctx.parallel = &parallel;
    ctx.backend = backend;
  }
  Records records;
  Parallel parallel;
  Ctx ctx;
};

// The case's buffers in memory of a device, each between guard zones.
class Copies {
 public:
  Copies(Device& device, OperatorCase& c) : device_(device), case_(c) {
    place_.buffers = &c.buffers;
    place_.device = device.id();
  }
  ~Copies() {
    for (size_t i = 0; i < memory_.size(); ++i) device_.release(memory_[i], size(i));
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  Status make() {
    for (size_t i = 0; i < case_.buffers.size(); ++i) {
      SB_TRY(p, device_.alloc(size(i)));
      memory_.push_back(p);
      device_.fill(p, kGuardByte, size(i));
      place_.base.push_back(static_cast<char*>(p) + kGuard);
      const CaseBuffer& b = case_.buffers[i];
      if (b.role == CaseRole::kInput)
        device_.copy_in(place_.base[i], b.bytes.data(), b.bytes.size());
    }
    return {};
  }
  void clear_outputs() {
    for (size_t i = 0; i < case_.buffers.size(); ++i) {
      const CaseBuffer& b = case_.buffers[i];
      if (b.role != CaseRole::kInput) device_.fill(place_.base[i], kUnwritten, b.bytes.size());
    }
  }
  // The buffer with its guards.
  const std::vector<uint8_t>& read(size_t i) {
    host_.resize(size(i));
    device_.copy_out(host_.data(), memory_[i], host_.size());
    return host_;
  }
  const CasePlace& place() const { return place_; }

 private:
  size_t size(size_t i) const { return case_.buffers[i].bytes.size() + 2 * kGuard; }
  Device& device_;
  OperatorCase& case_;
  CasePlace place_;
  std::vector<void*> memory_;
  std::vector<uint8_t> host_;
};

std::string hex(const uint8_t* p, int64_t n) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string s = "0x";
  for (int64_t i = n; i-- > 0;) {
    s += kDigits[p[i] >> 4];
    s += kDigits[p[i] & 15];
  }
  return s;
}

// Adds what differs between the oracle's bytes and those of a run of `rows` rows.
void compare_buffer(const CaseBuffer& b, const std::vector<uint8_t>& got, int64_t rows,
                    const std::string& run, AcceptanceLine& line) {
  const int64_t n = static_cast<int64_t>(b.bytes.size()), unit = dtype_bytes(b.shape.dtype);
  const int64_t live = b.role == CaseRole::kRows ? std::min(n, rows * b.row_bytes()) : n;
  if (b.role != CaseRole::kInput) line.outputs += live / unit;
  const auto check = [&](int64_t at, uint8_t want) {
    const uint8_t is = got[static_cast<size_t>(at)];
    if (is == want) return;
    ++line.differing;
    if (!line.first.empty()) return;
    const int64_t offset = at - static_cast<int64_t>(kGuard);
    line.first = b.name + " of a run of " + run + ": ";
    if (offset < 0 || offset >= n) {
      line.first += "byte " + std::to_string(offset) + " lies outside the buffer and was written";
      return;
    }
    const int64_t e = offset / unit;
    line.first += "element " + std::to_string(e) + " is " +
                  hex(got.data() + kGuard + e * unit, unit) + ", must be " +
                  (offset < live ? hex(b.bytes.data() + e * unit, unit) : "untouched");
  };
  const uint8_t* body = got.data() + kGuard;
  if (live > 0 && std::memcmp(body, b.bytes.data(), static_cast<size_t>(live)) != 0) {
    for (int64_t i = 0; i < live; ++i) {
      check(i + static_cast<int64_t>(kGuard), b.bytes[static_cast<size_t>(i)]);
    }
  }
  for (int64_t i = live; i < n; ++i) check(i + static_cast<int64_t>(kGuard), kUnwritten);
  for (size_t i = 0; i < kGuard; ++i) {
    check(static_cast<int64_t>(i), kGuardByte);
    check(n + static_cast<int64_t>(kGuard + i), kGuardByte);
  }
}

Status accept_case(OperatorCase& c, Device& device, Caller& oracle, Caller& backend,
                   const AcceptanceOptions& o, AcceptanceLine& line) {
  CasePlace host{&c.buffers, {}, DeviceId{}};
  for (CaseBuffer& b : c.buffers) host.base.push_back(reinterpret_cast<char*>(b.bytes.data()));
  const auto start = Clock::now();
  SB_DO(c.run(oracle.ctx, host, c.rows));
  line.oracle_seconds = seconds_since(start);

  Copies copies(device, c);
  SB_DO(copies.make());
  std::vector<int64_t> rows = {c.rows};
  for (const int64_t r : o.rows) {
    if (c.cut && r < c.rows) rows.push_back(r);
  }
  for (const int64_t r : rows) {
    for (const int64_t cap : o.grid_caps) {
      for (int i = 0; i < (r == c.rows ? o.repeats : 1); ++i) {
        if (interrupted()) return stopped("accept operators");
        copies.clear_outputs();
        backend.ctx.exec.grid_cap = cap;
        const auto begin = Clock::now();
        SB_DO(c.run(backend.ctx, copies.place(), r));
        SB_DO(device.sync());
        line.backend_seconds += seconds_since(begin);
        ++line.runs;
        const std::string run = std::to_string(r) + " rows" +
                                (cap ? ", grid cap " + std::to_string(cap) : std::string());
        for (size_t b = 0; b < c.buffers.size(); ++b) {
          const bool last = r == rows.back() && cap == o.grid_caps.back();
          if (c.buffers[b].role == CaseRole::kInput && !last) continue;
          if (c.buffers[b].role == CaseRole::kWhole && r != c.rows) continue;
          compare_buffer(c.buffers[b], copies.read(b), r, run, line);
        }
      }
    }
  }
  return device.sync();  // errors of the copies
}

}  // namespace

int64_t AcceptanceReport::outputs() const {
  int64_t n = 0;
  for (const auto& l : lines) n += l.outputs;
  return n;
}
int64_t AcceptanceReport::differing() const {
  int64_t n = 0;
  for (const auto& l : lines) n += l.differing;
  return n;
}

Result<AcceptanceReport> accept_operators(const Architecture& arch, Device& device,
                                          ThreadPool& pool, const AcceptanceOptions& options,
                                          const AcceptanceProgress& line) {
  const auto cpu = make_cpu_device();
  Caller oracle(*cpu, pool, cpu_backend(), options.profile);
  Caller backend(device, pool, options.backend, options.profile);
  const OperatorCases cases(arch, options.cases, pool);
  if (cases.count() == 0) {
    return refuse(Code::kUsage, "accept operator " + options.cases.only,
                  "there is no operator of this name", cases.names());
  }
  AcceptanceReport report;
  for (size_t i = 0; i < cases.count(); ++i) {
    OperatorCase c = cases.make(i);
    AcceptanceLine l;
    l.op = c.op;
    l.shape = c.shape;
    SB_DO(accept_case(c, device, oracle, backend, options, l));
    report.lines.push_back(l);
    if (line) {
      line(static_cast<int64_t>(i) + 1, static_cast<int64_t>(cases.count()), report.lines.back());
    }
  }
  return report;
}

}  // namespace sb
