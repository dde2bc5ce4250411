// Conditions: the judge by itself, and in every call that takes them.
#include "master/conditions.h"

#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

Entry EntryWith(uint64_t create_revision, uint64_t mod_revision) {
  Entry entry;
  entry.inode.set_create_revision(create_revision);
  entry.inode.set_mod_revision(mod_revision);
  return entry;
}

TEST(Conditions, AreJudgedOnWhatIsThere) {
  const Path path = *Path::Parse("/f");
  const Entry present = EntryWith(10, 20);
  struct Case {
    std::optional<uint64_t> revision, version;
    bool absent, there, in_change;
    Code code;
    uint64_t token, mark;
    std::string says;
  };
  const Case cases[] = {
      {{}, {}, false, true, true, Code::kOk, 0, 0, ""},
      {{}, {}, false, false, false, Code::kOk, 0, 0, ""},
      {10, {}, false, true, true, Code::kOk, 0, 0, ""},
      {11, {}, false, true, false, Code::kConflict, 11, 10, "another object"},
      {9, {}, false, true, false, Code::kConflict, 9, 10, "another object"},
      {10, {}, false, false, false, Code::kConflict, 10, 0, "does not exist"},
      {{}, 20, false, true, false, Code::kOk, 0, 0, ""},
      {{}, 19, false, true, false, Code::kConflict, 19, 20, "has changed"},
      {{}, 21, false, true, false, Code::kConflict, 21, 20, "has changed"},
      {{}, 20, false, false, false, Code::kConflict, 20, 0, "does not exist"},
      {{}, 20, false, true, true, Code::kConflict, 20, 20, "is being written"},
      {10, 19, false, true, false, Code::kConflict, 19, 20, "has changed"},
      {11, 20, false, true, false, Code::kConflict, 11, 10, "another object"},
      {10, 20, false, true, false, Code::kOk, 0, 0, ""},
      {0, {}, false, true, false, Code::kConflict, 0, 10, "another object"},
      {{}, {}, true, false, false, Code::kOk, 0, 0, ""},
      {{}, {}, true, true, false, Code::kConflict, 0, 20, "exists"},
  };
  for (const Case& c : cases) {
    proto::Conditions conditions;
    if (c.revision) conditions.set_if_revision(*c.revision);
    if (c.version) conditions.set_if_version(*c.version);
    conditions.set_if_absent(c.absent);
    SCOPED_TRACE(conditions.ShortDebugString() + (c.there ? " there" : " absent"));
    const Status judged = CheckConditions(conditions, path, c.there ? &present : nullptr, c.in_change);
    EXPECT_EQ(CodeOf(judged), c.code);
    if (judged) continue;
    EXPECT_EQ(judged.error().token, c.token);
    EXPECT_EQ(judged.error().mark, c.mark);
    EXPECT_TRUE(judged.error().message.contains("/f")) << judged.error().message;
    EXPECT_TRUE(judged.error().message.contains(c.says)) << judged.error().message;
    EXPECT_FALSE(judged.error().next_step.empty());
  }
}

TEST(Conditions, AreKeptWithAPendingOverwrite) {
  proto::Conditions conditions;
  record::Inode inode;
  KeepConditions(conditions, &inode);
  EXPECT_EQ(inode.ByteSizeLong(), 0u);
  conditions.set_if_revision(0);
  conditions.set_if_version(7);
  conditions.set_if_absent(true);
  KeepConditions(conditions, &inode);
  EXPECT_EQ(KeptConditions(inode).SerializeAsString(), conditions.SerializeAsString());
  ForgetConditions(&inode);
  EXPECT_EQ(inode.ByteSizeLong(), 0u);
}

class ConditionsTest : public MetadataTest {
 protected:
  static proto::Conditions Revision(uint64_t revision) {
    proto::Conditions c;
    c.set_if_revision(revision);
    return c;
  }
  static proto::Conditions VersionIs(uint64_t version) {
    proto::Conditions c;
    c.set_if_version(version);
    return c;
  }
  static proto::Conditions Absent() {
    proto::Conditions c;
    c.set_if_absent(true);
    return c;
  }
  Result<proto::CreateResponse> CreateIf(std::string path, bool overwrite, const proto::Conditions& conditions) {
    auto r = CreateRequestFor(std::move(path), overwrite);
    *r.mutable_conditions() = conditions;
    return Call<proto::CreateResponse>(proto::CREATE, r);
  }
  Result<proto::SetAttributesResponse> SetModeIf(std::string path, uint32_t mode, const proto::Conditions& conditions) {
    proto::SetAttributesRequest r;
    Identify(r.mutable_mutation());
    r.set_path(std::move(path));
    r.set_mode(mode);
    *r.mutable_conditions() = conditions;
    return Call<proto::SetAttributesResponse>(proto::SET_ATTRIBUTES, r);
  }
  uint64_t VersionOf(std::string path) { return Stat(std::move(path))->mod_revision(); }
};

