// SPDX-License-Identifier: Apache-2.0
// Packs as the program meets them: whole, damaged, and of another format.
#include "perfdb/pack.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "perfdb/table.h"

namespace dynosim::perfdb {
namespace {

std::string Packed(std::uint32_t format, const std::string& header, std::string_view body) {
  std::string out = "DYNOPACK";
  const auto length = static_cast<std::uint32_t>(header.size());
  out.append(reinterpret_cast<const char*>(&format), sizeof format);
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += header;
  out.resize((out.size() + 63) / 64 * 64, '\0');
  return out.append(body);
}

// One table: all-reduce latencies of 2 and 4 GPUs.
std::string Body() {
  std::string body = {2, 4, 0, 0};
  const std::uint16_t sizes[] = {100, 200};
  const double latencies[] = {0.5, 0.75};
  body.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  body.append(reinterpret_cast<const char*>(latencies), sizeof latencies);
  return body;
}
constexpr std::string_view kTable =
    R"({"name":"custom_allreduce","rows":2,"offset":0,"stored":24,"bytes":24,"columns":[)"
    R"({"name":"num_gpus","type":"u8","offset":0},{"name":"message_size","type":"u16","offset":4},)"
    R"({"name":"latency","type":"f64","offset":8}]})";

std::string Header(std::string_view tables) {
  return R"({"codec":"raw","system":"s","tables":[)" + std::string(tables) + "]}";
}

std::string ErrorOf(const std::string& bytes) {
  const auto pack = Pack::Parse(bytes, "x.pack");
  return pack ? "read" : pack.error().Text();
}

TEST(Pack, ATableIsReadInPlace) {
  const std::string bytes = Packed(1, Header(kTable), Body());
  const auto pack = Pack::Parse(bytes, "x.pack");
  ASSERT_TRUE(pack) << pack.error().Text();
  const auto table = pack->Load("custom_allreduce");
  ASSERT_TRUE(table && *table);
  const Rows rows = Select(**table, std::uint64_t{4});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ((*table)->column(1).At(rows.begin), 200U);
  EXPECT_EQ((*table)->latency().LatencyAt(rows.begin), 0.75);
  EXPECT_TRUE(Select(**table, std::uint64_t{3}).empty());
  const auto other = pack->Load("gemm");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->has_value());
}

// A column as a packed table stores it: the first bytes of all values, then their second bytes.
void AppendPlanes(std::string& out, const std::vector<std::uint64_t>& values, unsigned width) {
  out.resize((out.size() + 7) / 8 * 8, '\0');
  for (unsigned plane = 0; plane < width; ++plane) {
    for (const std::uint64_t value : values) {
      out.push_back(static_cast<char>(value >> (8 * plane) & 0xFF));
    }
  }
}

TEST(Pack, APackedTableIsPutTogetherFromItsPlanes) {
  // Enough rows for whole groups of sixteen and a rest.
  constexpr std::size_t kRows = 37;
  for (const auto& [first, second] : {std::pair(1U, 2U), std::pair(2U, 4U), std::pair(4U, 8U)}) {
    std::vector<std::uint64_t> gpus, sizes, latencies;
    for (std::size_t row = 0; row < kRows; ++row) {
      gpus.push_back((row + 1) * 0x0102'0305U & ((std::uint64_t{1} << (8 * first)) - 1));
      sizes.push_back(row * 0x0001'0203'0405'0607U >> (64 - 8 * second));
      latencies.push_back(std::bit_cast<std::uint64_t>(0.1 + static_cast<double>(row)));
    }
    std::string planes;
    AppendPlanes(planes, gpus, first);
    const std::size_t sizes_at = (planes.size() + 7) / 8 * 8;
    AppendPlanes(planes, sizes, second);
    const std::size_t latencies_at = (planes.size() + 7) / 8 * 8;
    AppendPlanes(planes, latencies, 8);
    std::string stored(ZSTD_compressBound(planes.size()), '\0');
    stored.resize(ZSTD_compress(stored.data(), stored.size(), planes.data(), planes.size(), 3));
    const std::string header = fmt::format(
        R"({{"codec":"zstd","system":"s","tables":[{{"name":"custom_allreduce","rows":{},"offset":0,)"
        R"("stored":{},"bytes":{},"columns":[{{"name":"num_gpus","type":"u{}","offset":0}},)"
        R"({{"name":"message_size","type":"u{}","offset":{}}},)"
        R"({{"name":"latency","type":"f64","offset":{}}}]}}]}})",
        kRows, stored.size(), planes.size(), 8 * first, 8 * second, sizes_at, latencies_at);
    const std::string bytes = Packed(1, header, stored);
    const auto pack = Pack::Parse(bytes, "x.pack");
    ASSERT_TRUE(pack) << pack.error().Text();
    const auto table = pack->Load("custom_allreduce");
    ASSERT_TRUE(table && *table);
    for (std::size_t row = 0; row < kRows; ++row) {
      EXPECT_EQ((*table)->column(0).At(row), gpus[row]) << first << " " << row;
      EXPECT_EQ((*table)->column(1).At(row), sizes[row]) << second << " " << row;
      EXPECT_EQ((*table)->latency().LatencyAt(row), 0.1 + static_cast<double>(row)) << row;
    }
  }
}

TEST(Pack, WhatIsNoPackIsRefusedWithItsName) {
  EXPECT_EQ(ErrorOf("PACK"), "x.pack: is not a performance data pack: it does not begin as one");
  EXPECT_EQ(ErrorOf(Packed(2, "{}", "")),
            "x.pack: is a pack of format 2, but this program reads format 1; install the data "
            "again");
  EXPECT_EQ(ErrorOf(Packed(1, "{}", "").substr(0, 17)),
            "x.pack: is not a performance data pack: it ends in its header");
  EXPECT_EQ(ErrorOf(Packed(1, "[1]", "")),
            "x.pack: is not a performance data pack: its header is broken");
}

TEST(Pack, ATableMustLieInTheFileAndHaveItsColumns) {
  const std::string whole = Packed(1, Header(kTable), Body());
  EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() - 1)),
            "x.pack: is not a performance data pack: a table lies outside of the file");
  std::string renamed(kTable);
  renamed.replace(renamed.find("num_gpus"), 8, "num_cpus");
  EXPECT_EQ(ErrorOf(Packed(1, Header(renamed), Body())),
            "x.pack: is not a performance data pack: table custom_allreduce has other columns than "
            "expected");
  std::string longer(kTable);
  longer.replace(longer.find("\"rows\":2"), 8, "\"rows\":9");
  EXPECT_EQ(ErrorOf(Packed(1, Header(longer), Body())),
            "x.pack: is not a performance data pack: a column of table custom_allreduce is wrong");
}

}  // namespace
}  // namespace dynosim::perfdb
