// SPDX-License-Identifier: Apache-2.0
// Each script is static: it holds every command and flag, and asks the program nothing.
#include "cli/completion.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_tree.h"

namespace dynosim::cli {
namespace {

// Words that stand for the path of a file or folder.
constexpr std::array<std::string_view, 7> kPaths = {"FILE",   "PATH",   "DIR",  "REPORT",
                                                    "A.json", "B.json", "MODEL"};

bool IsPath(const ArgumentFacts& argument) {
  return std::ranges::find(kPaths, argument.value) != kPaths.end();
}

std::string Replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string NameOf(const CommandFacts& command) {
  return command.path.substr(command.path.rfind(' ') + 1);
}

// The program and every command below it, parents first.
void Collect(const CommandFacts& command, std::vector<const CommandFacts*>& out) {
  out.push_back(&command);
  for (const CommandFacts& below : command.commands) {
    Collect(below, out);
  }
}

std::vector<const CommandFacts*> AllCommands(const CommandFacts& program) {
  std::vector<const CommandFacts*> all;
  Collect(program, all);
  return all;
}

// Case patterns "replay --num-workers"|... of the flags that `wanted` accepts.
template <class Wanted>
std::string Patterns(const CommandFacts& program, const Wanted& wanted) {
  std::vector<std::string> patterns;
  for (const CommandFacts* const command : AllCommands(program)) {
    for (const ArgumentFacts& argument : command->arguments) {
      if (argument.positional || argument.value.empty() || !wanted(argument)) {
        continue;
      }
      for (const std::string& name : argument.names) {
        patterns.push_back(fmt::format("\"{} {}\"", command->path, name));
      }
    }
  }
  return fmt::format("{}", fmt::join(patterns, "|"));
}

// Flags with a fixed set of values, one case each.
std::string BashChoices(const CommandFacts& program) {
  std::string out;
  for (const CommandFacts* const command : AllCommands(program)) {
    for (const ArgumentFacts& argument : command->arguments) {
      if (argument.positional || argument.choices.empty()) {
        continue;
      }
      out += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", command->path, argument.names.back(),
                         fmt::join(argument.choices, " "));
    }
  }
  return out;
}

// What may follow a command: its flags, and what is no flag.
std::string BashWords(const CommandFacts& program) {
  std::string out;
  for (const CommandFacts* const command : AllCommands(program)) {
    std::vector<std::string> flags;
    std::vector<std::string> words;
    bool files = false;
    for (const ArgumentFacts& argument : command->arguments) {
      if (argument.positional) {
        files = files || IsPath(argument);
        words.insert(words.end(), argument.choices.begin(), argument.choices.end());
      } else {
        flags.insert(flags.end(), argument.names.begin(), argument.names.end());
      }
    }
    for (const CommandFacts& below : command->commands) {
      words.push_back(NameOf(below));
    }
    out += fmt::format("    \"{}\") flags=\"{}\" words=\"{}\" files={} ;;\n", command->path,
                       fmt::join(flags, " "), fmt::join(words, " "), files ? 1 : 0);
  }
  return out;
}

std::string ZshText(std::string text) {
  for (const std::string_view special : {"\\", "[", "]", ":"}) {
    text = Replaced(std::move(text), special, "\\" + std::string(special));
  }
  return Replaced(std::move(text), "'", "'\\''");
}

std::string ZshAction(const ArgumentFacts& argument) {
  if (!argument.choices.empty()) {
    return fmt::format("({})", fmt::join(argument.choices, " "));
  }
  return IsPath(argument) ? "_files" : "";
}

std::string ZshArgument(const ArgumentFacts& argument) {
  if (argument.positional) {
    return fmt::format(" \\\n    '{}:{}:{}'", argument.many ? "*" : "", ZshText(argument.value),
                       ZshAction(argument));
  }
  std::string out;
  for (const std::string& name : argument.names) {
    // "=": the value may follow after an equals sign as well.
    const bool equals = !argument.value.empty() && name.starts_with("--");
    out += fmt::format(" \\\n    '*{}{}[{}]", name, equals ? "=" : "", ZshText(argument.help));
    out += argument.value.empty()
               ? "'"
               : fmt::format(":{}:{}'", ZshText(argument.value), ZshAction(argument));
  }
  return out;
}

std::string FunctionName(const CommandFacts& command) {
  return command.path.empty() ? "_dynosim" : "_dynosim_" + Replaced(command.path, " ", "_");
}

std::string ZshFunction(const CommandFacts& command) {
  std::string arguments;
  for (const ArgumentFacts& argument : command.arguments) {
    arguments += ZshArgument(argument);
  }
  if (command.commands.empty()) {
    return fmt::format("{}() {{\n  _arguments{}\n}}\n\n", FunctionName(command), arguments);
  }
  std::string names;
  std::string cases;
  for (const CommandFacts& below : command.commands) {
    names += fmt::format("    '{}:{}'\n", NameOf(below), ZshText(below.help));
    cases += fmt::format("        {}) {} ;;\n", NameOf(below), FunctionName(below));
  }
  return fmt::format(R"({0}() {{
  local curcontext="$curcontext" state line
  local -a commands=(
{1}  )
  _arguments -C{2} \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $words[1] in
{3}      esac ;;
  esac
}}

)",
                     FunctionName(command), names, arguments, cases);
}

