// The Asio executor of one incarnation of a node: hands functions to the world's scheduler. Functions
// for a dead incarnation are destroyed, never run.
#pragma once

#include <boost/asio/execution.hpp>
#include <utility>

#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace picket::sim {

class SimExecutor {
 public:
  SimExecutor(Node* node, uint32_t incarnation) : node_(node), incarnation_(incarnation) {}

  template <class F>
  void execute(F&& f) const {
    node_->Post(incarnation_, Fn(std::forward<F>(f)));
  }
  asio::execution_context& query(asio::execution::context_t) const noexcept { return node_->world().context; }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  bool operator==(const SimExecutor& other) const noexcept {
    return node_ == other.node_ && incarnation_ == other.incarnation_;
  }

 private:
  Node* node_;
  uint32_t incarnation_;
};

}  // namespace picket::sim
