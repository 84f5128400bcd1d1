// SPDX-License-Identifier: Apache-2.0
// Packs as the program meets them: whole, damaged, and of another format.
#include "perfdb/pack.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

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
