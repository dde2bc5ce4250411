// The simulator as an implementation of the environment.
#include "tests/contract/env_fixture.h"
#include "tests/sim/node.h"

namespace picket::contract {
namespace {

class SimFixture final : public EnvFixture {
 public:
  explicit SimFixture(size_t nodes) {
    for (size_t i = 0; i < nodes; ++i) {
      sim::Node& node = world_.AddNode("node " + std::to_string(i));
      node.Start();
      PICKET_CHECK(node.disk().MakeDir("data").has_value());
    }
  }
  ~SimFixture() override { EXPECT_FALSE(world_.failed()) << world_.violation()->detail; }

  Env& env(size_t node) override { return world_.node(node); }
  std::string host(size_t node) override { return world_.node(node).host(); }
  std::string dir(size_t) override { return "data"; }
  bool Run(size_t node, Task<> task, Nanos limit) override {
    return sim::RunTask(world_, world_.node(node), std::move(task), limit);
  }

 private:
  sim::World world_;
};

std::unique_ptr<EnvFixture> Make(size_t nodes) { return std::make_unique<SimFixture>(nodes); }

}  // namespace
}  // namespace picket::contract

PICKET_INSTANTIATE_CONTRACT(Sim, (picket::contract::Implementation{"simulator", picket::contract::Make}))
