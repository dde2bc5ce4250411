// After TOKEN_EXPIRED: the same version under a token that is signed anew (F18). It is never a replica's
// failure: nobody is named, no number is minted, and what was not acknowledged is sent again.
#pragma once

#include <memory>

#include "client/core/master_client.h"
#include "proto/client_master.pb.h"

namespace picket {

// What REFRESH_TOKEN refuses: kStaleVersion (a grant is needed), or the session is over.
Task<Result<proto::WriteToken>> RefreshToken(std::shared_ptr<MasterClient> master, proto::WriteToken old,
                                             Mono deadline);

}  // namespace picket
