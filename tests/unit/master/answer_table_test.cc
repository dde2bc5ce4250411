#include "master/answer_table.h"

#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

class AnswerTableTest : public MetadataTest {
 protected:
  AnswerTable& answers() { return half().answers; }
  static proto::MutationId Id(uint64_t client, uint64_t sequence, uint64_t first_unacked = 0) {
    proto::MutationId id;
    id.set_client(client);
    id.set_sequence(sequence);
    id.set_first_unacked(first_unacked);
    return id;
  }
  Result<AnswerTable::Admission> Admit(proto::MutationId id, proto::Method method = proto::MKDIR) {
    auto admitted = sim::RunTask(world, node, answers().Admit(std::move(id), method));
    if (!admitted) return Fail(Code::kInternal, "Admit did not end");
    return std::move(*admitted);
  }
  // Admits, and commits the answer.
  void Do(const proto::MutationId& id, std::string answer) {
    auto admitted = Admit(id);
    ASSERT_TRUE(admitted) << admitted.error().ToString();
    ASSERT_FALSE(admitted->answer);
    Batch batch;
    answers().Remember(&batch, id, proto::MKDIR, std::move(answer));
    ASSERT_TRUE(*sim::RunTask(world, node, half().store.Commit(std::move(batch))));
  }
  size_t Rows(uint64_t client) { return half().store.Scan(keys::Answers(client), "", 100000)->size(); }
};

TEST_F(AnswerTableTest, ARetryGetsTheFirstAnswerAlsoAfterARestart) {
  Do(Id(1, 1), "first");
  EXPECT_EQ(Admit(Id(1, 1))->answer, "first");
  Restart();
  EXPECT_EQ(Admit(Id(1, 1))->answer, "first");
  EXPECT_FALSE(Admit(Id(2, 1))->answer);
}

TEST_F(AnswerTableTest, TheSameSequenceForAnotherMethodIsAConflict) {
  Do(Id(1, 1), "first");
  EXPECT_EQ(CodeOf(Admit(Id(1, 1), proto::DELETE)), Code::kConflict);
}

TEST_F(AnswerTableTest, AnIdIsNeeded) {
  EXPECT_EQ(CodeOf(Admit(Id(0, 1))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Admit(Id(1, 0))), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Admit(Id(1, 3, 4))), Code::kInvalidArgument);
}

TEST_F(AnswerTableTest, ADuplicateWaitsForTheOneInProgress) {
  auto first = Admit(Id(1, 1));
  ASSERT_TRUE(first);
  bool done = false;
  struct Second {
    static Task<> Run(AnswerTable* table, proto::MutationId id, bool* done) {
      auto admitted = co_await table->Admit(std::move(id), proto::MKDIR);
      EXPECT_TRUE(admitted);
      EXPECT_EQ(admitted->answer, "first");
      *done = true;
    }
  };
  node.Spawn(Second::Run(&answers(), Id(1, 1), &done));
  world.RunFor(10s);
  EXPECT_FALSE(done);
  EXPECT_FALSE(Admit(Id(1, 2))->answer) << "other sequences do not wait";
  Batch batch;
  answers().Remember(&batch, Id(1, 1), proto::MKDIR, "first");
  ASSERT_TRUE(*sim::RunTask(world, node, half().store.Commit(std::move(batch))));
  first->guard = {};
  EXPECT_TRUE(world.RunUntil([&] { return done; }, 10s));
}

TEST_F(AnswerTableTest, AfterAFailureTheRetryGoesAhead) {
  { auto first = Admit(Id(1, 1)); }
  EXPECT_FALSE(Admit(Id(1, 1))->answer);
}

TEST_F(AnswerTableTest, AcknowledgedAnswersAreForgottenAndTheirRequestsRefused) {
  for (uint64_t s = 1; s <= 5; ++s) Do(Id(1, s), "answer");
  EXPECT_EQ(Rows(1), 5u);
  Do(Id(1, 6, 5), "answer");
  EXPECT_EQ(Rows(1), 3u) << "5, 6 and the mark";
  // A request that was under way on an old connection all the time.
  EXPECT_EQ(CodeOf(Admit(Id(1, 3))), Code::kDedupWindowExceeded);
  EXPECT_EQ(Admit(Id(1, 5))->answer, "answer");
  Restart();
  EXPECT_EQ(CodeOf(Admit(Id(1, 3))), Code::kDedupWindowExceeded);
}

TEST_F(AnswerTableTest, ARefusalIsRepeatedToADuplicateThatComesLate) {
  {
    auto admitted = Admit(Id(1, 1));
    ASSERT_TRUE(admitted);
    answers().Refuse(Id(1, 1), Error(Code::kNotFound, "no such file"));
  }
  EXPECT_EQ(CodeOf(Admit(Id(1, 1))), Code::kNotFound);
  // One that may be repeated is not kept.
  answers().Refuse(Id(1, 2), Error(Code::kUnavailable, "later"));
  EXPECT_EQ(CodeOf(Admit(Id(1, 2))), Code::kOk);
  // The client has its answer: the duplicate is refused without it.
  EXPECT_EQ(CodeOf(Admit(Id(1, 3, 2))), Code::kOk);
  EXPECT_EQ(CodeOf(Admit(Id(1, 1))), Code::kDedupWindowExceeded);
}

TEST_F(AnswerTableTest, RowsPerClientAreBounded) {
  for (uint64_t s = 1; s <= AnswerTable::kMaxAnswersPerClient + 20; ++s) Do(Id(9, s), "a");
  EXPECT_EQ(Rows(9), AnswerTable::kMaxAnswersPerClient + 1);
  EXPECT_EQ(CodeOf(Admit(Id(9, 20))), Code::kDedupWindowExceeded);
  EXPECT_EQ(Admit(Id(9, 21))->answer, "a");
  // A jump of first_unacked takes all of them.
  Do(Id(9, 5000, 5000), "a");
  EXPECT_EQ(Rows(9), 2u);
}

TEST_F(AnswerTableTest, TheSweepForgetsIdleClients) {
  for (uint64_t c = 1; c <= 20; ++c) Do(Id(c, 1), "a");
  node.JumpWall(Nanos(AnswerTable::kKeepNanos));
  Do(Id(3, 2), "b");
  world.RunFor(1s);
  ASSERT_TRUE(*sim::RunTask(world, node, answers().Sweep()));
  for (uint64_t c = 1; c <= 20; ++c) EXPECT_EQ(Rows(c), c == 3 ? 2u : 0u) << c;
}

}  // namespace
}  // namespace picket::test
