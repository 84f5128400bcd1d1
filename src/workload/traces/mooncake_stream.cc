// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/mooncake_stream.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/flat_map.h"
#include "base/hash.h"
#include "base/numeric.h"
#include "base/result.h"
#include "base/text_stream.h"
#include "base/time.h"
#include "workload/block_names.h"
#include "workload/fading_names.h"
#include "workload/limits.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/spec.h"
#include "workload/trace_table.h"
#include "workload/traces/contents.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/mooncake_row.h"

namespace dynosim::workload {
namespace {

// The rows of a file, one after the other.
class RowStream {
 public:
  RowStream(const std::string& path, TextStream text)
      : path_(path), text_(std::move(text)), rows_(path, {}) {}

  // False at the end and after a problem.
  bool Next(MooncakeRow& row) {
    while (rows_.Rest().empty() || !ReadRow(rows_, row)) {
      if (rows_.Failed()) {
        failed_ = true;
        return false;
      }
      const Result<std::string_view> lines = text_.NextLines();
      if (!lines || lines->empty()) {
        failed_ = !lines;
        return false;
      }
      rows_.Continue(*lines);
    }
    return true;
  }
  std::uint32_t Line() const { return rows_.Line(); }
  bool Failed() const { return failed_; }
  Error Changed() const {
    return {ErrorKind::kFailed, path_, "the file changed while it was replayed"};
  }

 private:
  std::string path_;
  TextStream text_;
  JsonRows rows_;
  bool failed_ = false;
};

// Tokens of the prompt, if the row is one that can be streamed.
std::optional<std::uint64_t> PlainInput(const MooncakeRow& row, std::uint64_t block_size) {
  if (!row.hash_ids.present || row.session_id || !row.output_length ||
      row.output_token_ids.present || row.delay_ms.value_or(0.0) != 0.0 || !row.timestamp_ms ||
      !std::isfinite(*row.timestamp_ms)) {
    return std::nullopt;
  }
  const std::uint64_t capacity = SaturatingMultiply(row.hash_ids.size, block_size);
  const std::uint64_t input = row.input_length.value_or(capacity);
  if (input == 0 || input > capacity || input > kMaxTokens) {
    return std::nullopt;
  }
  return input;
}

std::uint64_t IdsOf(std::uint64_t input, std::uint64_t block_size) {
  return input / block_size + (input % block_size == 0 ? 0 : 1);
}

struct Survey {
  std::uint64_t rows = 0;
  double first_ms = 0.0;
  TraceOddities oddities;
};

// The first pass. Nothing when the trace has to be read whole.
std::optional<Survey> SurveyTrace(RowStream& rows, std::uint64_t block_size) {
  Survey survey;
  std::uint64_t ids = 0;
  double before_ms = -std::numeric_limits<double>::infinity();
  MooncakeRow row;
  while (rows.Next(row)) {
    const std::optional<std::uint64_t> input = PlainInput(row, block_size);
    if (!input || *row.timestamp_ms < before_ms || survey.rows == kMaxRequests) {
      return std::nullopt;
    }
    const double at_ms = *row.timestamp_ms;
    if (survey.rows == 0) {
      survey.first_ms = at_ms;
    } else if ((at_ms - survey.first_ms) - (before_ms - survey.first_ms) > kLongGapMs) {
      survey.oddities.long_gap.Note(rows.Line());
    }
    if (at_ms < 0.0) {
      survey.oddities.negative.Note(rows.Line());
    }
    const std::uint64_t needed = IdsOf(*input, block_size);
    if (row.hash_ids.size > needed) {
      survey.oddities.surplus_ids.Note(rows.Line());
    }
    ids += needed;
    before_ms = at_ms;
    ++survey.rows;
  }
  // Whoever reads it whole numbers the distinct ids with 32 bits.
  const bool usable = !rows.Failed() && survey.rows > 0 && ids < kNone - 1 &&
                      std::isfinite(before_ms - survey.first_ms);
  return usable ? std::optional(survey) : std::nullopt;
}

class MooncakeStream final : public RequestSource {
 public:
  MooncakeStream(std::unique_ptr<RowStream> rows, const Survey& survey, std::uint64_t block_size,
                 double speedup, std::size_t prefixes)
      : rows_(std::move(rows)),
        first_ms_(survey.first_ms),
        count_(static_cast<std::uint32_t>(survey.rows)),
        block_size_(block_size),
        speedup_(speedup),
        names_(prefixes) {
    ReadNext();
  }

  std::optional<double> NextReadyMs() const override {
    return Exhausted() ? std::nullopt : std::optional(next_ready_ms_);
  }
  bool Exhausted() const override { return released_ == count_ || problem_.has_value(); }
  bool Release(double now_ms, Request& out) override;
  void OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                  std::uint64_t emitted_tokens) override;
  void Blocks(std::uint32_t id, std::uint64_t block_size,
              std::vector<BlockExtent>& out) const override;
  std::uint32_t RequestCount() const override { return count_; }
  bool SharesGeneratedBlocks() const override { return false; }
  std::string SessionName(std::uint32_t /*session*/) const override { return {}; }
  std::string_view PolicyClassName(std::uint32_t policy_class) const override {
    return policy_classes_[policy_class];
  }
  void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const override;
  std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const override {
    return GeneratedToken(std::uint64_t{id} + 1, ordinal);
  }
  bool InOrder() const override { return true; }
  bool WantsHeldGroups() const override { return names_.WantsHeld(); }
  void OnHeldGroups(std::span<const std::uint32_t> groups) override;
  const Error* Problem() const override { return problem_ ? &*problem_ : nullptr; }

