// SPDX-License-Identifier: Apache-2.0
#include "engine/effects.h"

#include <string>

#include <fmt/format.h>

namespace dynosim::engine {

std::string Rejection::Text() const {
  switch (reason) {
    case Reason::kContextLimit:
      return fmt::format("the prompt has {} tokens; max_model_len allows fewer than {}", needed,
                         available);
    case Reason::kPromptOverPool:
      return fmt::format("the prompt needs {} KV blocks; the rank has {}", needed, available);
    case Reason::kTotalOverPool:
      return fmt::format("prompt and output together need {} KV blocks; the rank has {}", needed,
                         available);
    case Reason::kTokenBudget:
      return fmt::format(
          "the prompt has {} tokens; a pass may compute {} and chunked prefill is off", needed,
          available);
    case Reason::kNoProgress:
      return fmt::format(
          "the rank cannot proceed: the request needs {} KV blocks and {} are available", needed,
          available);
  }
  return {};
}

}  // namespace dynosim::engine
