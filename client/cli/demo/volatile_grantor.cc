// A model, in this process's memory: what becomes of fencing when the grantor's counter does not survive a restart.
#include <fmt/format.h>

#include "client/cli/demo/scenes.h"

namespace picket::cli::demo {
namespace {

// Hands out rising numbers; one that keeps them durably goes on after a restart, another begins anew.
class Grantor {
 public:
  explicit Grantor(bool durable) : durable_(durable) {}
  uint64_t Grant() {
    ++counter_;
    if (durable_) disk_ = counter_;
    return counter_;
  }
  void Restart() { counter_ = disk_; }

 private:
  const bool durable_;
  uint64_t counter_ = 0;
  uint64_t disk_ = 0;
};

// Fences as it should: a token below its mark is refused.
class Resource {
 public:
  bool Write(uint64_t token, std::string_view value) {
    if (token < mark_) return false;
    mark_ = token;
    value_ = value;
    return true;
  }
  const std::string& value() const { return value_; }
  uint64_t mark() const { return mark_; }

 private:
  uint64_t mark_ = 0;
  std::string value_;
};

struct Outcome {
  uint64_t a = 0;
  uint64_t b = 0;
  bool late_write_accepted = false;
  uint64_t mark = 0;
  std::string value;
};

Outcome Run(bool durable) {
  Grantor grantor(durable);
  Resource resource;
  Outcome outcome;
  outcome.a = grantor.Grant();
  resource.Write(outcome.a, "A");
  grantor.Restart();
  outcome.b = grantor.Grant();
  resource.Write(outcome.b, "B");
  outcome.late_write_accepted = resource.Write(outcome.a, "A, late");
  outcome.mark = resource.mark();
  outcome.value = resource.value();
  return outcome;
}

}  // namespace

Status PlayVolatileGrantor(Play& play) {
  Story& story = play.story;
  story.Begin("A grantor that forgets (a model, not this cluster)");
  story.Explain(
      "The paused writer once more, in this program's memory, with a resource that checks tokens as it should. Only "
      "the service that hands the "
      "tokens out differs: it keeps its counter in memory, and is restarted while A stands still.");
  const Outcome forgets = Run(/*durable=*/false);
  const Outcome remembers = Run(/*durable=*/true);
  if (forgets.a != forgets.b || !forgets.late_write_accepted || remembers.late_write_accepted) {
    return Fail(NotAsTold("the model does not show what it should"));
  }
  story.Tell("Model, volatile:",
             fmt::format("A gets token {}; restart; B gets token {} too. B writes, then A writes late: ACCEPTED, the "
                         "resource holds \"{}\", and B's write is lost without a word",
                         forgets.a, forgets.b, forgets.value));
  story.Tell("Model, durable:", fmt::format("A gets token {}; restart; B gets token {}. B writes, then A writes late",
                                            remembers.a, remembers.b));
  story.Refused("A (model, durable)", "the modelled resource", "STALE (model)",
                fmt::format("token {} is below the mark {}; the resource holds \"{}\"", remembers.a, remembers.mark,
                            remembers.value));
  story.End(
      "A fence is as good as the memory of who hands out its numbers. Every number of Picket bears the master's epoch, "
      "which is synced "
      "before its first answer; where the tests take that away (mutation point meta_epoch_rises), they find a number "
      "given out twice.");
  return {};
}

}  // namespace picket::cli::demo