// Whatever users see of a file moves its version; that somebody opens it does not.
TEST_F(ConditionsTest, TheVersionMovesWithContentAndAttributesOnly) {
  Put("/f");
  uint64_t version = VersionOf("/f");
  const auto moved = [&] {
    const uint64_t before = std::exchange(version, VersionOf("/f"));
    EXPECT_GE(version, before);
    return version != before;
  };
  ASSERT_TRUE(SetModeIf("/f", 0600, {}));
  EXPECT_TRUE(moved());
  auto opened = Open(OpenRequestFor("/f"));
  ASSERT_TRUE(opened) << opened.error().ToString();
  EXPECT_EQ(opened->status().mod_revision(), version);
  EXPECT_TRUE(Renew(opened->status().inode(), opened->generation()));
  EXPECT_FALSE(moved());
  ASSERT_TRUE(Close(AsCreated(*opened)));
  EXPECT_TRUE(moved());
  auto lock = OpenRequestFor("/f", proto::SHARED_LOCK);
  auto locked = Open(lock);
  ASSERT_TRUE(locked);
  ASSERT_TRUE(Release(*locked));
  EXPECT_FALSE(moved());
  ASSERT_TRUE(Rename("/f", "/g"));
  ASSERT_TRUE(Rename("/g", "/f"));
  EXPECT_TRUE(moved());
}

TEST_F(ConditionsTest, OfMkdir) {
  proto::MkdirRequest r;
  r.set_path("/d");
  r.set_parents(true);
  r.set_mode(0755);
  *r.mutable_conditions() = Absent();
  Identify(r.mutable_mutation());
  EXPECT_TRUE(Call<proto::MkdirResponse>(proto::MKDIR, r));
  Identify(r.mutable_mutation());
  EXPECT_EQ(CodeOf(Call<proto::MkdirResponse>(proto::MKDIR, r)), Code::kConflict);
  *r.mutable_conditions() = VersionIs(VersionOf("/d"));
  Identify(r.mutable_mutation());
  EXPECT_TRUE(Call<proto::MkdirResponse>(proto::MKDIR, r)) << "it exists as expected";
}

TEST_F(ConditionsTest, OfCreate) {
  EXPECT_EQ(CodeOf(CreateIf("/f", true, VersionIs(1))), Code::kConflict) << "nothing is there";
  EXPECT_FALSE(Exists("/f"));
  auto created = CreateIf("/f", false, Absent());
  ASSERT_TRUE(created);
  ASSERT_TRUE(Close(*created));
  auto again = CreateIf("/f", true, Absent());
  ASSERT_EQ(CodeOf(again), Code::kConflict);
  EXPECT_EQ(again.error().mark, VersionOf("/f"));
  EXPECT_EQ(CodeOf(CreateIf("/f", true, VersionIs(VersionOf("/f") + 1))), Code::kConflict);
  EXPECT_EQ(CodeOf(CreateIf("/f", true, Revision(Stat("/f")->create_revision() - 1))), Code::kConflict);
  auto replaced = CreateIf("/f", true, VersionIs(VersionOf("/f")));
  ASSERT_TRUE(replaced);
  ASSERT_TRUE(Close(*replaced));
  EXPECT_EQ(Stat("/f")->inode(), replaced->status().inode());
  EXPECT_FALSE(half().names.Resolve(*Path::Parse("/f"))->inode.has_swap_if_version());
}

// The read-pause-write of a client that read a file, stood still, and writes what it made of it: what was
// written in between is not lost, also when the master restarts between the two.
TEST_F(ConditionsTest, AreJudgedAgainInTheBatchThatSwapsAnOverwriteIn) {
  Put("/f");
  const uint64_t read_at = VersionOf("/f");
  auto slow = CreateIf("/f", true, VersionIs(read_at));
  ASSERT_TRUE(slow);
  const uint64_t fast = Put("/f", true);
  const uint64_t version = VersionOf("/f");
  Restart();
  auto closed = Close(*slow);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kConflict);
  EXPECT_EQ(closed.error().token, read_at);
  EXPECT_EQ(closed.error().mark, version);
  EXPECT_TRUE(closed.error().message.contains("/f"));
  EXPECT_EQ(Stat("/f")->inode(), fast);
  EXPECT_TRUE(Abandon(*slow)) << "its writer gives it up and redoes it";
  auto redone = CreateIf("/f", true, VersionIs(version));
  ASSERT_TRUE(redone);
  ASSERT_TRUE(Close(*redone));
  EXPECT_EQ(Stat("/f")->inode(), redone->status().inode());
}