 private:
  // A request from its release to its end.
  struct Flying {
    BlockNames::Sequence prompt;
    bool ended = false;
  };

  void ReadNext();
  const Flying& At(std::uint32_t id) const {
    DYNO_CHECK(id >= first_flying_ && id - first_flying_ < flying_.size());
    return flying_[id - first_flying_];
  }

  std::unique_ptr<RowStream> rows_;
  double first_ms_;
  std::uint32_t count_;
  std::uint64_t block_size_;
  double speedup_;
  FadingNames names_;
  std::uint32_t released_ = 0;
  MooncakeRow row_;  // the next one
  double next_ready_ms_ = 0.0;
  std::deque<Flying> flying_;  // by id, from the oldest that has not ended
  std::uint32_t first_flying_ = 0;
  FlatMap<std::string, std::uint32_t> policy_class_numbers_;
  std::deque<std::string> policy_classes_;
  std::optional<Error> problem_;
};

void MooncakeStream::ReadNext() {
  if (released_ == count_) {
    return;
  }
  const double before_ms = next_ready_ms_;
  if (!rows_->Next(row_) || !PlainInput(row_, block_size_)) {
    problem_ = rows_->Changed();  // everything was right in the first pass
    return;
  }
  next_ready_ms_ = WithinTime((*row_.timestamp_ms - first_ms_) / speedup_);
  if (next_ready_ms_ < before_ms) {
    problem_ = rows_->Changed();
  }
}

bool MooncakeStream::Release(double now_ms, Request& out) {
  if (Exhausted() || next_ready_ms_ > now_ms) {
    return false;
  }
  const std::uint64_t input = PlainInput(row_, block_size_).value_or(0);
  out = Request{.id = released_++,
                .arrival_ms = next_ready_ms_,
                .prompt_tokens = input,
                .output_tokens = *row_.output_length,
                .priority = row_.priority.value_or(0),
                .strict_priority = static_cast<std::uint32_t>(row_.strict_priority.value_or(0))};
  if (row_.policy_class) {
    const auto [number, is_new] = policy_class_numbers_.TryInsert(
        std::string(*row_.policy_class), static_cast<std::uint32_t>(policy_classes_.size()));
    if (is_new) {
      policy_classes_.emplace_back(*row_.policy_class);
    }
    out.policy_class = *number;
  }
  flying_.push_back({.prompt = names_.Prompt(row_.hash_ids.Values(), block_size_, input)});
  ReadNext();
  return true;
}

void MooncakeStream::OnTerminal(std::uint32_t id, double /*now_ms*/, TerminalStatus /*status*/,
                                std::uint64_t /*emitted_tokens*/) {
  DYNO_CHECK(!At(id).ended);
  flying_[id - first_flying_].ended = true;
  while (!flying_.empty() && flying_.front().ended) {
    flying_.pop_front();
    ++first_flying_;
  }
}

void MooncakeStream::Blocks(std::uint32_t id, std::uint64_t block_size,
                            std::vector<BlockExtent>& out) const {
  out.clear();
  names_.Extents(At(id).prompt, block_size, out);
  // Generated blocks are nobody else's: their groups come from the other end of the numbers.
  out.push_back({kNone - 1 - id, 0, kEndless});
}

// The run of a block has the low half of its id for token: enough to tell blocks of real traces
// apart, and nothing of an offline run looks at it.
void MooncakeStream::PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const {
  const BlockNames::Sequence prompt = At(id).prompt;
  out.assign(prompt.tokens, 0);
  std::uint64_t end = prompt.tokens;
  names_.ForEachRun(prompt, [&](std::uint64_t block, std::uint64_t start) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(start),
              out.begin() + static_cast<std::ptrdiff_t>(end), static_cast<std::uint32_t>(block));
    end = start;
  });
}

void MooncakeStream::OnHeldGroups(std::span<const std::uint32_t> groups) {
  names_.BeginForget();
  for (const std::uint32_t group : groups) {
    names_.Keep(group);
  }
  for (const Flying& flying : flying_) {
    if (!flying.ended) {
      names_.Keep(flying.prompt.node);
    }
  }
  names_.EndForget();
}

}  // namespace

std::unique_ptr<RequestSource> StreamMooncake(const WorkloadSpec& workload, const TraceSpec& spec,
                                              TraceOddities& oddities) {
  const std::string& path = spec.files.front();
  const Result<std::uint64_t> block_size = TraceBlockSize(spec);
  std::error_code error;
  if (!spec.stream_from_bytes || workload.replay_concurrency || !block_size ||
      !std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path, error) < *spec.stream_from_bytes || error) {
    return nullptr;
  }
  Result<TextStream> first = TextStream::Open(path);
  Result<TextStream> second = TextStream::Open(path);
  if (!first || !second) {
    return nullptr;
  }
  RowStream surveyed(path, *std::move(first));
  const std::optional<Survey> survey = SurveyTrace(surveyed, *block_size);
  if (!survey) {
    return nullptr;
  }
  oddities = survey->oddities;
  return std::make_unique<MooncakeStream>(std::make_unique<RowStream>(path, *std::move(second)),
                                          *survey, *block_size, workload.arrival_speedup_ratio,
                                          spec.streamed_prefixes);
}

}  // namespace dynosim::workload
