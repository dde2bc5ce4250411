#include "master/conditions.h"

#include <fmt/format.h>

#include "common/base/mutation.h"

namespace picket {
namespace {

constexpr std::string_view kRedo = "read it again, decide anew, and repeat with what is there now";

Error Conflict(const Path& path, std::string_view is, uint64_t expected, uint64_t current) {
  return Error(Code::kConflict, fmt::format("{} {}", path.Quoted(), is)).WithTokens(expected, current);
}

}  // namespace

Status CheckUnchanged(const proto::Conditions& c, const Path& path, const Entry* present, bool in_change) {
  if (c.has_if_revision() && !PICKET_MUTANT(conditions_revision)) {
    const uint64_t expected = c.if_revision();
    if (present == nullptr) {
      return Fail(Conflict(path, fmt::format("does not exist; expected is the object created at revision {}", expected),
                           expected, 0)
                      .WithNextStep(std::string(kRedo)));
    }
    if (const uint64_t current = present->inode.create_revision(); current != expected) {
      return Fail(Conflict(path, fmt::format("is another object by now: created at revision {}, expected is {}", current,
                                             expected),
                           expected, current)
                      .WithNextStep(std::string(kRedo)));
    }
  }
  if (c.has_if_version() && !PICKET_MUTANT(conditions_version)) {
    const uint64_t expected = c.if_version();
    if (present == nullptr) {
      return Fail(Conflict(path, fmt::format("does not exist; expected is version {}", expected), expected, 0)
                      .WithNextStep(std::string(kRedo)));
    }
    const uint64_t current = present->inode.mod_revision();
    if (current != expected) {
      return Fail(Conflict(path, fmt::format("has changed: it is at version {}, expected is {}", current, expected),
                           expected, current)
                      .WithNextStep(std::string(kRedo)));
    }
    if (in_change && !PICKET_MUTANT(conditions_in_change)) {
      return Fail(Conflict(path, fmt::format("is being written: what has come to it since version {} has no version yet",
                                             current),
                           expected, current)
                      .WithNextStep("repeat when it is closed"));
    }
  }
  return {};
}

Status CheckAbsent(const proto::Conditions& c, const Path& path, const Entry* present) {
  if (!c.if_absent() || present == nullptr || PICKET_MUTANT(conditions_absent)) return {};
  return Fail(Conflict(path,
                       fmt::format("exists: created at revision {}, at version {}; expected is nothing",
                                   present->inode.create_revision(), present->inode.mod_revision()),
                       0, present->inode.mod_revision())
                  .WithNextStep(std::string(kRedo)));
}

Status CheckConditions(const proto::Conditions& c, const Path& path, const Entry* present, bool in_change) {
  PICKET_TRY(CheckAbsent(c, path, present));
  return CheckUnchanged(c, path, present, in_change);
}

void KeepConditions(const proto::Conditions& c, record::Inode* inode) {
  ForgetConditions(inode);
  if (c.has_if_revision()) inode->set_swap_if_revision(c.if_revision());
  if (c.has_if_version()) inode->set_swap_if_version(c.if_version());
  inode->set_swap_if_absent(c.if_absent());
}

proto::Conditions KeptConditions(const record::Inode& inode) {
  proto::Conditions c;
  if (inode.has_swap_if_revision()) c.set_if_revision(inode.swap_if_revision());
  if (inode.has_swap_if_version()) c.set_if_version(inode.swap_if_version());
  c.set_if_absent(inode.swap_if_absent());
  return c;
}

void ForgetConditions(record::Inode* inode) {
  inode->clear_swap_if_revision();
  inode->clear_swap_if_version();
  inode->clear_swap_if_absent();
}

}  // namespace picket
