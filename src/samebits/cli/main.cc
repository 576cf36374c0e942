// The samebits program: signals and the last line of defence. What goes wrong on the way out is one
// of ours and never an escaped exception.
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <string>

#include "samebits/base/file.h"
#include "samebits/cli/console.h"
#include "samebits/cli/program.h"
#include "samebits/gate/interrupt.h"

namespace sb {
namespace {

constexpr int kBugExit = 70;  // EX_SOFTWARE of sysexits.h: no verdict and no refusal

// The first SIGINT, SIGTERM or SIGHUP sets a flag that loops poll. A second one ends the program
// at once, with the default action, and still without a half-written file.
extern "C" void on_interrupt(int signal_number) {
  if (!g_interrupted.exchange(true, std::memory_order_relaxed)) return;
  remove_temporary_files();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// A mapped file became shorter than it was, or its disk failed, while it was read.
extern "C" void on_bus_error(int) {
  constexpr char kText[] =
      "samebits: environment: read a mapped file\n"
      "  why:   it was cut short, or its disk failed, while this run read it\n"
      "  try:   a copy that nobody writes to\n";
  remove_temporary_files();
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(static_cast<int>(Code::kEnvironment));
}

// Ours to fix, or the user's wish (SIGQUIT): the default action, after the temporary files.
extern "C" void on_fatal(int signal_number) {
  remove_temporary_files();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void install(int signal_number, void (*handler)(int)) {
  struct sigaction action{}, before{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a blocked read returns
  // nohup ignores SIGHUP, and means it.
  if (signal_number == SIGHUP && sigaction(SIGHUP, nullptr, &before) == 0 &&
      before.sa_handler == SIG_IGN) {
    return;
  }
  sigaction(signal_number, &action, nullptr);
}

void install_signals() {
  for (int s : {SIGINT, SIGTERM, SIGHUP}) install(s, on_interrupt);
  for (int s : {SIGQUIT, SIGABRT, SIGSEGV, SIGILL, SIGFPE, SIGXCPU}) install(s, on_fatal);
  install(SIGBUS, on_bus_error);
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, seen at the end
  signal(SIGXFSZ, SIG_IGN);  // so is a file that reached its size limit
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
