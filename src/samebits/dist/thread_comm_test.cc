// Ranks as threads: parts arrive in rank order, round after round, and a rank that stops wakes the
// others.
#include "samebits/dist/thread_comm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

const auto cpu = make_cpu_device();

using chain_testing::ran;
using chain_testing::refused;

void on_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back([&body, r] { body(r); });
}

TEST(ThreadComm, EveryRankGetsAllPartsInRankOrderForManyRounds) {
  for (const int ranks : {1, 2, 4, 8}) {
    ThreadComm comm(ranks);
    ASSERT_EQ(comm.size(), ranks);
    on_threads(ranks, [&](int r) {
      Parallel& member = comm.member(r);
      EXPECT_EQ(member.rank(), r);
      EXPECT_EQ(member.size(), ranks);
      for (uint32_t round = 0; round < 300; ++round) {
        const size_t n = round % 5;  // also nothing at all
        std::vector<uint32_t> send(n, round * 100 + static_cast<uint32_t>(r));
        std::vector<uint32_t> recv(n * static_cast<size_t>(ranks), 0);
        ASSERT_TRUE(ran(member.all_gather(*cpu, send.data(), recv.data(), n * 4)));
        std::fill(send.begin(), send.end(), 0u);  // sending is over
        for (size_t i = 0; i < recv.size(); ++i) {
          ASSERT_EQ(recv[i], round * 100 + static_cast<uint32_t>(i / n));
        }
      }
    });
  }
}

TEST(ThreadComm, ARankThatStopsWakesTheWaitingOnes) {
  ThreadComm comm(4);
  std::atomic<int> refusals{0};
  on_threads(4, [&](int r) {
    const uint32_t send = 1;
    uint32_t recv[4];
    ASSERT_TRUE(ran(comm.member(r).all_gather(*cpu, &send, recv, 4)));
    if (r == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      comm.abort();
      return;
    }
    if (refused(comm.member(r).all_gather(*cpu, &send, recv, 4), "another rank has stopped",
                Code::kEnvironment)) {
      ++refusals;
    }
  });
  EXPECT_EQ(refusals, 3);
}

TEST(ThreadComm, AfterAStopNobodyWaits) {
  ThreadComm comm(2);
  comm.abort();
  const uint32_t send = 1;
  uint32_t recv[2];
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(refused(comm.member(1).all_gather(*cpu, &send, recv, 4), "another rank has stopped",
                        Code::kEnvironment));
  }
}

}  // namespace
}  // namespace sb
