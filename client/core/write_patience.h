// How long a writer goes on trying without any progress, how it waits between attempts, and how it finds out
// whether a primary that did not answer is silent altogether. Every kind of write session has one.
// Runs on one executor.
#pragma once

#include <optional>

#include "common/base/error.h"
#include "common/env/env.h"
#include "common/env/net.h"

namespace picket {

class WritePatience {
 public:
  WritePatience(Env& env, Nanos limit) : env_(env), limit_(limit) {}

  // One more failure. Returns when it has gone on for too long: `limit` after the first since anything succeeded.
  Mono Failed();
  // Before the next attempt: longer with each failure, and as long as the one who refused asks for.
  Task<> BackOff(const Error& cause);
  // Something was acknowledged, begun or sealed.
  void Progressed();
  // Since then.
  int failures() const { return failures_; }

 private:
  Env& env_;
  const Nanos limit_;
  std::optional<Mono> since_;
  int failures_ = 0;
};

inline constexpr Nanos kProbeTimeout = 2s;
// Any answer will do, also a refusal; a broken line is not silence.
Task<bool> Answers(Env* env, Endpoint server);

}  // namespace picket
