// SPDX-License-Identifier: Apache-2.0
// Everything that the header says is checked against the size of the file before it is used; the
// numbers themselves are only data.
#include "perfdb/pack.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zstd.h>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "perfdb/schema.h"
#include "perfdb/table.h"

namespace dynosim::perfdb {
namespace {

constexpr std::string_view kMagic = "DYNOPACK";
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kStart = 16;
constexpr std::size_t kAlign = 64;
// A packed table may unpack to this many times its size.
constexpr std::size_t kRatio = 1000;
constexpr std::size_t kWidest = 8;  // bytes of a value

std::uint32_t Load32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<std::size_t> Size(const Json& object, std::string_view name) {
  const Json* const value = object.Find(name);
  if (value == nullptr || !value->is_integer() || value->number() < 0.0 || value->number() > 1e15) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(value->number());
}

std::optional<std::string> Text(const Json& object, std::string_view name) {
  const Json* const value = object.Find(name);
  return value != nullptr && value->is_string() ? std::optional(value->string()) : std::nullopt;
}

unsigned WidthOf(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 5> kTypes = {
      {{"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8}, {"f64", 8}}};
  for (const auto& [name, width] : kTypes) {
    if (name == type) {
      return width;
    }
  }
  return 0;
}

// The dictionary of a text column; empty optional when it is not a list of texts.
std::optional<std::vector<std::string>> Dictionary(const Json& column) {
  std::vector<std::string> values;
  const Json* const list = column.Find("values");
  if (list == nullptr) {
    return values;
  }
  if (!list->is_array()) {
    return std::nullopt;
  }
  for (const Json& value : list->array()) {
    if (!value.is_string()) {
      return std::nullopt;
    }
    values.push_back(value.string());
  }
  return values;
}

// A packed column is stored as all its first bytes, then all its second bytes, and so on. Sixteen
// rows at a time: planes that lie half the width apart are woven into each other until only the
// rows are left.
using Bytes = std::uint8_t __attribute__((vector_size(16)));

Bytes WeaveLowHalves(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

Bytes WeaveHighHalves(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

template <std::size_t kWidth>
void JoinPlanes(const char* from, std::size_t rows, char* to) {
  std::size_t row = 0;
  for (; row + sizeof(Bytes) <= rows; row += sizeof(Bytes)) {
    std::array<Bytes, kWidth> woven{};
    for (std::size_t plane = 0; plane < kWidth; ++plane) {
      std::memcpy(&woven[plane], from + plane * rows + row, sizeof(Bytes));
    }
    for (std::size_t step = 1; step < kWidth; step *= 2) {
      std::array<Bytes, kWidth> next{};
      for (std::size_t i = 0; i < kWidth / 2; ++i) {
        next[2 * i] = WeaveLowHalves(woven[i], woven[i + kWidth / 2]);
        next[2 * i + 1] = WeaveHighHalves(woven[i], woven[i + kWidth / 2]);
      }
      woven = next;
    }
    std::memcpy(to + row * kWidth, woven.data(), sizeof woven);
  }
  for (; row < rows; ++row) {
    for (std::size_t plane = 0; plane < kWidth; ++plane) {
      to[row * kWidth + plane] = from[plane * rows + row];
    }
  }
}

// For widths above one.
void JoinPlanes(const char* from, std::size_t rows, unsigned width, char* to) {
  switch (width) {
    case 2:
      JoinPlanes<2>(from, rows, to);
      break;
    case 4:
      JoinPlanes<4>(from, rows, to);
      break;
    default:
      JoinPlanes<8>(from, rows, to);
  }
}

bool Fits(const TableSchema& schema, const std::vector<Column>& columns, bool latency_last) {
  if (columns.size() != schema.columns.size() + 1 || !latency_last) {
    return false;
  }
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    std::string_view name = schema.columns[i];
    const bool number = name.starts_with('#');
    name.remove_prefix(number ? 1 : 0);
    if (columns[i].name != name || number != columns[i].values.empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::unexpected<Error> Pack::Damaged(std::string_view what) const {
  return FailedError(where_, fmt::format("is not a performance data pack: {}", what));
}

Result<Pack> Pack::Open(const std::string& path) {
  DYNO_TRY(MappedFile file, MappedFile::Open(path));
  DYNO_TRY(Pack pack, Parse(file.Text(), path));
  pack.file_ = std::move(file);
  return pack;
}

Result<Pack> Pack::Parse(std::string_view bytes, std::string where) {
  Pack pack;
  pack.where_ = std::move(where);
  if (bytes.size() < kStart || !bytes.starts_with(kMagic)) {
    return pack.Damaged("it does not begin as one");
  }
  if (Load32(bytes, kMagic.size()) != kFormat) {
    return FailedError(pack.where_,
                       fmt::format("is a pack of format {}, but this program reads format {}; "
                                   "install the data again",
                                   Load32(bytes, kMagic.size()), kFormat));
  }
  const std::size_t length = Load32(bytes, kMagic.size() + sizeof(std::uint32_t));
  if (length > bytes.size() - kStart) {
    return pack.Damaged("it ends in its header");
  }
  auto header = ParseJson(bytes.substr(kStart, length), pack.where_);
  if (!header || !header->is_object()) {
    return pack.Damaged("its header is broken");
  }
  pack.header_ = *std::move(header);
  const std::size_t start = (kStart + length + kAlign - 1) / kAlign * kAlign;
  DYNO_TRY_VOID(pack.ReadDirectory(bytes.substr(std::min(start, bytes.size()))));
  return pack;
}

Result<void> Pack::ReadDirectory(std::string_view body) {
  const auto codec = Text(header_, "codec");
  if (codec != "raw" && codec != "zstd") {
    return Damaged("its codec is neither raw nor zstd");
  }
  packed_ = codec == "zstd";
  const Json* const tables = header_.Find("tables");
  if (tables == nullptr || !tables->is_array()) {
    return Damaged("it has no list of tables");
  }
  for (const Json& table : tables->array()) {
    DYNO_TRY(Entry entry, ReadEntry(table, body));
    entries_.push_back(std::move(entry));
  }
  return {};
}

Result<Pack::Entry> Pack::ReadEntry(const Json& json, std::string_view body) const {
  const auto name = Text(json, "name");
  const auto rows = Size(json, "rows");
  const auto offset = Size(json, "offset");
  const auto stored = Size(json, "stored");
  const auto bytes = Size(json, "bytes");
  const Json* const columns = json.Find("columns");
  if (!name || !rows || !offset || !stored || !bytes || columns == nullptr ||
      !columns->is_array() || *offset > body.size() || *stored > body.size() - *offset) {
    return Damaged("a table lies outside of the file");
  }
  Entry entry{.name = *name,
              .rows = *rows,
              .stored = body.substr(*offset, *stored),
              .bytes = *bytes,
              .columns = {},
              .offsets = {}};
  if (packed_ ? *bytes / kRatio > *stored : *bytes != *stored) {
    return Damaged(fmt::format("the size of table {} is wrong", *name));
  }
  bool latency_last = false;
  for (const Json& described : columns->array()) {
    const auto column_name = Text(described, "name");
    const auto at = Size(described, "offset");
    const std::string type = Text(described, "type").value_or("");
    auto values = Dictionary(described);
    const unsigned width = WidthOf(type);
    if (!column_name || !at || !values || width == 0 || *at % width != 0 || *at > *bytes ||
        *rows > (*bytes - *at) / width) {
      return Damaged(fmt::format("a column of table {} is wrong", *name));
    }
    latency_last = *column_name == "latency" && type == "f64";
    entry.columns.push_back(
        {.name = *column_name, .width = width, .data = nullptr, .values = *std::move(values)});
    entry.offsets.push_back(*at);
  }
  const TableSchema* const schema = FindSchema(*name);
  if (schema != nullptr && !Fits(*schema, entry.columns, latency_last)) {
    return Damaged(fmt::format("table {} has other columns than expected", *name));
  }
  return entry;
}

std::vector<std::string> Pack::TableNames() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    names.push_back(entry.name);
  }
  return names;
}

Result<std::optional<Table>> Pack::Load(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [name](const Entry& e) { return e.name == name; });
  if (found == entries_.end() || FindSchema(name) == nullptr) {
    return std::nullopt;
  }
  std::unique_ptr<char[]> owned;
  if (packed_) {
    DYNO_TRY(owned, Unpack(*found));
  }
  const char* const base = packed_ ? owned.get() : found->stored.data();
  std::vector<Column> columns = found->columns;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    columns[c].data = base + found->offsets[c];
  }
  return Table(found->name, found->rows, std::move(columns), std::move(owned));
}

// The bytes are left as they are until they are written: clearing them first costs as much as half
// of the unpacking.
Result<std::unique_ptr<char[]>> Pack::Unpack(const Entry& entry) const {
  auto bytes = std::make_unique_for_overwrite<char[]>(entry.bytes);
  const std::size_t size =
      ZSTD_decompress(bytes.get(), entry.bytes, entry.stored.data(), entry.stored.size());
  if (ZSTD_isError(size) != 0 || size != entry.bytes) {
    return Damaged(fmt::format("table {} cannot be unpacked", entry.name));
  }
  const auto planes = std::make_unique_for_overwrite<char[]>(entry.rows * kWidest);
  for (std::size_t c = 0; c < entry.columns.size(); ++c) {
    const unsigned width = entry.columns[c].width;
    if (width > 1) {
      char* const column = bytes.get() + entry.offsets[c];
      std::copy_n(column, entry.rows * width, planes.get());
      JoinPlanes(planes.get(), entry.rows, width, column);
    }
  }
  return bytes;
}

}  // namespace dynosim::perfdb
