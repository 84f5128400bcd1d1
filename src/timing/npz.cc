// SPDX-License-Identifier: Apache-2.0
// ZIP central directory, inflation and the .npy header, read with bounds checks throughout.
#include "timing/npz.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <zconf.h>
#include <zlib.h>

#include "base/mapped_file.h"
#include "base/result.h"

namespace dynosim::timing {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxArrayBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxMembers = 4096;

std::unexpected<Error> Bad(std::string message) { return FailedError("", std::move(message)); }

// Little-endian integers of a byte range; false when the range is too short.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  bool Read(std::size_t at, T& out) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) {
      return false;
    }
    T value = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) {
      value = static_cast<T>(static_cast<std::uint64_t>(value) << 8 |
                             static_cast<unsigned char>(bytes_[at + i]));
    }
    out = value;
    return true;
  }
  std::optional<std::string_view> Slice(std::size_t at, std::size_t length) const {
    if (at > bytes_.size() || bytes_.size() - at < length) {
      return std::nullopt;
    }
    return bytes_.substr(at, length);
  }

 private:
  std::string_view bytes_;
};

struct Member {
  std::string_view name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t packed = 0;
  std::uint32_t size = 0;
  std::uint32_t header_at = 0;
};

// Offset of the end record of the central directory: the last one whose comment reaches the end.
std::optional<std::size_t> FindEnd(std::string_view bytes) {
  constexpr std::size_t kEndBytes = 22;
  constexpr std::size_t kMaxComment = 0xFFFF;
  if (bytes.size() < kEndBytes) {
    return std::nullopt;
  }
  const Bytes read(bytes);
  const std::size_t last = bytes.size() - kEndBytes;
  const std::size_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    std::uint16_t comment = 0;
    if (bytes.substr(at, 4) == "PK\x05\x06" && read.Read(at + 20, comment) &&
        at + kEndBytes + comment == bytes.size()) {
      return at;
    }
  }
  return std::nullopt;
}

Result<std::vector<Member>> ReadDirectory(std::string_view bytes) {
  const auto end = FindEnd(bytes);
  if (!end) {
    return Bad("is no NPZ file (no ZIP directory)");
  }
  const Bytes read(bytes);
  std::uint16_t count = 0;
  std::uint32_t start = 0;
  if (!read.Read(*end + 10, count) || !read.Read(*end + 16, start) || count > kMaxMembers) {
    return Bad("has an unusable ZIP directory");
  }
  std::vector<Member> members;
  std::size_t at = start;
  for (std::uint16_t i = 0; i < count; ++i) {
    Member member;
    std::uint16_t name = 0;
    std::uint16_t extra = 0;
    std::uint16_t comment = 0;
    const auto signature = read.Slice(at, 4);
    const bool ok = signature == std::string_view("PK\x01\x02") &&
                    read.Read(at + 8, member.flags) && read.Read(at + 10, member.method) &&
                    read.Read(at + 16, member.crc) && read.Read(at + 20, member.packed) &&
                    read.Read(at + 24, member.size) && read.Read(at + 28, name) &&
                    read.Read(at + 30, extra) && read.Read(at + 32, comment) &&
                    read.Read(at + 42, member.header_at);
    const auto text = read.Slice(at + 46, name);
    if (!ok || !text) {
      return Bad("has a damaged ZIP directory");
    }
    member.name = *text;
    members.push_back(member);
    at += std::size_t{46} + name + extra + comment;
  }
  return members;
}

Result<std::string> Inflate(std::string_view packed, std::size_t size) {
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return Bad("cannot be inflated");
  }
  // zlib wants a pointer to non-const input but does not write to it.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  const std::size_t written = stream.total_out;
  inflateEnd(&stream);
  if (status != Z_STREAM_END || written != size) {
    return Bad("has a damaged compressed member");
  }
  return out;
}

Result<std::string> Unpack(std::string_view bytes, const Member& member) {
  constexpr std::uint16_t kEncrypted = 1;
  if ((member.flags & kEncrypted) != 0 || (member.method != 0 && member.method != 8)) {
    return Bad("uses encryption or a compression other than deflate");
  }
  if (member.size > kMaxArrayBytes || member.packed > kMaxFileBytes) {
    return Bad("is larger than " + std::to_string(kMaxArrayBytes >> 20) + " MiB");
  }
  // Deflate cannot shrink data further than this; a larger claim is no reason to allocate.
  constexpr std::size_t kMaxExpansion = 1032;
  if (member.size / kMaxExpansion > member.packed) {
    return Bad("has a damaged compressed member");
  }
  const Bytes read(bytes);
  std::uint16_t name = 0;
  std::uint16_t extra = 0;
  const std::size_t header = member.header_at;
  if (read.Slice(header, 4) != std::string_view("PK\x03\x04") || !read.Read(header + 26, name) ||
      !read.Read(header + 28, extra)) {
    return Bad("has no header where the ZIP directory says");
  }
  const auto packed = read.Slice(header + 30 + name + extra, member.packed);
  if (!packed) {
    return Bad("is cut short");
  }
  std::string data;
  if (member.method == 0) {
    if (member.packed != member.size) {
      return Bad("has two different sizes in the ZIP directory");
    }
    data = std::string(*packed);
  } else {
    DYNO_TRY(data, Inflate(*packed, member.size));
  }
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  if (crc != member.crc) {
    return Bad("has a wrong checksum");
  }
  return data;
}

// The header of an .npy file is the text of a Python dict with three known keys.
class NpyHeader {
 public:
  explicit NpyHeader(std::string_view text) : text_(text) {}

  bool Parse() {
    if (!Take('{')) {
      return false;
    }
    while (!Take('}')) {
      std::string_view key;
      if (!Quoted(key) || !Take(':') || !Value(key)) {
        return false;
      }
      if (!Take(',')) {
        return Take('}') && Complete();
      }
    }
    return Complete();
  }

