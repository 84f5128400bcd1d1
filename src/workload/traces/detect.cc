// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/detect.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "base/text_file.h"
#include "workload/traces/json_rows.h"

namespace dynosim::workload {
namespace {

struct Mark {
  std::string_view name;  // member of the first object, or text of the header line
  std::string_view format;
};

// The first mark that is found decides.
constexpr std::array kJsonMarks = {
    Mark{"hash_id_scope", ""},  // two formats; see below
    Mark{"event_type", "dynamo"},
    Mark{"event", "dynamo"},
    Mark{"num_turns", "applied_compute_agentic"},
    Mark{"input_toks", "lengths"},
    Mark{"chat_id", "bailian"},
    Mark{"hash_ids", "mooncake"},
};
constexpr std::array kCsvMarks = {
    Mark{"ContextTokens", "azure"},
    Mark{"Request tokens", "burstgpt"},
    Mark{"input_toks", "lengths"},
};

// Names of the members of the first object.
std::vector<std::string> FirstMembers(const std::string& path, std::string_view text) {
  JsonRows rows(path, text, JsonRows::Framing::kObjects);
  std::vector<std::string> names;
  if (rows.NextRow()) {
    while (rows.NextMember()) {
      names.emplace_back(rows.Key());
      rows.Skip();
    }
  }
  return names;
}

std::string_view JsonFormat(const std::string& path, std::string_view text) {
  const std::vector<std::string> names = FirstMembers(path, text);
  const auto has = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Mark& mark : kJsonMarks) {
    if (has(mark.name)) {
      return !mark.format.empty() ? mark.format : has("requests") ? "weka" : "agentic_mooncake";
    }
  }
  return "";
}

std::string_view CsvFormat(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  for (const Mark& mark : kCsvMarks) {
    if (header.find(mark.name) != header.npos) {
      return mark.format;
    }
  }
  return "";
}

}  // namespace

Result<std::string> DetectFormat(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return "weka";
  }
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  const std::string_view text = file.Text();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != text.npos && text[first] == '{';
  const std::string_view format =
      is_json ? JsonFormat(path, text) : CsvFormat(text.substr(std::min(first, text.size())));
  if (format.empty()) {
    return FailedError(path, "the format of the trace is not recognised; name it with --format");
  }
  return std::string(format);
}

}  // namespace dynosim::workload
