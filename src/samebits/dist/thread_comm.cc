#include "samebits/dist/thread_comm.h"

#include <condition_variable>
#include <mutex>
#include <string>

namespace sb {

// A barrier that can be broken: std::barrier cannot wake waiters when a rank gives up.
struct ThreadComm::Shared {
  explicit Shared(int n) : ranks(n), send(n), bytes(n) {}

  // False when some rank has given up.
  bool arrive() {
    std::unique_lock lock(mutex);
    if (broken) return false;
    const uint64_t mine = round;
    if (++waiting == ranks) {
      waiting = 0;
      ++round;
      changed.notify_all();
      return true;
    }
    changed.wait(lock, [&] { return round != mine || broken; });
    return round != mine;
  }

  const int ranks;
  std::vector<const void*> send;
  std::vector<size_t> bytes;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  uint64_t round = 0;
  bool broken = false;
};

class ThreadComm::Member : public Parallel {
 public:
  Member(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return shared_->ranks; }

  Status all_gather(Device& device, const void* send, void* recv, size_t bytes) override {
    Shared& s = *shared_;
    s.send[rank_] = send;
    s.bytes[rank_] = bytes;
    if (!s.arrive()) return stopped();
    for (int p = 0; p < s.ranks; ++p) {
      SB_ASSERT(s.bytes[p] == bytes, "ranks gather different sizes");
      device.copy(static_cast<char*>(recv) + p * bytes, s.send[p], bytes);
    }
    // Nobody may change its send buffer before all have read it.
    return s.arrive() ? Status{} : stopped();
  }

 private:
  static Status stopped() {
    return refuse(Code::kEnvironment, "exchange partial sums", "another rank has stopped");
  }
  std::shared_ptr<Shared> shared_;
  int rank_;
};

ThreadComm::ThreadComm(int ranks) : shared_(std::make_shared<Shared>(ranks)) {
  for (int r = 0; r < ranks; ++r) members_.push_back(std::make_unique<Member>(shared_, r));
}

void ThreadComm::abort() {
  std::lock_guard lock(shared_->mutex);
  shared_->broken = true;
  shared_->changed.notify_all();
}

}  // namespace sb