  std::string_view descr;
  bool fortran_order = false;
  std::vector<std::size_t> shape;

 private:
  bool Complete() const { return seen_ == 7; }
  bool See(unsigned bit) {
    const bool first = (seen_ & bit) == 0;
    seen_ |= bit;
    return first;
  }
  bool Value(std::string_view key) {
    if (key == "descr") {
      return See(1) && Quoted(descr);
    }
    if (key == "fortran_order") {
      fortran_order = Word("True");
      return See(2) && (fortran_order || Word("False"));
    }
    return key == "shape" && See(4) && Tuple();
  }
  void Space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) {
      text_.remove_prefix(1);
    }
  }
  bool Take(char c) {
    Space();
    if (!text_.starts_with(c)) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }
  bool Word(std::string_view word) {
    Space();
    if (!text_.starts_with(word)) {
      return false;
    }
    text_.remove_prefix(word.size());
    return true;
  }
  bool Quoted(std::string_view& out) {
    if (!Take('\'')) {
      return false;
    }
    const std::size_t end = text_.find('\'');
    if (end == std::string_view::npos) {
      return false;
    }
    out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool Tuple() {
    if (!Take('(')) {
      return false;
    }
    while (!Take(')')) {
      Space();
      std::size_t length = 0;
      const auto read = std::from_chars(text_.data(), text_.data() + text_.size(), length);
      if (read.ec != std::errc() || shape.size() == 32) {
        return false;
      }
      text_.remove_prefix(static_cast<std::size_t>(read.ptr - text_.data()));
      shape.push_back(length);
      if (!Take(',')) {
        return Take(')');
      }
    }
    return true;
  }

  std::string_view text_;
  unsigned seen_ = 0;
};

// Elements of a shape; empty when the product is too large.
std::optional<std::size_t> Elements(std::span<const std::size_t> shape) {
  std::size_t count = 1;
  for (const std::size_t length : shape) {
    if (length != 0 && count > kMaxArrayBytes / sizeof(double) / length) {
      return std::nullopt;
    }
    count *= length;
  }
  return count;
}

double DoubleAt(const char* at, bool big_endian) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  if (big_endian != (std::endian::native == std::endian::big)) {
    bits = __builtin_bswap64(bits);
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

Result<NpyArray> ParseNpy(std::string_view bytes) {
  const Bytes read(bytes);
  std::uint8_t version = 0;
  std::uint32_t length = 0;
  std::size_t start = 10;
  bool ok = bytes.starts_with("\x93NUMPY") && read.Read(6, version) && version >= 1 && version <= 3;
  if (ok && version == 1) {
    std::uint16_t short_length = 0;
    ok = read.Read(8, short_length);
    length = short_length;
  } else if (ok) {
    ok = read.Read(8, length);
    start = 12;
  }
  const auto text = read.Slice(start, length);
  if (!ok || !text) {
    return Bad("is no .npy array");
  }
  NpyHeader header(*text);
  if (!header.Parse()) {
    return Bad("has an unreadable .npy header");
  }
  if (header.descr != "<f8" && header.descr != ">f8") {
    return Bad("must hold float64 values, got type '" + std::string(header.descr.substr(0, 20)) +
               "'");
  }
  const auto count = Elements(header.shape);
  if (header.shape.empty() || header.shape.size() > 2 || !count) {
    return Bad("must have one or two dimensions and at most " +
               std::to_string(kMaxArrayBytes >> 20) + " MiB");
  }
  const std::string_view data = bytes.substr(start + length);
  if (data.size() != *count * sizeof(double)) {
    return Bad("has " + std::to_string(data.size()) + " bytes of data where its shape needs " +
               std::to_string(*count * sizeof(double)));
  }
  NpyArray array{.shape = header.shape, .values = std::vector<double>(*count)};
  const std::size_t columns = header.shape.back();
  const std::size_t rows = header.shape.size() == 2 ? header.shape[0] : 1;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t from = header.fortran_order ? (i % columns) * rows + i / columns : i;
    array.values[i] = DoubleAt(data.data() + from * sizeof(double), header.descr[0] == '>');
    if (!std::isfinite(array.values[i])) {
      return Bad("holds a value that is not finite (element " + std::to_string(i) + ")");
    }
  }
  return array;
}

Result<std::vector<NpyArray>> ParseNpz(std::string_view bytes,
                                       std::span<const std::string_view> names) {
  DYNO_TRY(const std::vector<Member> members, ReadDirectory(bytes));
  std::vector<NpyArray> arrays;
  for (const std::string_view name : names) {
    const std::string file = std::string(name) + ".npy";
    const auto found = std::ranges::find(members, std::string_view(file), &Member::name);
    if (found == members.end()) {
      return Bad("has no array " + std::string(name));
    }
    auto data = Unpack(bytes, *found);
    auto array = data ? ParseNpy(*data) : std::unexpected(std::move(data).error());
    if (!array) {
      return Bad("array " + std::string(name) + " " + array.error().message);
    }
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

Result<std::vector<NpyArray>> ReadNpz(const std::string& path,
                                      std::span<const std::string_view> names) {
  const auto fail = [&](const std::string& message) {
    return FailedError("", path + ": " + message);
  };
  DYNO_TRY(const MappedFile file, MappedFile::Open(path));
  const std::string_view bytes = file.Text();
  if (bytes.size() > kMaxFileBytes) {
    return fail("is larger than " + std::to_string(kMaxFileBytes >> 20) + " MiB");
  }
  auto arrays = ParseNpz(bytes, names);
  if (!arrays) {
    return fail(arrays.error().message);
  }
  return arrays;
}

}  // namespace dynosim::timing
