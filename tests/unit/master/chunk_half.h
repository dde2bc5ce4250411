// What tests of chunks share: a file of one chunk, and servers that refuse or lose orders.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/master/cluster_half.h"

namespace picket::test {

class ChunkTest : public ClusterTest {
 protected:
  explicit ChunkTest(size_t servers = 3) : ClusterTest(servers) {}
  void Rule(size_t i, proto::Method method, FakeDisk::Act act, Code code = Code::kNoSpace) {
    FakeDisk::Rule rule;
    rule.method = method;
    rule.act = act;
    rule.error = Error(code, "as the test wants");
    disk(i).rules.push_back(rule);
  }
  // A closed file of one chunk.
  proto::WriteGrant WriteFile(const std::string& path, const std::string& bytes, bool close = true) {
    file = Create(path);
    auto added = AddChunk(file);
    EXPECT_TRUE(added) << added.error().ToString();
    if (!added) return proto::WriteGrant();
    Write(*added, bytes);
    proto::CommitSealRequest seal = Seal(file, *added);
    seal.set_close(close);
    auto sealed = CommitSeal(seal);
    EXPECT_TRUE(sealed) << sealed.error().ToString();
    return *added;
  }
  void Delete(const std::string& path) {
    proto::DeleteRequest r;
    Identify(r.mutable_mutation());
    r.set_path(path);
    r.set_skip_trash(true);
    auto deleted = Call<proto::DeleteResponse>(proto::DELETE, r);
    EXPECT_TRUE(deleted) << deleted.error().ToString();
  }
  size_t ReplicasOf(uint64_t chunk) const {
    size_t n = 0;
    for (const auto& d : disks) n += d->replicas.count(chunk);
    return n;
  }
  OpenFile file;
};
class ChunkTest4 : public ChunkTest {
 protected:
  ChunkTest4() : ChunkTest(4) {}
};

}  // namespace picket::test
