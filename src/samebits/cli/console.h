// The terminal: colour, progress and refusals. Colour and progress appear only on a terminal and
// only where wanted (NO_COLOR, TERM=dumb); in pipes commands print plain text and nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/result.h"

namespace sb {

// Options that every command understands; declared once by main.
struct GlobalOptions {
  std::string profile = "sm90", backend = "cpu";
  int threads = 0;  // 0: all cores
  int tp = 1;
  std::vector<std::string> inject;  // NAME or NAME:layer=k
  bool json = false;
  std::string html;  // file for an HTML report; "" = none
  bool force = false;
};

enum class Tone { kPlain, kGood, kBad, kWarn, kDim, kBold };

bool stdout_is_terminal();
bool stderr_is_terminal();
// Text with colour where standard output takes it.
std::string toned(std::string_view text, Tone tone);
// Tone of a verdict: equal is good, drift and broken are bad, the rest warn.
Tone tone_of(Code code);
// A report that begins with its verdict word: that word takes colour, the rest stays plain.
std::string with_verdict_tone(const std::string& text, Code code);

void print(std::string_view text);        // standard output
void print_error(std::string_view text);  // standard error

// Prints a Refusal (to stderr, or as JSON to stdout with --json); returns its exit code.
int report(const Refusal& refusal, const GlobalOptions& options);

// Writes an HTML report to options.html when asked for.
Status write_html(const std::string& page, const GlobalOptions& options);

// "3/10 layers  30%  ETA 1m 20s" on standard error, on a terminal only, at most ten times a second.
class Progress {
 public:
  Progress(std::string what, int64_t total);
  ~Progress();  // clears its line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(int64_t done);

 private:
  std::string what_;
  int64_t total_;
  bool shown_ = false;
  const bool enabled_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

std::string duration_text(double seconds);  // "1m 20s"

}  // namespace sb
