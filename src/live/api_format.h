// SPDX-License-Identifier: Apache-2.0
// ApiFormat: how the answer to one request is written, as server-sent events and as one document
// (chapter 95, section 6). One object per request; what does not change in a stream is rendered
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "live/api_error.h"
#include "live/api_request.h"

namespace dynosim::live {

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t reasoning_tokens = 0;
};

// One piece of output of one choice.
struct Delta {
  std::uint32_t choice = 0;
  std::string_view text;
  bool reasoning = false;
  bool last = false;                   // the output limit is reached
  bool first = false;                  // nothing was written for this choice before
  std::span<const std::uint32_t> ids;  // tokens of this piece
  Usage usage;                         // of the choice so far
};

struct ChoiceResult {
  std::string text;
  std::string reasoning;
  std::string finish;  // length or stop
  std::vector<std::uint32_t> ids;
  Usage usage;
};

// What all answers of one request carry.
struct AnswerHead {
  std::string id;  // without the prefix of the API: a UUID
  std::int64_t created_s = 0;
  std::string model;
  std::string extension;  // JSON object for the key `nvext` of final documents, empty for none
};

class ApiFormat {
 public:
  ApiFormat() = default;
  ApiFormat(const ApiFormat&) = delete;
  ApiFormat& operator=(const ApiFormat&) = delete;
  virtual ~ApiFormat() = default;

  // Events before any output.
  virtual void Begin(std::string& /*out*/) {}
  virtual void Write(const Delta& delta, std::string& out) = 0;
  virtual void Finish(std::uint32_t choice, std::string_view reason, const Usage& usage,
                      std::string& out) = 0;
  // The end of the stream. `choices` are kept only by formats that want them (KeepsText).
  virtual void End(const Usage& usage, std::span<const ChoiceResult> choices, std::string& out) = 0;
  virtual bool KeepsText() const { return false; }
  // The whole answer of a request that does not stream.
  virtual std::string Document(const Usage& usage, std::span<const ChoiceResult> choices) = 0;
  // An error after the stream has begun, and its end.
  virtual void Error(const ApiError& error, std::string& out);
};

std::unique_ptr<ApiFormat> MakeFormat(const ApiRequest& request, const AnswerHead& head);

}  // namespace dynosim::live
