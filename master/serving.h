// Whether this master may change anything in the cluster. Set once by the finding that its metadata is not
// the continuation of what a chunkserver has seen (F12): from then on it grants, creates and deletes
// nothing until an operator starts it on the right metadata; reading goes on.
#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"

namespace picket {

class Serving {
 public:
  // kHistoryLost with the first finding.
  Status Check() const {
    if (lost_) return Fail(*lost_);
    return {};
  }
  void HistoryLost(Error finding) {
    if (!lost_) lost_ = std::move(finding);
  }
  // "serving", or why not.
  std::string Describe() const { return lost_ ? lost_->ToString() : "serving"; }

 private:
  std::optional<Error> lost_;
};

}  // namespace picket