TEST_F(ConditionsTest, OfASwapNoticeThatTheNameIsGoneOrIsAnotherObject) {
  Put("/f");
  auto gone = CreateIf("/f", true, VersionIs(VersionOf("/f")));
  auto other = CreateIf("/f", true, Revision(Stat("/f")->create_revision()));
  ASSERT_TRUE(gone && other);
  ASSERT_TRUE(Delete("/f"));
  EXPECT_EQ(CodeOf(Close(*gone)), Code::kConflict);
  Put("/f");
  EXPECT_EQ(CodeOf(Close(*other)), Code::kConflict);
  auto same = CreateIf("/f", true, Revision(Stat("/f")->create_revision()));
  ASSERT_TRUE(SetModeIf("/f", 0600, {}));
  EXPECT_TRUE(Close(*same)) << "the same object, in whatever state";
}

// What was flushed to an open chunk has no version: a replacement would take acknowledged bytes away.
TEST_F(ConditionsTest, NoVersionIsVouchedForWhileAChunkIsOpen) {
  const uint64_t inode = Put("/f");
  const uint64_t read_at = VersionOf("/f");
  auto slow = CreateIf("/f", true, VersionIs(read_at));
  auto writer = Open(OpenRequestFor("/f", proto::EXCLUSIVE, kClient + 1));
  ASSERT_TRUE(slow && writer);
  EXPECT_TRUE(SetModeIf("/f", 0640, VersionIs(read_at))) << "nothing is unsealed yet";
  AddChunk(InodeId(inode), false);
  EXPECT_EQ(CodeOf(SetModeIf("/f", 0600, VersionIs(VersionOf("/f")))), Code::kConflict);
  EXPECT_TRUE(SetModeIf("/f", 0600, Revision(Stat("/f")->create_revision())));
  EXPECT_EQ(CodeOf(Close(*slow)), Code::kConflict);
}

TEST_F(ConditionsTest, OfRename) {
  Put("/f");
  Put("/g");
  const auto rename = [&](bool overwrite, const proto::Conditions& conditions) {
    proto::RenameRequest r;
    Identify(r.mutable_mutation());
    r.set_from("/f");
    r.set_to("/g");
    r.set_overwrite(overwrite);
    *r.mutable_conditions() = conditions;
    return CodeOf(Call<proto::RenameResponse>(proto::RENAME, r));
  };
  EXPECT_EQ(rename(true, VersionIs(VersionOf("/f") - 1)), Code::kConflict) << "of the source";
  EXPECT_EQ(rename(true, Absent()), Code::kConflict) << "of the destination";
  EXPECT_EQ(rename(true, VersionIs(VersionOf("/f"))), Code::kOk);
  EXPECT_EQ(rename(true, Revision(1)), Code::kConflict) << "nothing is there any more";
}

TEST_F(ConditionsTest, OfDeleteAndSetAttributes) {
  Put("/f");
  const auto remove = [&](const proto::Conditions& conditions) {
    proto::DeleteRequest r;
    Identify(r.mutable_mutation());
    r.set_path("/f");
    *r.mutable_conditions() = conditions;
    return CodeOf(Call<proto::DeleteResponse>(proto::DELETE, r));
  };
  const uint64_t version = VersionOf("/f");
  EXPECT_EQ(CodeOf(SetModeIf("/f", 0600, VersionIs(version))), Code::kOk);
  EXPECT_EQ(CodeOf(SetModeIf("/f", 0644, VersionIs(version))), Code::kConflict);
  EXPECT_EQ(Stat("/f")->mode(), 0600u);
  EXPECT_EQ(remove(VersionIs(version)), Code::kConflict);
  EXPECT_EQ(remove(Absent()), Code::kConflict);
  EXPECT_TRUE(Exists("/f"));
  EXPECT_EQ(remove(VersionIs(VersionOf("/f"))), Code::kOk);
  EXPECT_EQ(remove(Revision(1)), Code::kConflict);
}

// Of a directory: the names in it.
TEST_F(ConditionsTest, OfADirectoryWatchItsNames) {
  Mkdir("/d/e");
  const uint64_t version = VersionOf("/d");
  Put("/d/e/f");
  EXPECT_EQ(CodeOf(SetModeIf("/d", 0700, VersionIs(version))), Code::kOk);
  const uint64_t after = VersionOf("/d");
  Put("/d/f");
  EXPECT_EQ(CodeOf(SetModeIf("/d", 0755, VersionIs(after))), Code::kConflict);
}

// A refusal is kept: a duplicate that arrives late, when the condition happens to hold, changes nothing.
TEST_F(ConditionsTest, ALateDuplicateOfARefusedChangeIsRefused) {
  auto r = CreateRequestFor("/f");
  *r.mutable_conditions() = VersionIs(1);
  EXPECT_EQ(CodeOf(Call<proto::CreateResponse>(proto::CREATE, r)), Code::kConflict);
  r.clear_conditions();
  EXPECT_EQ(CodeOf(Call<proto::CreateResponse>(proto::CREATE, r)), Code::kConflict);
  EXPECT_FALSE(Exists("/f"));
}

}  // namespace
}  // namespace picket::test
