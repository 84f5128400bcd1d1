// SPDX-License-Identifier: Apache-2.0
// NPZ archives made here byte by byte: stored and deflated members, and hostile ones.
#include "timing/npz.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <ios>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <zconf.h>
#include <zlib.h>

namespace dynosim::timing {
namespace {

void Put(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    out += static_cast<char>(i < sizeof value ? value >> (8 * i) & 0xFF : 0);
  }
}

std::string Npy(std::string_view dict, const std::vector<double>& values) {
  std::string header(dict);
  header += '\n';
  std::string out = "\x93NUMPY";
  Put(out, 1, 2);
  Put(out, header.size(), 2);
  out += header;
  for (const double value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    Put(out, bits, 8);
  }
  return out;
}

std::string Vector(const std::vector<double>& values) {
  return Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) +
                 ",), }",
             values);
}

std::string Deflated(const std::string& data) {
  std::string out(compressBound(data.size()) + 64, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = data;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Entry {
  Entry(std::string entry_name, std::string entry_data, bool deflated = false,
        std::uint32_t other_size = 0)
      : name(std::move(entry_name)),
        data(std::move(entry_data)),
        deflate(deflated),
        claimed_size(other_size) {}
  std::string name;
  std::string data;
  bool deflate;
  std::uint32_t claimed_size;  // 0: the true one
};

// As NumPy writes it: sizes only in the directory, a ZIP64 field in the local header.
std::string Zip(const std::vector<Entry>& entries) {
  std::string out;
  std::string directory;
  for (const Entry& entry : entries) {
    const std::string packed = entry.deflate ? Deflated(entry.data) : entry.data;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(entry.data.data()),
                           static_cast<uInt>(entry.data.size()));
    const std::size_t size = entry.claimed_size != 0 ? entry.claimed_size : entry.data.size();
    const std::size_t header_at = out.size();
    const std::uint64_t method = entry.deflate ? 8 : 0;
    out += "PK\x03\x04";
    Put(out, 45, 2);
    Put(out, 0, 2);
    Put(out, method, 2);
    Put(out, 0, 4);
    Put(out, crc, 4);
    Put(out, 0xFFFFFFFF, 4);
    Put(out, 0xFFFFFFFF, 4);
    Put(out, entry.name.size(), 2);
    Put(out, 20, 2);
    out += entry.name;
    Put(out, 1, 2);
    Put(out, 16, 2);
    Put(out, size, 8);
    Put(out, packed.size(), 8);
    out += packed;
    directory += "PK\x01\x02";
    Put(directory, 45, 2);
    Put(directory, 45, 2);
    Put(directory, 0, 2);
    Put(directory, method, 2);
    Put(directory, 0, 4);
    Put(directory, crc, 4);
    Put(directory, packed.size(), 4);
    Put(directory, size, 4);
    Put(directory, entry.name.size(), 2);
    Put(directory, 0, 12);
    Put(directory, header_at, 4);
    directory += entry.name;
  }
  const std::size_t directory_at = out.size();
  out += directory;
  out += "PK\x05\x06";
  Put(out, 0, 4);
  Put(out, entries.size(), 2);
  Put(out, entries.size(), 2);
  Put(out, directory.size(), 4);
  Put(out, directory_at, 4);
  Put(out, 0, 2);
  return out;
}

std::string ErrorOf(const std::string& bytes) {
  constexpr std::string_view kNames[] = {"a"};
  const auto parsed = ParseNpz(bytes, kNames);
  return parsed ? "parsed" : parsed.error().message;
}

TEST(Npz, ReadsStoredAndDeflatedArraysAndIgnoresOthers) {
  const std::string two_by_three = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string archive = Zip({{"a.npy", Vector({1.5, -2.0, 1e300})},
                                   {"other.txt", "not an array"},
                                   {"b.npy", Npy(two_by_three, {1, 2, 3, 4, 5, 6}), true}});
  constexpr std::string_view kNames[] = {"b", "a"};
  const auto arrays = ParseNpz(archive, kNames);
  ASSERT_TRUE(arrays) << arrays.error().message;
  EXPECT_EQ((*arrays)[0].shape, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ((*arrays)[0].values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ((*arrays)[1].shape, std::vector<std::size_t>{3});
  EXPECT_EQ((*arrays)[1].values, (std::vector<double>{1.5, -2.0, 1e300}));
}

TEST(Npz, ColumnMajorArraysAreTransposed) {
  const auto array = ParseNpy(
      Npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", {1, 4, 2, 5, 3, 6}));
  ASSERT_TRUE(array);
  EXPECT_EQ(array->values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Npz, BigEndianArraysAreSwapped) {
  std::string bytes = Npy("{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", {});
  bytes += std::string("\x40\x09\x00\x00\x00\x00\x00\x00", 8);
  const auto array = ParseNpy(bytes);
  ASSERT_TRUE(array);
  EXPECT_EQ(array->values, std::vector<double>{3.125});
}

TEST(Npz, EveryFaultHasItsMessage) {
  const std::string float32 = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  const std::string three = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1), }";
  const std::string longer = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
  const std::string huge =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "no NPZ file"},
      {"hello", "no NPZ file"},
      {Zip({{"b.npy", Vector({1.0})}}), "no array a"},
      {Zip({{"a.npy", "text"}}), "no .npy array"},
      {Zip({{"a.npy", Npy("{'descr': '<f8'}", {1.0})}}), "unreadable .npy header"},
      {Zip({{"a.npy", Npy("{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}", {1.0})}}),
       "unreadable .npy header"},
      {Zip({{"a.npy", Npy(float32, {1.0})}}), "must hold float64 values, got type '<f4'"},
      {Zip({{"a.npy", Npy(three, {1.0})}}), "one or two dimensions"},
      {Zip({{"a.npy", Npy(huge, {1.0})}}), "at most 256 MiB"},
      {Zip({{"a.npy", Npy(longer, {1.0})}}), "8 bytes of data where its shape needs 16"},
      {Zip({{"a.npy", Vector({1.0, nan})}}), "not finite (element 1)"},
      {Zip({{"a.npy", Vector({1.0}), true, 4096}}), "damaged compressed member"},
      {Zip({{"a.npy", Vector({1.0}), true, 200U << 20}}), "damaged compressed member"},
      {Zip({{"a.npy", Vector({1.0}), false, 4096}}), "two different sizes"},
      {Zip({{"a.npy", Vector({1.0}), true, 0xFFFFFFFF}}), "larger than 256 MiB"},
  };
  for (const auto& [bytes, message] : cases) {
    EXPECT_NE(ErrorOf(bytes).find(message), std::string::npos)
        << ErrorOf(bytes) << " / " << message;
  }
  std::string changed = Zip({{"a.npy", Vector({1.0})}});
  changed[changed.find("NUMPY") + 60] ^= 1;
  EXPECT_NE(ErrorOf(changed).find("wrong checksum"), std::string::npos) << ErrorOf(changed);
}

TEST(Npz, DamagedBytesAndCutFilesNeverCrash) {
  const std::string good =
      Zip({{"a.npy", Vector({1.0, 2.0, 3.0}), true}, {"b.npy", Vector({4.0})}});
  ASSERT_EQ(ErrorOf(good), "parsed");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(ErrorOf(good.substr(0, length)), "parsed") << length;
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {1, 0x80, 0xFF}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      refused += ErrorOf(bad) != "parsed" ? 1U : 0U;
    }
  }
  EXPECT_GT(refused, good.size());
}

TEST(Npz, FileErrorsNameTheFile) {
  constexpr std::string_view kNames[] = {"a"};
  const auto missing = ReadNpz("/nonexistent/profile.npz", kNames);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().Text(), "/nonexistent/profile.npz: no such file");
  const auto directory = ReadNpz("/", kNames);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().Text(), "/: is a directory, a file is needed");

  const std::string path = testing::TempDir() + "npz_test.npz";
  std::ofstream(path, std::ios::binary) << Zip({{"a.npy", Vector({7.0})}});
  const auto read = ReadNpz(path, kNames);
  std::remove(path.c_str());
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0].values, std::vector<double>{7.0});
}

}  // namespace
}  // namespace dynosim::timing
