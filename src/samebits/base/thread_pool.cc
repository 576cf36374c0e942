#include "samebits/base/thread_pool.h"

#include <algorithm>
#include <atomic>

#include "samebits/base/fp_env.h"

namespace sb {

struct ThreadPool::Job {
  int64_t n = 0;
  const std::function<void(int64_t)>* body = nullptr;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  Status status;
};

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this](const std::stop_token& stop) { worker_loop(stop); });
  }
}

ThreadPool::~ThreadPool() {
  for (auto& w : workers_) w.request_stop();
  wake_.notify_all();
}

void ThreadPool::run(Job& job) {
  if (auto env = check_fp_env(); !env) {
    std::lock_guard lock(job.mutex);
    job.status = std::move(env);
    job.next.store(job.n);
    return;
  }
  for (int64_t i = job.next.fetch_add(1); i < job.n; i = job.next.fetch_add(1)) (*job.body)(i);
}

void ThreadPool::worker_loop(const std::stop_token& stop) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [&] { return generation_ != seen; })) {
    seen = generation_;
    if (!job_) continue;
    Job& job = *job_;
    ++busy_;
    lock.unlock();
    run(job);
    lock.lock();
    if (--busy_ == 0) done_.notify_all();
  }
}

Status ThreadPool::parallel_for(int64_t n, const std::function<void(int64_t)>& body) {
  if (n <= 0) return {};
  Job job;
  job.n = n;
  job.body = &body;
  if (workers_.empty() || n == 1) {
    run(job);
    return job.status;
  }
  std::lock_guard call(call_mutex_);
  {
    std::lock_guard lock(mutex_);
    job_ = &job;
    ++generation_;
  }
  wake_.notify_all();
  run(job);
  std::unique_lock lock(mutex_);
  job_ = nullptr;
  done_.wait(lock, [&] { return busy_ == 0; });
  return job.status;
}

}  // namespace sb
