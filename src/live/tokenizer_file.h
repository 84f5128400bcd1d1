// SPDX-License-Identifier: Apache-2.0
// Opens the tokenizer of a model. Optional at build time (DYNO_HF_TOKENIZER): the folder
// hf_tokenizer/ implements this with the `tokenizers` crate, tokenizer_file_absent.cc without it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "live/tokenizer.h"

namespace dynosim::live {

// Whether this build can.
bool ReadsTokenizerFiles();

// `path`: a tokenizer.json, or a folder with one. Errors are usage errors of `flag`.
Result<std::shared_ptr<const Tokenizer>> OpenTokenizerFile(const std::string& flag,
                                                           const std::string& path);

}  // namespace dynosim::live
