// SPDX-License-Identifier: Apache-2.0
// FieldTable: the members of one kind of JSON object as a table of (key, writer). The table is in
// the order of the specification; a second order, by key, is made at compile time. Members marked
// `last` stay at the end in both.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "report/json_writer.h"

namespace dynosim::report {

template <class Row>
struct Field {
  using Write = void (*)(JsonWriter& out, const Row& row);
  using Present = bool (*)(const Row& row);

  std::string_view key;
  Write write = nullptr;
  Present present = nullptr;  // null: always
  bool last = false;

  constexpr Field() = default;
  constexpr Field(std::string_view key_of, Write write_of, Present present_if = nullptr,
                  bool stays_last = false)
      : key(key_of), write(write_of), present(present_if), last(stays_last) {}
};

template <class Row, std::size_t kCount>
class FieldTable {
 public:
  consteval explicit FieldTable(const Field<Row> (&fields)[kCount]) {
    std::ranges::copy(fields, as_specified_.begin());
    sorted_ = as_specified_;
    std::ranges::sort(sorted_, [](const Field<Row>& a, const Field<Row>& b) {
      return a.last != b.last ? b.last : a.key < b.key;
    });
  }

  // Writes the object.
  void Write(JsonWriter& out, const Row& row) const {
    out.BeginObject();
    for (const Field<Row>& field : out.SortsKeys() ? sorted_ : as_specified_) {
      if (field.present == nullptr || field.present(row)) {
        out.Key(field.key);
        field.write(out, row);
      }
    }
    out.EndObject();
  }

 private:
  std::array<Field<Row>, kCount> as_specified_;
  std::array<Field<Row>, kCount> sorted_;
};

}  // namespace dynosim::report
