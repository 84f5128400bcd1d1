// SPDX-License-Identifier: Apache-2.0
// Pack: the measured performance data of one (system, backend, version), as `python3 -m
// dynosim.perfdata` writes it. The file is mapped: "DYNOPACK", format number, length of the header
// (both u32, little-endian), the header as JSON, and the tables, the first at a multiple of 64
// bytes. A table is raw, then it is read in place, or packed with zstd, then only tables that are
// asked for are unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "perfdb/table.h"

namespace dynosim::perfdb {

class Pack {
 public:
  static Result<Pack> Open(const std::string& path);
  // From bytes that outlive the pack; `where` names them in errors.
  static Result<Pack> Parse(std::string_view bytes, std::string where);

  // The header: system, backend, version, slots, generation, source, spec, lanes, default_lane.
  const Json& header() const { return header_; }
  const std::string& where() const { return where_; }
  std::vector<std::string> TableNames() const;
  // A table of schema.h; empty when the pack has no such table.
  Result<std::optional<Table>> Load(std::string_view name) const;

 private:
  struct Entry {
    std::string name;
    std::size_t rows = 0;
    std::string_view stored;  // the bytes in the file
    std::size_t bytes = 0;    // unpacked
    std::vector<Column> columns;
    std::vector<std::size_t> offsets;  // of each column in the unpacked bytes
  };

  Result<void> ReadDirectory(std::string_view body);
  Result<Entry> ReadEntry(const Json& json, std::string_view body) const;
  Result<std::unique_ptr<char[]>> Unpack(const Entry& entry) const;
  std::unexpected<Error> Damaged(std::string_view what) const;

  MappedFile file_;
  std::string where_;
  Json header_;
  bool packed_ = false;
  std::vector<Entry> entries_;
};

}  // namespace dynosim::perfdb
