// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/mooncake_row.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/numeric.h"
#include "workload/limits.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {
namespace {

enum class Field : std::uint8_t {
  kTimestamp,
  kInputLength,
  kOutputLength,
  kHashIds,
  kSessionId,
  kDelay,
  kRequestId,
  kOutputTokenIds,
  kPriority,
  kStrictPriority,
  kPolicyClass,
  kOther,
};

struct FieldName {
  std::string_view name;
  Field field = Field::kOther;
};

constexpr std::array kFieldNames = {
    FieldName{"timestamp", Field::kTimestamp},
    FieldName{"input_length", Field::kInputLength},
    FieldName{"output_length", Field::kOutputLength},
    FieldName{"hash_ids", Field::kHashIds},
    FieldName{"session_id", Field::kSessionId},
    FieldName{"delay", Field::kDelay},
    FieldName{"created_time", Field::kTimestamp},
    FieldName{"input_tokens", Field::kInputLength},
    FieldName{"output_tokens", Field::kOutputLength},
    FieldName{"delay_ms", Field::kDelay},
    FieldName{"request_id", Field::kRequestId},
    FieldName{"output_token_ids", Field::kOutputTokenIds},
    FieldName{"priority", Field::kPriority},
    FieldName{"strict_priority", Field::kStrictPriority},
    FieldName{"policy_class", Field::kPolicyClass},
};

Field FindField(std::string_view key) {
  for (const FieldName& entry : kFieldNames) {
    if (entry.name == key) {
      return entry.field;
    }
  }
  return Field::kOther;
}

bool ReadMember(JsonRows& rows, MooncakeRow& row) {
  constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
  const Field field = FindField(rows.Key());
  const std::uint32_t bit = 1U << static_cast<unsigned>(field);
  if (field != Field::kOther && (row.fields_seen & bit) != 0) {
    return rows.FailMember("is given twice (a field and its other name count as one)");
  }
  row.fields_seen |= bit;
  switch (field) {
    case Field::kTimestamp:
      return rows.ReadDecimal(row.timestamp_ms);
    case Field::kInputLength:
      return rows.ReadUnsigned(kMaxU64, row.input_length);
    case Field::kOutputLength:
      return rows.ReadUnsigned(kMaxTokens, row.output_length);
    case Field::kHashIds:
      return rows.ReadUnsignedList(kMaxU64, row.hash_ids);
    case Field::kSessionId:
      return rows.ReadString(row.session_id);
    case Field::kDelay:
      return rows.ReadDecimal(row.delay_ms);
    case Field::kRequestId:
      return rows.ReadString(row.request_id);
    case Field::kOutputTokenIds:
      return rows.ReadUnsignedList(kMaxU32, row.output_token_ids);
    case Field::kPriority:
      return rows.ReadSigned32(row.priority);
    case Field::kStrictPriority:
      return rows.ReadUnsigned(kMaxU32, row.strict_priority);
    case Field::kPolicyClass:
      return rows.ReadString(row.policy_class);
    case Field::kOther:
      return rows.Skip();
  }
  return false;
}

// The quick way for the rows that most traces consist of: an object of the four common members,
// each at most once, with plain numbers. Whatever else a line holds, wrong or right, is left to
// JsonRows.
class PlainRow {
 public:
  explicit PlainRow(std::string_view text) : text_(text) {}

  // Fills `row` and returns the number of bytes of the line, or 0.
  std::size_t Read(MooncakeRow& row) {
    at_ = SkipBlanks(text_.data());
    if (*at_ != '{') {
      return 0;
    }
    do {
      at_ = SkipBlanks(at_ + 1);
      if (!ReadMember(row)) {
        return 0;
      }
      at_ = SkipBlanks(at_);
    } while (*at_ == ',');
    if (*at_ != '}') {
      return 0;
    }
    at_ = SkipBlanks(at_ + 1);
    const auto bytes = static_cast<std::size_t>(at_ - text_.data());
    if (bytes >= text_.size()) {
      return bytes == text_.size() ? bytes : 0;
    }
    return *at_ == '\n' ? bytes + 1 : 0;
  }

 private:
  bool ReadMember(MooncakeRow& row) {
    if (TakeKey(R"("timestamp")")) {
      return !row.timestamp_ms && ReadTime(row.timestamp_ms);
    }
    if (TakeKey(R"("input_length")")) {
      return !row.input_length && ReadLength(row.input_length);
    }
    if (TakeKey(R"("output_length")")) {
      return !row.output_length && ReadLength(row.output_length);
    }
    if (TakeKey(R"("hash_ids")") && !row.hash_ids.present) {
      at_ = ReadUnsignedList(at_, std::numeric_limits<std::uint64_t>::max(), row.hash_ids);
      return at_ != nullptr;
    }
    return false;
  }

  // Goes to the value if the quoted key is here.
  bool TakeKey(std::string_view key) {
    if (std::memcmp(at_, key.data(), key.size()) != 0) {
      return false;
    }
    at_ = SkipBlanks(at_ + key.size());
    if (*at_ != ':') {
      return false;
    }
    at_ = SkipBlanks(at_ + 1);
    return true;
  }

  bool ReadLength(std::optional<std::uint64_t>& out) {
    std::uint64_t number = 0;
    at_ = ReadDigits(at_, number);
    if (at_ == nullptr || number > kMaxTokens) {
      return false;
    }
    out = number;
    return true;
  }

  bool ReadTime(std::optional<double>& out) {
    constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
    std::uint64_t whole = 0;
    const char* end = ReadDigits(at_, whole);
    if (end != nullptr && whole < kExact && (*end == ',' || *end == '}')) {
      out = static_cast<double>(whole);
      at_ = end;
      return true;
    }
    end = at_;
    while (IsDigit(*end) || *end == '.' || *end == '-' || *end == '+' || *end == 'e' ||
           *end == 'E') {
      ++end;
    }
    out = ParseTraceDecimal({at_, static_cast<std::size_t>(end - at_)});
    at_ = end;
    return out.has_value();
  }

  std::string_view text_;
  const char* at_ = nullptr;
};

}  // namespace

bool ReadRow(JsonRows& rows, MooncakeRow& row) {
  row.Clear();
  if (const std::size_t bytes = PlainRow(rows.Rest()).Read(row); bytes > 0) {
    rows.TakeRow(bytes);
    return true;
  }
  row.Clear();
  if (!rows.NextRow()) {
    return false;
  }
  while (rows.NextMember() && ReadMember(rows, row)) {
  }
  return !rows.Failed();
}

}  // namespace dynosim::workload
