#include "samebits/cli/console.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "samebits/base/file.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(100);

bool plain_terminal() {
  const char* term = std::getenv("TERM");
  return !term || std::strcmp(term, "dumb") == 0;
}

bool colour() {
  // https://no-color.org: set and not empty means no colour.
  static const bool on = [] {
    const char* no_color = std::getenv("NO_COLOR");
    return stdout_is_terminal() && !plain_terminal() && !(no_color && *no_color);
  }();
  return on;
}

// Names of rows and tensors come from files; their control bytes must not act on a terminal.
std::string visible(const std::string& text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 || c == '\n') && byte != 0x7f) {
      out += c;
    } else {
      ((out += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    }
  }
  return out;
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

std::string toned(std::string_view text, Tone tone) {
  if (!colour() || tone == Tone::kPlain) return std::string(text);
  const char* escape = "";
  switch (tone) {
    case Tone::kPlain: break;
    case Tone::kGood: escape = "\x1b[32m"; break;
    case Tone::kBad: escape = "\x1b[31m"; break;
    case Tone::kWarn: escape = "\x1b[33m"; break;
    case Tone::kDim: escape = "\x1b[2m"; break;
    case Tone::kBold: escape = "\x1b[1m"; break;
  }
  return escape + std::string(text) + "\x1b[0m";
}

Tone tone_of(Code code) {
  if (code == Code::kEqual) return Tone::kGood;
  return code == Code::kDrift || code == Code::kBrokenData ? Tone::kBad : Tone::kWarn;
}

std::string with_verdict_tone(const std::string& text, Code code) {
  const std::string word = verdict_word(code);
  return toned(word, tone_of(code)) + text.substr(word.size());
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int report(const Refusal& refusal, const GlobalOptions& options) {
  if (interrupted()) {  // whatever failed, failed because of it
    const std::string text = "interrupted; no output was written";
    if (options.json) {
      print(refusal_json({Code::kInterrupted, refusal.asked, {text}, {}}));
    } else {
      print_error("samebits: " + text + "\n");
    }
    return static_cast<int>(Code::kInterrupted);
  }
  if (options.json) {
    print(refusal_json(refusal));
  } else {
    print_error("samebits: " + visible(refusal.text()) + "\n");
  }
  return static_cast<int>(refusal.code);
}

Status write_html(const std::string& page, const GlobalOptions& options) {
  if (options.html.empty()) return {};
  SB_TRY(out, OutputFile::create(options.html, options.force));
  SB_DO(out.write(page));
  return out.commit();
}

Progress::Progress(std::string what, int64_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(stderr_is_terminal() && !plain_terminal()),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_) print_error("\r\x1b[K");
}

void Progress::update(int64_t done) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kRedrawInterval) return;
  last_ = now;
  shown_ = true;
  std::string line = "\r" + std::to_string(done) + "/" + std::to_string(total_) + " " + what_;
  if (total_ > 0) line += "  " + std::to_string(done * 100 / total_) + "%";
  if (done > 0 && done <= total_) {
    const double left =
        seconds(now - start_) / static_cast<double>(done) * static_cast<double>(total_ - done);
    line += "  ETA " + duration_text(left);
  }
  print_error(line + "\x1b[K");
}

std::string duration_text(double s) {
  if (s < 10) {
    const int tenths = static_cast<int>(s * 10 + 0.5);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "s";
  }
  const int64_t t = static_cast<int64_t>(s + 0.5);
  if (t < 60) return std::to_string(t) + "s";
  if (t < 3600) return std::to_string(t / 60) + "m " + std::to_string(t % 60) + "s";
  return std::to_string(t / 3600) + "h " + std::to_string(t / 60 % 60) + "m";
}

}  // namespace sb