std::string FishText(std::string text) {
  return Replaced(Replaced(std::move(text), "\\", "\\\\"), "'", "\\'");
}

// True in fish where the arguments of the command are typed.
std::string FishCondition(const CommandFacts& command) {
  std::string condition = command.path.empty() ? "__fish_use_subcommand" : "";
  for (std::string_view rest = command.path; !rest.empty();) {
    const std::size_t space = rest.find(' ');
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                             rest.substr(0, space));
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  }
  if (!command.path.empty() && !command.commands.empty()) {
    condition += "; and not __fish_seen_subcommand_from";
    for (const CommandFacts& below : command.commands) {
      condition += " " + NameOf(below);
    }
  }
  return condition;
}

// -x: a value that is no file; -r -F: a file.
std::string FishValue(const ArgumentFacts& argument) {
  if (!argument.choices.empty()) {
    return fmt::format(" -x -a '{}'", fmt::join(argument.choices, " "));
  }
  return argument.value.empty() ? "" : IsPath(argument) ? " -r -F" : " -x";
}

std::string FishLines(const CommandFacts& command) {
  const std::string start = fmt::format("complete -c dynosim -n '{}'", FishCondition(command));
  std::string out;
  for (const CommandFacts& below : command.commands) {
    out += fmt::format("{} -a {} -d '{}'\n", start, NameOf(below), FishText(below.help));
  }
  for (const ArgumentFacts& argument : command.arguments) {
    if (argument.positional) {
      out +=
          argument.choices.empty() && !IsPath(argument) ? "" : start + FishValue(argument) + "\n";
      continue;
    }
    out += start;
    for (const std::string& name : argument.names) {
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    out += fmt::format("{} -d '{}'\n", FishValue(argument), FishText(argument.help));
  }
  return out;
}

}  // namespace

std::string BashCompletion(const CommandFacts& program) {
  std::vector<std::string> paths;
  for (const CommandFacts* const command : AllCommands(program)) {
    if (!command->path.empty()) {
      paths.push_back(fmt::format("\"{}\"", command->path));
    }
  }
  return fmt::format(
      R"(# bash completion of dynosim: source <(dynosim completion bash)
_dynosim() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command="" next i flags="" words="" files=0
  COMPREPLY=()
  # --flag=value comes as three words.
  if [[ $cur == "=" ]]; then
    cur=""
  elif [[ $prev == "=" ]]; then
    prev=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{command:+$command }}${{COMP_WORDS[i]}}"
    case $next in
    {}) command=$next ;;
    *) break ;;
    esac
  done
  case "$command $prev" in
{}    {})
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return ;;
    {}) return ;;
  esac
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    return
  fi
  case $command in
{}  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
  elif ((files)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}}
complete -F _dynosim dynosim
)",
      fmt::join(paths, "|"), BashChoices(program),
      Patterns(program, [](const ArgumentFacts& a) { return a.choices.empty() && IsPath(a); }),
      Patterns(program, [](const ArgumentFacts& a) { return a.choices.empty() && !IsPath(a); }),
      BashWords(program));
}

std::string ZshCompletion(const CommandFacts& program) {
  std::string out = "#compdef dynosim\n# zsh completion of dynosim\n\n";
  for (const CommandFacts* const command : AllCommands(program)) {
    out += ZshFunction(*command);
  }
  // As a file of $fpath it is called for each completion; sourced it registers itself.
  return out +
         "if [[ $funcstack[1] == _dynosim ]]; then\n"
         "  _dynosim \"$@\"\n"
         "else\n"
         "  compdef _dynosim dynosim\n"
         "fi\n";
}

std::string FishCompletion(const CommandFacts& program) {
  std::string out = "# fish completion of dynosim\ncomplete -c dynosim -f\n";
  for (const CommandFacts* const command : AllCommands(program)) {
    out += FishLines(*command);
  }
  return out;
}

}  // namespace dynosim::cli
