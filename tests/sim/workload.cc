#include "tests/sim/workload.h"

namespace picket::sim {

bool FaultsExplain(Code code) {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kConnectionLost:
    case Code::kNotEnoughReplicas:
    case Code::kNoSpace:
    case Code::kIoError:
    case Code::kWaitingFor:
    case Code::kReadOnly: return true;
    default: return false;
  }
}

}  // namespace picket::sim
