// SPDX-License-Identifier: Apache-2.0
// C interface of the Rust crate in this folder (lib.rs). Results go to functions of the caller and
// are valid during the call only. Nothing unwinds across: a panic becomes an error text, which is
// one line. A handle may be used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct DynoHfTokenizer;

using DynoHfText = void (*)(void* out, const char* bytes, std::size_t size);
using DynoHfIds = void (*)(void* out, const std::uint32_t* ids, std::size_t count);

// Where an error text goes.
struct DynoHfError {
  DynoHfText text;
  void* out;
};

// From the bytes of a tokenizer.json; null after an error.
DynoHfTokenizer* dyno_hf_open(const char* json, std::size_t size, DynoHfError error);
// Null is allowed.
void dyno_hf_free(DynoHfTokenizer* tokenizer);

// Ids of a text; `add_special`: with the tokens that the file's post-processor puts around it.
// Bytes that are no UTF-8 become U+FFFD. False after an error.
bool dyno_hf_encode(const DynoHfTokenizer* tokenizer, const char* text, std::size_t size,
                    bool add_special, DynoHfIds ids, void* out, DynoHfError error);
// Text of ids as a whole; ids that are none are left out. False after an error.
bool dyno_hf_decode(const DynoHfTokenizer* tokenizer, const std::uint32_t* ids, std::size_t count,
                    bool skip_special, DynoHfText text, void* out, DynoHfError error);

// One more than the largest id.
std::uint32_t dyno_hf_id_end(const DynoHfTokenizer* tokenizer);
// Id of a token by its written form; false when there is none.
bool dyno_hf_find(const DynoHfTokenizer* tokenizer, const char* token, std::size_t size,
                  std::uint32_t* id);
// True for added tokens that the file calls special.
bool dyno_hf_is_special(const DynoHfTokenizer* tokenizer, std::uint32_t id);
// Bytes that the token adds in the middle of a text, which may be part of a character; none for ids
// that are no token. False after an error.
bool dyno_hf_token_bytes(const DynoHfTokenizer* tokenizer, std::uint32_t id, DynoHfText bytes,
                         void* out, DynoHfError error);

}  // extern "C"
