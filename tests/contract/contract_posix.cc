// The suites over the production environment.
#include "tests/contract/posix_fixture.h"

namespace picket::contract {

constexpr Implementation kPosix{
    "posix", [](size_t) -> std::unique_ptr<EnvFixture> { return std::make_unique<PosixFixture>(); }};

}  // namespace picket::contract

PICKET_INSTANTIATE_CONTRACT(Posix, kPosix)
