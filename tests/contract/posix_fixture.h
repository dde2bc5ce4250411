// The production environment under tests: its nodes are one Env that talks to itself over loopback, run
// by hand in the test's thread.
#pragma once

#include <stdlib.h>

#include <boost/filesystem/operations.hpp>

#include "common/base/check.h"
#include "common/env/posix/posix_env.h"
#include "tests/contract/env_fixture.h"

namespace picket::contract {

class PosixFixture final : public EnvFixture {
 public:
  PosixFixture() : env_(Options()) {
    char path[] = "/tmp/picket-contract-XXXXXX";
    PICKET_CHECK(::mkdtemp(path) != nullptr);
    root_ = path;
  }
  ~PosixFixture() override {
    env_.TearDown();
    boost::system::error_code ignored;
    boost::filesystem::remove_all(root_, ignored);
  }

  PosixEnv& posix() { return env_; }
  Env& env(size_t) override { return env_; }
  std::string host(size_t) override { return "127.0.0.1"; }
  std::string dir(size_t) override { return root_; }

  bool Run(size_t, Task<> task, Nanos limit) override {
    auto done = std::make_shared<bool>(false);
    env_.Spawn(Mark(std::move(task), done));
    const Mono end = env_.Now() + limit;
    while (!*done && env_.Now() < end) env_.RunOnce(100ms);
    return *done;
  }

 private:
  static PosixOptions Options() {
    PosixOptions options;
    options.name = "contract";
    options.log_level = LogLevel::kWarning;
    return options;
  }
  static Task<> Mark(Task<> task, std::shared_ptr<bool> done) {
    co_await std::move(task);
    *done = true;
  }

  PosixEnv env_;
  std::string root_;
};

}  // namespace picket::contract
