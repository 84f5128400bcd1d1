// SPDX-License-Identifier: Apache-2.0
#include "base/unpacker.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <zconf.h>
#include <zlib.h>
#include <zstd.h>

#include "base/result.h"

namespace dynosim {
namespace {

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }
bool IsZstd(std::string_view bytes) { return bytes.starts_with("\x28\xB5\x2F\xFD"); }

class Gunzip final : public Unpacker {
 public:
  explicit Gunzip(std::string path) : path_(std::move(path)) {}
  ~Gunzip() override { inflateEnd(&stream_); }

  bool Init() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    return inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }

  Result<void> Step(std::string_view& packed, std::span<char>& room) override {
    while (!packed.empty() || !flushed_) {
      if (ended_) {
        // Another member may follow; anything else behind the last one is not gzip.
        if (!IsGzip(packed) || inflateReset(&stream_) != Z_OK) {
          return FailedError(path_, "gzip data is followed by other bytes");
        }
        ended_ = false;
      }
      const int status = Inflate(packed, room);
      ended_ = status == Z_STREAM_END;
      if (!ended_ && status != Z_OK && status != Z_BUF_ERROR) {
        return FailedError(path_, fmt::format("gzip data is damaged ({})",
                                              stream_.msg == nullptr ? "unknown" : stream_.msg));
      }
      // What zlib still holds comes out with more room only.
      flushed_ = ended_ || !room.empty();
      if (room.empty()) {
        break;
      }
    }
    return {};
  }
  bool AtEnd() const override { return ended_; }
  Error CutOff() const override { return {ErrorKind::kFailed, path_, "gzip data is cut off"}; }

 private:
  int Inflate(std::string_view& packed, std::span<char>& room) {
    constexpr std::size_t kStep = std::size_t{1} << 30;
    const std::size_t input = std::min(packed.size(), kStep);
    const std::size_t output = std::min(room.size(), kStep);
    // zlib does not write to its input; its type is only missing the const.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(input);
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(output);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    packed.remove_prefix(input - stream_.avail_in);
    room = room.subspan(output - stream_.avail_out);
    return status;
  }

  std::string path_;
  z_stream stream_{};
  bool ended_ = false;
  bool flushed_ = true;
};

class Unzstd final : public Unpacker {
 public:
  explicit Unzstd(std::string path) : path_(std::move(path)) {}

  bool Init() { return stream_ != nullptr; }

  Result<void> Step(std::string_view& packed, std::span<char>& room) override {
    ZSTD_inBuffer input{.src = packed.data(), .size = packed.size(), .pos = 0};
    while (!room.empty()) {
      ZSTD_outBuffer output{.dst = room.data(), .size = room.size(), .pos = 0};
      hint_ = ZSTD_decompressStream(stream_.get(), &output, &input);
      room = room.subspan(output.pos);
      if (ZSTD_isError(hint_) != 0) {
        return FailedError(path_,
                           fmt::format("zstd data is damaged ({})", ZSTD_getErrorName(hint_)));
      }
      if (input.pos == input.size && (hint_ == 0 || !room.empty())) {
        break;
      }
    }
    packed.remove_prefix(input.pos);
    return {};
  }
  bool AtEnd() const override { return hint_ == 0; }
  Error CutOff() const override { return {ErrorKind::kFailed, path_, "zstd data is cut off"}; }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  std::string path_;
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  std::size_t hint_ = 0;
};

template <class Kind>
Result<std::unique_ptr<Unpacker>> Make(const std::string& path) {
  auto unpacker = std::make_unique<Kind>(path);
  if (!unpacker->Init()) {
    return FailedError(path, "cannot be unpacked: out of memory");
  }
  return unpacker;
}

}  // namespace

Result<std::unique_ptr<Unpacker>> MakeUnpacker(const std::string& path, std::string_view first) {
  if (IsGzip(first)) {
    return Make<Gunzip>(path);
  }
  if (IsZstd(first)) {
    return Make<Unzstd>(path);
  }
  return std::unique_ptr<Unpacker>();
}

}  // namespace dynosim
