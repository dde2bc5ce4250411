#include "tests/unit/master/metadata_half.h"

#include "tests/unit/master/metadata_check.h"

namespace picket::test {

void MetadataTest::TearDown() {
  if (node.alive()) CheckMetadata(half());
}

}  // namespace picket::test
