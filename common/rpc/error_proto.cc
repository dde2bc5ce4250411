#include "common/rpc/error_proto.h"

namespace picket {

void ToProto(const Error& from, proto::Error* to) {
  to->set_code(static_cast<uint32_t>(from.code));
  to->set_message(from.message);
  to->set_token(from.token);
  to->set_mark(from.mark);
  to->set_holder(from.holder);
  to->set_server(from.server);
  to->set_next_step(from.next_step);
  to->set_retry_after_ms(from.retry_after_ms);
}

Error FromProto(const proto::Error& from) {
  Error e(static_cast<Code>(from.code()), from.message());
  // A peer of another release may know codes that we do not; an error must never read as success.
  if (from.code() > UINT16_MAX || e.code == Code::kOk || CodeName(e.code) == "UNKNOWN") {
    e.code = Code::kInternal;
    e.message = "error code " + std::to_string(from.code()) + ", unknown to this release: " + from.message();
  }
  e.token = from.token();
  e.mark = from.mark();
  e.holder = from.holder();
  e.server = from.server();
  e.next_step = from.next_step();
  e.retry_after_ms = from.retry_after_ms();
  return e;
}

}  // namespace picket
