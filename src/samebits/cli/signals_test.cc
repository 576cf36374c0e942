// Signals, limits and rivals while outputs are written: a run ends with its code and leaves
// nothing half-written.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

pid_t start(const std::vector<std::string>& args, const std::string& err) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGHUP, SIG_DFL);  // nohup's choice is kept by the program
  const int fd = open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  dup2(fd, STDERR_FILENO);
  dup2(open("/dev/null", O_RDWR), STDOUT_FILENO);
  std::vector<char*> argv = {const_cast<char*>(SB_PROGRAM)};
  for (const auto& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(SB_PROGRAM, argv.data());
  _exit(126);
}

int status_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// A run of some seconds, from the moment its output is open; gets `signal_number` then.
int signalled(const std::string& name, int signal_number, const std::string& err) {
  std::string rows;
  for (int i = 0; i < 8; ++i) rows += json_row(row_of("r" + std::to_string(i), 600, 4));
  const pid_t pid =
      start({"score", shared_model(), "--tokens", put("slow.jsonl", rows), "--schedule", "decode",
             "--threads", "1", "--out", scratch() + "/" + name},
            err);
  for (int i = 0; i < 2000 && files_like(name).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_THAT(files_like(name), testing::SizeIs(1)) << "its temporary file";
  EXPECT_EQ(kill(pid, signal_number), 0);
  return status_of(pid);
}

TEST(Signals, AnInterruptedRunIs130AndLeavesNothing) {
  for (int s : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string err = scratch() + "/interrupted.err";
    const int status = signalled("interrupted.jsonl", s, err);
    ASSERT_TRUE(WIFEXITED(status)) << s;
    EXPECT_EQ(WEXITSTATUS(status), 130) << s;
    EXPECT_THAT(read_text(err).value(), HasSubstr("interrupted; no output was written"));
    EXPECT_THAT(files_like("interrupted.jsonl"), IsEmpty());
  }
}

TEST(Signals, FatalOnesLeaveNothingEither) {
  for (int s : {SIGQUIT, SIGABRT, SIGSEGV}) {
    const int status = signalled("fatal.jsonl", s, "/dev/null");
    ASSERT_TRUE(WIFSIGNALED(status)) << s;
    EXPECT_EQ(WTERMSIG(status), s);
    EXPECT_THAT(files_like("fatal.jsonl"), IsEmpty());
  }
}

TEST(Signals, AMappedFileThatIsCutShortIsTheEnvironments) {
  const std::string err = scratch() + "/bus.err";
  const int status = signalled("bus.jsonl", SIGBUS, err);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(read_text(err).value(), HasSubstr("cut short"));
  EXPECT_THAT(files_like("bus.jsonl"), IsEmpty());
}

TEST(Signals, AnInterruptedCheckpointLeavesNoFiles) {
  const std::string dir = scratch() + "/half_model";
  const pid_t pid =
      start({"model", "new", dir, "--preset", "gemma4-31b", "--materialize"}, "/dev/null");
  for (int i = 0; i < 2000 && (!exists(dir) || fs::is_empty(dir)); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(pid, SIGINT);
  const int status = status_of(pid);
  ASSERT_TRUE(WIFEXITED(status));
  // 7: the disk was too small to begin.
  EXPECT_THAT(WEXITSTATUS(status), testing::AnyOf(130, 7));
  EXPECT_TRUE(fs::is_empty(dir));
}

TEST(Signals, OfTwoRunsOnOneOutputOneIsTold) {
  const std::string out = scratch() + "/rivals.jsonl";
  const std::vector<std::string> args = {"score",     shared_model(), "--tokens",
                                         rows_file(), "--out",        out};
  const pid_t a = start(args, scratch() + "/a.err"), b = start(args, scratch() + "/b.err");
  const int first = WEXITSTATUS(status_of(a)), second = WEXITSTATUS(status_of(b));
  EXPECT_THAT((std::vector<int>{first, second}), UnorderedElementsAre(0, 64));
  EXPECT_THAT(read_text(scratch() + (first ? "/a.err" : "/b.err")).value(),
              testing::AnyOf(HasSubstr("another process wrote it"), HasSubstr("exists already")));
  EXPECT_THAT(files_like("rivals"), UnorderedElementsAre("rivals.jsonl", "rivals.jsonl.run.json"));
  EXPECT_EQ(samebits("compare " + out + " " + out).code, 0);
}

TEST(Signals, AFileSizeLimitIsAFullDisk) {
  const std::string line = std::string(SB_PROGRAM) + " score " + shared_model() + " --tokens " +
                           rows_file() + " --out " + scratch() + "/limited.jsonl >/dev/null 2>&1";
  const int status = std::system(("ulimit -f 1; " + line).c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(files_like("limited"), IsEmpty());
}

}  // namespace
}  // namespace sb
