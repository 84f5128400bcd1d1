// SPDX-License-Identifier: Apache-2.0
// The reference page: every flag, every field of the documents, as Markdown.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/command_tree.h"

namespace dynosim::cli {

std::string ReferencePage(const CommandFacts& program);

// A table of the fields of an object, by dotted path, from its JSON schema.
std::string FieldTable(const Json& schema);

}  // namespace dynosim::cli
