// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "cli/command_tree.h"
#include "cli/help.h"
#include "cli/help_texts.h"
#include "engine/settings_decode.h"
#include "router/config.h"
#include "scenario/prediction.h"
#include "timing/registry.h"

namespace dynosim::cli {
namespace {

constexpr std::string_view kHead =
    "# Reference\n\n"
    "Every command, flag and field. The program writes this page from its own declarations\n"
    "(`build/dynosim reference > docs/reference.md`); a test fails when the two differ.\n\n"
    "Times are in ms where a name ends in `_ms`, and lengths in tokens. `--help` of a command "
    "shows\n"
    "its common flags, `--help-all` the others too.\n\n";

// A cell of a table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '|' ? "\\|" : std::string(1, c);
  }
  return out;
}

std::string Code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

std::string AllowedValues(const ArgumentFacts& argument) {
  if (!argument.choices.empty()) {
    return fmt::format("`{}`", fmt::join(argument.choices, "`, `"));
  }
  return argument.range;
}

std::string FlagTables(const CommandFacts& command) {
  std::vector<std::string> groups;
  for (const ArgumentFacts& argument : command.arguments) {
    if (std::ranges::find(groups, argument.group) == groups.end()) {
      groups.push_back(argument.group);
    }
  }
  std::string out;
  for (const std::string& group : groups) {
    std::string rows;
    for (const ArgumentFacts& argument : command.arguments) {
      if (argument.group == group && argument.names.back() != "--help" &&
          argument.names.back() != "--help-all") {
        rows += fmt::format("| {} | {} | {}{} |\n", Code(Cell(FlagText(argument))),
                            Cell(AllowedValues(argument)), Cell(argument.help),
                            argument.required ? "; required" : "");
      }
    }
    if (!rows.empty()) {
      const std::string title = group == "Options" || group == "Positionals" ? "flag" : group;
      out += fmt::format("| {} | values | what |\n| --- | --- | --- |\n{}\n", title, rows);
    }
  }
  return out;
}

std::string CommandSection(const CommandFacts& command) {
  std::string out = fmt::format("### dynosim {}\n\n{}.\n\n```text\n{}\n```\n\n", command.path,
                                command.help, UsageOf(command));
  return out + FlagTables(command);
}

// "integer, 1 to 5", "`lifo`, `fifo`", "true, false"
std::string TypeText(const Json& type) {
  if (const Json* const choices = type.Find("enum"); choices != nullptr) {
    std::vector<std::string> names;
    for (const Json& choice : choices->array()) {
      names.push_back(choice.is_string() ? choice.string() : DumpJson(choice));
    }
    return fmt::format("`{}`", fmt::join(names, "`, `"));
  }
  if (const Json* const constant = type.Find("const"); constant != nullptr) {
    return Code(constant->string());
  }
  if (const Json* const any = type.Find("anyOf"); any != nullptr) {
    std::vector<std::string> names;
    for (const Json& one : any->array()) {
      names.push_back(TypeText(one));
    }
    return fmt::format("{}", fmt::join(names, " or "));
  }
  const Json* const name = type.Find("type");
  if (name == nullptr) {
    return "any";
  }
  std::string text = name->is_string() ? name->string() : "";
  for (std::size_t i = 0; name->is_array() && i < name->array().size(); ++i) {
    text += (i == 0 ? "" : " or ") + name->array()[i].string();
  }
  text = text == "boolean" ? "true, false" : text == "array" ? "list" : text;
  const Json* const min = type.Find("minimum");
  const Json* const above = type.Find("exclusiveMinimum");
  const Json* const max = type.Find("maximum");
  // Above this they say no more than the size of the integer.
  const bool bounded = max != nullptr && max->number() < 2147483647.0;
  if (above != nullptr) {
    text += ", above " + DumpJson(*above);
  } else if (min != nullptr && bounded) {
    text += fmt::format(", {:g} to {:g}", min->number(), max->number());
  } else if (min != nullptr) {
    text += fmt::format(", {:g} or more", min->number());
  }
  return text;
}

std::string DefaultText(const Json* value) {
  if (value == nullptr) {
    return "";
  }
  return Code(value->is_string() ? value->string() : DumpJson(*value));
}

