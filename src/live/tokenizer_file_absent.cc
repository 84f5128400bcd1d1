// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "base/result.h"
#include "live/tokenizer.h"
#include "live/tokenizer_file.h"

namespace dynosim::live {

bool ReadsTokenizerFiles() { return false; }

Result<std::shared_ptr<const Tokenizer>> OpenTokenizerFile(const std::string& flag,
                                                           const std::string& /*path*/) {
  return UsageError(flag,
                    "this program was built without support for tokenizer.json files; build it "
                    "with `make build-tokenizers` (CMake: -DDYNO_HF_TOKENIZER=ON, needs cargo)");
}

}  // namespace dynosim::live
