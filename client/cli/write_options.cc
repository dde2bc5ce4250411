#include "client/cli/write_options.h"

namespace picket::cli {

void AddConditions(Arguments& arguments, client::Conditions& into) {
  arguments.Number("--if-revision", into.if_revision, "Only if it is still the object created at revision N")
      .Number("--if-version", into.if_version, "Only if nothing in it has changed since revision N (see stat --json)")
      .Flag("--if-absent", into.if_absent, "Only if nothing has that name");
}

bool FitConditions(Context& context, const client::Conditions& conditions, size_t paths) {
  if (paths <= 1 || (!conditions.if_revision && !conditions.if_version)) return true;
  context.Fail("", kExitUsage, "--if-revision and --if-version are about one path");
  return false;
}

void HoldOptions::AddTo(Arguments& arguments) {
  arguments
      .Text("--writer-id", writer_id, "ID", "The logical writer: when it is started again, it takes its file over at once")
      .Duration("--soft-limit", soft_limit_ms, "How long after the last renewal others may claim the file")
      .Duration("--hard-limit", hard_limit_ms, "How long after the last renewal the master closes the file");
}

}  // namespace picket::cli
