// SPDX-License-Identifier: Apache-2.0
// Members of a JSON object by name. Several names may mean one member; giving a member twice is a
// problem of the row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "workload/traces/json_rows.h"

namespace dynosim::workload {

// `Field` is an enumeration of at most 32 members whose last one, kOther, stands for all unknown
// names.
template <class Field>
struct MemberName {
  std::string_view name;
  Field field = Field::kOther;
};

template <class Field>
class MemberReader {
 public:
  explicit MemberReader(std::span<const MemberName<Field>> names) : names_(names) {}

  // Goes to the next member of the object; false at its end and after a problem.
  bool Next(JsonRows& rows) {
    if (!rows.NextMember()) {
      return false;
    }
    field_ = Find(rows.Key());
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(field_);
    if (field_ != Field::kOther && (seen_ & bit) != 0) {
      return rows.FailMember("is given twice (a field and its other name count as one)");
    }
    seen_ |= bit;
    return true;
  }
  Field field() const { return field_; }

 private:
  Field Find(std::string_view key) const {
    for (const MemberName<Field>& entry : names_) {
      if (entry.name == key) {
        return entry.field;
      }
    }
    return Field::kOther;
  }

  std::span<const MemberName<Field>> names_;
  std::uint32_t seen_ = 0;
  Field field_ = Field::kOther;
};

}  // namespace dynosim::workload
