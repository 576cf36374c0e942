// A small pool of threads over independent rows. Work never shares a sum, so the number of threads
// cannot change a bit. (Not OpenMP: its runtime is invisible to ThreadSanitizer.)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "samebits/base/result.h"

namespace sb {

class ThreadPool {
 public:
  // threads ≥ 1 counts the caller; 0 means all cores.
  explicit ThreadPool(int threads = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs body(i) for i in [0, n), each exactly once, on any thread; returns when all are done.
  // Every thread first checks its floating-point environment; a wrong one is a Refusal and the
  // results must not be used. body must not throw and must not call parallel_for of this pool.
  Status parallel_for(int64_t n, const std::function<void(int64_t)>& body);

 private:
  struct Job;
  void worker_loop(const std::stop_token& stop);
  static void run(Job& job);

  std::mutex call_mutex_;  // one parallel_for at a time
  std::mutex mutex_;
  std::condition_variable_any wake_, done_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int busy_ = 0;
  std::vector<std::jthread> workers_;
};

}  // namespace sb
