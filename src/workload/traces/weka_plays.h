// SPDX-License-Identifier: Apache-2.0
// Turns one object of a weka corpus into the requests of one play, with the edges that keep its
// order: turns of a stream, forks, subagents and their joins, and barriers behind everything that
// had ended in other streams when a request was sent.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "workload/agentic_builder.h"
#include "workload/traces/weka_objects.h"

namespace dynosim::workload {

// Gives prompt blocks their ids: blocks with the same hash of one object are the same; blocks
// without a hash, and last blocks that are not full, belong to one request alone.
class WekaBlockIds {
 public:
  // Ids of the leading blocks that may be shared, and one for the rest if there is any.
  std::vector<std::uint64_t> Of(const WekaObject& object, const WekaRequest& request);
  void BeginObject() { numbers_ = IdNumbers(), ids_.clear(); }

 private:
  IdNumbers numbers_;               // of the object's hashes
  std::vector<std::uint64_t> ids_;  // by number
  std::uint64_t next_id_ = 0;
};

// `ordinal` is the object's place in the corpus.
Result<std::vector<AgenticRequest>> MakeWekaPlay(const WekaObject& object, std::uint64_t ordinal,
                                                 bool relative_times, WekaBlockIds& block_ids);

}  // namespace dynosim::workload
