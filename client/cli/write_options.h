// Options that several commands share: conditions of a change, and how a file is held while it is written.
#pragma once

#include <cstddef>
#include <string>

#include "client/cli/arguments.h"
#include "picket/client.h"

namespace picket::cli {

// --if-revision, --if-version, --if-absent.
void AddConditions(Arguments& arguments, client::Conditions& into);
// A revision or version is that of one object: it cannot be demanded of several. Reports the mistake.
bool FitConditions(Context& context, const client::Conditions& conditions, size_t paths);

// --writer-id, --soft-limit, --hard-limit.
struct HoldOptions {
  std::string writer_id;
  uint32_t soft_limit_ms = 0;
  uint32_t hard_limit_ms = 0;

  void AddTo(Arguments& arguments);
  template <class Options>
  void ApplyTo(Options& options) const {
    options.writer_id = writer_id;
    options.soft_limit_ms = soft_limit_ms;
    options.hard_limit_ms = hard_limit_ms;
  }
};

}  // namespace picket::cli
