// The samebits program: signals and the last line of defence. What goes wrong on the way out is one
// of ours and never an escaped exception.
#include <csignal>
#include <exception>
#include <new>
#include <string>

#include "samebits/cli/console.h"
#include "samebits/cli/program.h"
#include "samebits/gate/interrupt.h"

namespace sb {
namespace {

constexpr int kBugExit = 70;  // EX_SOFTWARE of sysexits.h: no verdict and no refusal

extern "C" void on_interrupt(int) { g_interrupted.store(true, std::memory_order_relaxed); }

// Ctrl-C sets a flag that loops poll; a second one ends the program at once (SA_RESETHAND).
void install_signals() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a blocked read returns
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, seen at the end
}

}  // namespace
}  // namespace sb

int main(int argc, char** argv) {
  sb::install_signals();
  try {
    return sb::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    sb::print_error("samebits: environment: out of memory\n");
    return static_cast<int>(sb::Code::kEnvironment);
  } catch (const std::exception& e) {
    sb::print_error(std::string("samebits: bug: ") + e.what() + "\n");
  } catch (...) {
    sb::print_error("samebits: bug: an unknown exception\n");
  }
  return sb::kBugExit;
}
