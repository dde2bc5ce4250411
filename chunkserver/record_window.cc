#include "chunkserver/record_window.h"

#include <string>

#include "common/base/mutation.h"

namespace picket::cs {

void RecordWindow::Note(RecordId id, uint64_t frame_size) {
  const Place place{end_, end_ + frame_size};
  end_ = place.end;
  places_.try_emplace(id, place);
  newest_.push_back({id, place});
  if (newest_.size() <= max_entries_) return;
  const Entry& oldest = newest_.front();
  evicted_through_ = oldest.place.end;
  auto it = places_.find(oldest.id);
  if (it != places_.end() && it->second.offset == oldest.place.offset) places_.erase(it);
  newest_.pop_front();
}

Result<std::optional<RecordWindow::Place>> RecordWindow::Find(RecordId id, uint64_t known_end) const {
  auto it = places_.find(id);
  if (it != places_.end() && !PICKET_MUTANT(record_dedup)) return it->second;
  if (known_end < evicted_through_ && !PICKET_MUTANT(record_window_evicted)) {
    return Fail(
        Error(Code::kDedupWindowExceeded, "record " + std::to_string(id.sequence) + " of client " +
                                              ToString(id.client) + ": its first attempt saw the chunk at " +
                                              std::to_string(known_end) + " bytes, and what was appended up to " +
                                              std::to_string(evicted_through_) + " is not remembered any more")
            .WithTokens(known_end, evicted_through_)
            .WithNextStep("look for the record in the file ('picket records cat'), then append it anew or not"));
  }
  return std::nullopt;
}

}  // namespace picket::cs
