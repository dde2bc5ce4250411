// What an implementation of the environment gives to the contract tests. The suites run over every
// implementation; what differs between them is only the fixture.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "common/env/env.h"

namespace picket::contract {

// One or more nodes that can reach one another. Everything runs in the thread that calls Run.
// Nodes may share one Env (production does: its "nodes" talk over loopback).
class EnvFixture {
 public:
  // An orderly teardown: suspended tasks are destroyed, never resumed.
  virtual ~EnvFixture() = default;

  virtual Env& env(size_t node) = 0;
  // The host under which other nodes reach `node`, and on which it may listen.
  virtual std::string host(size_t node) = 0;
  // A directory of node's file system: exists, empty at first, the same for the fixture's life.
  virtual std::string dir(size_t node) = 0;

  // Runs `task` on `node`, and all other tasks with it, until `task` ends. False if `limit` of that
  // node's time passed first (the task stays suspended).
  virtual bool Run(size_t node, Task<> task, Nanos limit) = 0;
};

struct Implementation {
  const char* name;
  std::unique_ptr<EnvFixture> (*make)(size_t nodes);
};
inline void PrintTo(const Implementation& i, std::ostream* out) { *out << i.name; }

// Base of the suites. A test's body is a task: see RunTask.
class Contract : public testing::TestWithParam<Implementation> {
 protected:
  static constexpr size_t kNodes = 3;
  static constexpr Nanos kLimit = 20s;

  Env& env(size_t node = 0) { return fixture_->env(node); }
  // Fails the test when the task does not end in time.
  void RunTask(Task<> task, size_t node = 0) {
    ASSERT_TRUE(fixture_->Run(node, std::move(task), kLimit)) << "the task did not end in time";
  }

  std::unique_ptr<EnvFixture> fixture_ = GetParam().make(kNodes);
};

class EnvContract : public Contract {};   // timers, tasks, offload, randomness, teardown
class SyncContract : public Contract {};  // OneShot, FifoLock, Signal, Gate, WhenAll
class FsContract : public Contract {};
class NetContract : public Contract {};

}  // namespace picket::contract

// Instantiates every suite; once per test binary.
#define PICKET_INSTANTIATE_CONTRACT(prefix, implementation)                             \
  namespace picket::contract {                                                          \
  INSTANTIATE_TEST_SUITE_P(prefix, EnvContract, testing::Values(implementation));       \
  INSTANTIATE_TEST_SUITE_P(prefix, SyncContract, testing::Values(implementation));      \
  INSTANTIATE_TEST_SUITE_P(prefix, FsContract, testing::Values(implementation));        \
  INSTANTIATE_TEST_SUITE_P(prefix, NetContract, testing::Values(implementation));       \
  }
