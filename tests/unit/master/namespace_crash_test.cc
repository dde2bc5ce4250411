// Clients that change names without a pause and repeat what was not answered, while the master loses
// power, is killed and is started again, and old requests arrive once more. Each client has a tree of
// its own and knows exactly what must be in it.
#include <deque>

#include "tests/unit/master/metadata_check.h"
#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class TreeClient {
 public:
  TreeClient(Env& env, uint64_t id, uint64_t seed)
      : env_(env), id_(id), rng_(seed), top_("/c" + std::to_string(id)), channel_(env, Endpoint("node-0", kMasterPort)) {}

  Task<> Run(int operations) {
    proto::MkdirRequest r;
    r.set_path(top_);
    r.set_parents(true);
    EXPECT_TRUE(co_await Change<proto::MkdirResponse>(proto::MKDIR, std::move(r)));
    model_[top_] = 0;
    for (int i = 0; i < operations; ++i) co_await Step();
    done_ = true;
  }
  bool done() const { return done_; }
  const std::string& top() const { return top_; }
  // Path → inode of a file, 0 for a directory.
  const std::map<std::string, uint64_t>& model() const { return model_; }
  uint64_t retries() const { return retries_; }

 private:
  // Repeats the request until there is a definite answer.
  template <class Response, class Request>
  Task<Result<Response>> Change(proto::Method method, Request request) {
    request.mutable_mutation()->set_client(id_);
    request.mutable_mutation()->set_sequence(++sequence_);
    request.mutable_mutation()->set_first_unacked(sequence_);
    for (;;) {
      auto reply = co_await channel_.Call<Response>(method, request, 1s);
      if (reply || !IsRetryable(reply.error().code)) {
        // The same request again, a while later: it must change nothing.
        if (reply && rng_.Chance(0.3)) env_.Spawn(Again<Response>(method, request, Nanos(rng_.Range(0, 2'000'000'000))));
        co_return reply;
      }
      ++retries_;
      co_await env_.Sleep(Nanos(rng_.Range(1, 50'000'000)));
    }
  }
  template <class Response, class Request>
  Task<> Again(proto::Method method, Request request, Nanos later) {
    co_await env_.Sleep(later);
    auto ignored = co_await channel_.Call<Response>(method, request, 1s);
  }

  std::string Pick(bool directory) {
    std::vector<std::string> candidates;
    for (const auto& [path, inode] : model_) {
      if ((inode == 0) == directory) candidates.push_back(path);
    }
    return candidates.empty() ? std::string() : candidates[rng_.Below(candidates.size())];
  }
  std::string NewName() { return "n" + std::to_string(rng_.Below(6)); }
  bool IsDirectory(const std::string& path) { return model_.contains(path) && model_[path] == 0; }
  void Forget(const std::string& path) {
    std::erase_if(model_, [&](const auto& e) { return e.first == path || e.first.starts_with(path + "/"); });
  }

  Task<> Step() {
    switch (rng_.Below(6)) {
      case 0:
        return MakeDirectory(Pick(true) + "/" + NewName());
      case 1:
      case 2:
        return Write(Pick(true) + "/" + NewName(), rng_.Chance(0.7), rng_.Chance(0.2));
      case 3:
      case 4:
        return Move(Pick(rng_.Chance(0.4)), Pick(true) + "/" + NewName(), rng_.Chance(0.5));
      default:
        return Delete(Pick(rng_.Chance(0.3)), rng_.Chance(0.5));
    }
  }

  Task<> MakeDirectory(std::string path) {
    proto::MkdirRequest r;
    r.set_path(path);
    auto made = co_await Change<proto::MkdirResponse>(proto::MKDIR, std::move(r));
    EXPECT_EQ(CodeOf(made), model_.contains(path) ? Code::kAlreadyExists : Code::kOk);
    if (made) model_[path] = 0;
  }

  Task<> Write(std::string path, bool overwrite, bool abandon) {
    proto::CreateRequest r;
    r.set_path(path);
    r.set_overwrite(overwrite);
    r.set_holder(id_);
    auto created = co_await Change<proto::CreateResponse>(proto::CREATE, std::move(r));
    if (IsDirectory(path)) {
      EXPECT_EQ(CodeOf(created), Code::kIsDirectory);
      co_return;
    }
    EXPECT_EQ(CodeOf(created), model_.contains(path) && !overwrite ? Code::kAlreadyExists : Code::kOk);
    if (!created) co_return;
    if (abandon) {
      proto::AbandonRequest a;
      a.set_inode(created->status().inode());
      a.set_generation(created->generation());
      a.set_holder(id_);
      auto abandoned = co_await Change<proto::AbandonResponse>(proto::ABANDON, std::move(a));
      EXPECT_TRUE(abandoned) << abandoned.error().ToString();
      co_return;
    }
    proto::CloseRequest c;
    c.set_inode(created->status().inode());
    c.set_generation(created->generation());
    c.set_holder(id_);
    auto closed = co_await Change<proto::CloseResponse>(proto::CLOSE, std::move(c));
    EXPECT_TRUE(closed) << closed.error().ToString();
    model_[path] = created->status().inode();
  }

  Task<> Move(std::string from, std::string to, bool overwrite) {
    if (from.empty() || from == top_) co_return;
    const bool directory = IsDirectory(from);
    Code expected = Code::kOk;
    if (to == from) {
      expected = Code::kInvalidArgument;
    } else if (to.starts_with(from + "/")) {
      expected = directory ? Code::kInvalidArgument : Code::kNotDirectory;
    } else if (IsDirectory(to) || (model_.contains(to) && !overwrite)) {
      expected = Code::kAlreadyExists;
    } else if (model_.contains(to) && directory) {
      expected = Code::kNotDirectory;
    }
    proto::RenameRequest r;
    r.set_from(from);
    r.set_to(to);
    r.set_overwrite(overwrite);
    auto renamed = co_await Change<proto::RenameResponse>(proto::RENAME, std::move(r));
    EXPECT_EQ(CodeOf(renamed), expected) << from << " to " << to;
    if (!renamed) co_return;
    std::map<std::string, uint64_t> moved;
    for (const auto& [path, inode] : model_) {
      if (path == from || path.starts_with(from + "/")) moved[to + path.substr(from.size())] = inode;
    }
    Forget(from);
    for (auto& [path, inode] : moved) model_[path] = inode;
  }

  Task<> Delete(std::string path, bool skip_trash) {
    if (path.empty() || path == top_) co_return;
    proto::DeleteRequest r;
    r.set_path(path);
    r.set_recursive(true);
    r.set_skip_trash(skip_trash);
    r.set_user("u" + std::to_string(id_));
    auto deleted = co_await Change<proto::DeleteResponse>(proto::DELETE, std::move(r));
    EXPECT_TRUE(deleted) << path << ": " << deleted.error().ToString();
    Forget(path);
  }

  Env& env_;
  const uint64_t id_;
  Rng rng_;
  const std::string top_;
  Channel channel_;
  uint64_t sequence_ = 0;
  uint64_t retries_ = 0;
  std::map<std::string, uint64_t> model_;
  bool done_ = false;
};

struct Clients {
  explicit Clients(Env& env, uint64_t seed) {
    for (uint64_t i = 0; i < 3; ++i) all.emplace_back(env, 100 + i, seed * 10 + i);
  }
  bool done() const { return std::ranges::all_of(all, [](const TreeClient& c) { return c.done(); }); }
  std::deque<TreeClient> all;
};

class NamespaceCrashTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(NamespaceCrashTest, EveryAnswerHoldsAndNothingIsDoneTwice) {
  const uint64_t seed = GetParam();
  sim::Config config;
  config.loss = 0.01;
  sim::World world(config, seed);
  sim::Node& master = world.AddNode("master");
  sim::Node& machine = world.AddNode("clients");
  const sim::Node::Factory boot = [](Env& env) {
    auto process = std::make_unique<sim::Running<MetadataHalf>>(env);
    struct Opener {
      static Task<> Run(MetadataHalf* half) {
        auto opened = co_await half->Open();
        EXPECT_TRUE(opened) << opened.error().ToString();
      }
    };
    env.Spawn(Opener::Run(&process->object));
    return process;
  };
  master.Start(boot);
  machine.Start([seed](Env& env) { return std::make_unique<sim::Running<Clients>>(env, seed); });
  Clients& clients = *machine.As<Clients>();
  for (TreeClient& c : clients.all) machine.Spawn(c.Run(150));

  Rng rng(seed);
  int restarts = 0;
  while (!clients.done() && world.now() < std::chrono::minutes(30)) {
    world.RunFor(Nanos(rng.Range(5'000'000, 300'000'000)));
    // Only one that had come up: its opening is tested elsewhere.
    if (!master.As<MetadataHalf>()->opened) continue;
    master.Crash(rng.Chance(0.5) ? sim::Node::Death::kPower : sim::Node::Death::kProcess);
    world.RunFor(Nanos(rng.Range(0, 300'000'000)));
    master.Start(boot);
    ++restarts;
  }
  ASSERT_TRUE(clients.done());
  EXPECT_GT(restarts, 5);
  world.RunFor(10s);  // the last duplicates arrive, the reclaimer ends
  MetadataHalf& m = *master.As<MetadataHalf>();
  CheckMetadata(m);
  for (const TreeClient& c : clients.all) {
    EXPECT_GT(c.retries(), 0u);
    std::map<std::string, uint64_t> found;
    std::vector<Path> todo{*Path::Parse(c.top())};
    while (!todo.empty()) {
      const Path path = todo.back();
      todo.pop_back();
      auto entry = m.names.Resolve(path);
      ASSERT_TRUE(entry) << entry.error().ToString();
      found[path.ToString()] = entry->is_directory() ? 0 : entry->id.value;
      EXPECT_FALSE(m.sessions.IsOpen(entry->id)) << path.ToString();
      if (!entry->is_directory()) continue;
      for (const Entry& child : *m.names.List(entry->id, "", 1000)) {
        todo.push_back(*Path::Parse(path.ToString() + "/" + child.inode.name()));
      }
    }
    EXPECT_EQ(found, c.model()) << c.top();
  }
  EXPECT_EQ(m.sessions.open_count(), 0u);
  EXPECT_TRUE(AllRows(m.store, keys::kPurge).empty());
  master.Crash(sim::Node::Death::kProcess);
  machine.Crash(sim::Node::Death::kProcess);
}

INSTANTIATE_TEST_SUITE_P(Seeds, NamespaceCrashTest, ::testing::Range<uint64_t>(1, 11));

}  // namespace
}  // namespace picket::test