std::string TextOf(const Json& type) {
  const Json* const text = type.Find("description");
  return text == nullptr ? "" : text->string();
}

void AppendFields(const Json& schema, const std::string& path, std::string& rows);

// The object inside a schema that also allows null.
const Json& ObjectOf(Json&&) = delete;
const Json& ObjectOf(const Json& schema) {
  if (const Json* const any = schema.Find("anyOf"); any != nullptr) {
    const Json& first = any->array().front();
    if (first.Find("properties") != nullptr || first.Find("oneOf") != nullptr) {
      return first;
    }
  }
  return schema;
}

void AppendField(const std::string& path, const Json& type, bool required, std::string& rows) {
  const Json& object = ObjectOf(type);
  const bool nested = object.Find("properties") != nullptr || object.Find("oneOf") != nullptr;
  rows +=
      fmt::format("| {} | {} | {} | {} |\n", Code(path), nested ? "object" : TypeText(type),
                  required ? "required" : DefaultText(type.Find("default")), Cell(TextOf(type)));
  if (nested) {
    AppendFields(object, path + ".", rows);
  }
}

void AppendObject(const Json& schema, const std::string& path, std::string& rows) {
  const Json* const required = schema.Find("required");
  for (const Json::Member& member : schema.Find("properties")->object()) {
    bool needed = false;
    for (std::size_t i = 0; required != nullptr && i < required->array().size(); ++i) {
      needed = needed || required->array()[i].string() == member.first;
    }
    AppendField(path + member.first, member.second, needed, rows);
  }
}

void AppendFields(const Json& schema, const std::string& path, std::string& rows) {
  if (const Json* const forms = schema.Find("oneOf"); forms != nullptr) {
    for (const Json& form : forms->array()) {
      AppendObject(form, path, rows);
    }
    return;
  }
  AppendObject(schema, path, rows);
}

std::string Examples(const CommandFacts& program) {
  std::string out =
      "## Examples\n\n"
      "Those of `--help`. They run one after the other in the folder of the repository.\n\n";
  for (const CommandFacts* const command : LeafCommands(program)) {
    for (const Example& example : HelpTextOf(command->path).examples) {
      out += example.mark.empty() ? "" : fmt::format("<!-- {} -->\n", example.mark);
      out += fmt::format("```sh\n{}\n```\n\n", example.text);
    }
  }
  return out;
}

}  // namespace

std::string FieldTable(const Json& schema) {
  std::string rows;
  AppendFields(schema, "", rows);
  return "| field | values | default | what |\n| --- | --- | --- | --- |\n" + rows + "\n";
}

std::string ReferencePage(const CommandFacts& program) {
  std::string out(kHead);
  out += "## Commands\n\n";
  for (const CommandFacts* const command : LeafCommands(program)) {
    out += CommandSection(*command);
  }
  out +=
      "## The document of predict\n\n"
      "With `--stack dynamo`; `router` is refused without it. [predict.md](predict.md) explains "
      "the\n"
      "sections. An object with several forms has the field `type` once for each; the fields "
      "after\n"
      "it belong to that form. In a document of [recommend](recommend.md) fields may have several\n"
      "values.\n\n" +
      FieldTable(scenario::PredictionSchema(scenario::Stack::kDynamo)) +
      "## Engine configuration\n\n"
      "The JSON object of `--extra-engine-args`, `--prefill-engine-args` and "
      "`--decode-engine-args`.\n"
      "The fields of `engine` may also stand at the top, without `engine`.\n\n" +
      FieldTable(engine::EngineSettingsSchema()) +
      "### Timing models\n\n"
      "The object `timing_model`: how long a pass takes.\n\n" +
      FieldTable(timing::TimingModelSchema()) +
      "## Router configuration\n\n"
      "The JSON object of `--router-config`; [router.md](router.md) has the formula.\n\n" +
      FieldTable(router::KvRouterConfigSchema()) + Examples(program);
  while (out.ends_with("\n\n")) {
    out.pop_back();
  }
  return out;
}

}  // namespace dynosim::cli
