#include "cli/typed_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <sstream>

#include "base/nearest_word.h"

namespace heddle::cli {
namespace {

// "fabric import"; empty for the program itself.
std::string Path(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  const std::string outer = Path(*command.get_parent());
  return outer.empty() ? command.get_name() : outer + " " + command.get_name();
}

// How many words without a dash it takes.
std::size_t Places(const CLI::App& command) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::size_t places = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    places += option->get_items_expected_max() > 1 ? kMost : 1;
  }
  return places;
}

// Without their dashes.
std::vector<std::string> LongOptionsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    // What `fabric` itself takes says nothing to its `import` and `design`.
    if (app != &command && app->get_parent() != nullptr) continue;
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  return names;
}

// `letters`: an option without dashes, of which one is easily too few.
std::string WithMeantOption(const CLI::App& command, const std::string& letters,
                            const std::string& sentence) {
  const std::string meant = base::NearestWord(letters, LongOptionsOf(command));
  return meant.empty() ? sentence : fmt::format("{}; did you mean --{}?", sentence, meant);
}

std::string NoOption(const CLI::App& command, const std::string& typed) {
  const std::string path = Path(command);
  return WithMeantOption(command, typed.substr(std::min(typed.find_first_not_of('-'), typed.size())),
                         "there is no option " + typed + (path.empty() ? "" : " of `" + path + "`"));
}

std::string NoCommand(const CLI::App& command, const std::string& typed) {
  const std::vector<std::string> names = SubcommandsOf(command);
  const std::string path = Path(command);
  const std::string meant = base::NearestWord(typed, names);
  return fmt::format("there is no command {}{}{}{}", path.empty() ? "" : path + " ", typed,
                     meant.empty() ? ": write " : fmt::format("; did you mean {}? Write ", meant),
                     base::OneOf(names));
}

std::string OneTooMany(const CLI::App& command, const std::string& typed) {
  const std::size_t places = Places(command);
  return WithMeantOption(
      command, typed,
      places == 0
          ? fmt::format("`{}` takes options only, and \"{}\" is none", Path(command), typed)
          : fmt::format("`{}` takes {} word at most, and \"{}\" is one more", Path(command), places, typed));
}

// Calls `wrong(command, word)` for the first word without a place, and returns the innermost command before it.
template <class Wrong>
const CLI::App& Walk(const CLI::App& app, const std::vector<std::string>& words, Wrong wrong) {
  const CLI::App* command = &app;
  std::size_t given = 0;
  bool value = false, only_words = false;  // the next is an option's value; all the rest are no options
  for (const std::string& word : words) {
    if (value) {
      value = false;
    } else if (!only_words && word == "--") {
      only_words = true;
    } else if (!only_words && IsOption(word)) {
      const std::string name = OptionOf(word);
      const CLI::Option* option = OptionNamed(command, name);
      if (option == nullptr) {
        wrong(*command, word);
        return *command;
      }
      value = TakesValue(*option) && name.size() == word.size();
    } else if (const CLI::App* sub = only_words ? nullptr : SubcommandNamed(*command, word)) {
      command = sub;
      given = 0;
    } else if (++given > Places(*command)) {
      wrong(*command, word);
      return *command;
    }
  }
  return *command;
}

}  // namespace

bool IsOption(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

std::string OptionOf(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

const CLI::Option* OptionNamed(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->nonpositional() && option->check_name(name)) return option;
    }
  }
  return nullptr;
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

const CLI::App* SubcommandNamed(const CLI::App& app, const std::string& word) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->check_name(word)) return sub;
  }
  return nullptr;
}

std::vector<std::string> SubcommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

const CLI::App& CommandNamed(const CLI::App& app, const std::vector<std::string>& words) {
  return Walk(app, words, [](const CLI::App&, const std::string&) {});
}

std::string WrongWord(const CLI::App& app, const std::vector<std::string>& words) {
  std::string sentence;
  Walk(app, words, [&sentence](const CLI::App& command, const std::string& word) {
    if (IsOption(word)) {
      sentence = NoOption(command, word.substr(0, word.find('=')));
    } else if (Places(command) == 0 && !SubcommandsOf(command).empty()) {
      sentence = NoCommand(command, word);
    } else {
      sentence = OneTooMany(command, word);
    }
  });
  return sentence;
}

std::string CalledAs(const CLI::App& command) {
  const std::string path = Path(command);
  return path.empty() ? "kubectl heddle" : "kubectl heddle " + path;
}

std::string MissingWord(const CLI::App& command, const std::string& name) {
  const std::string called = "  " + CalledAs(command) + " ";
  std::istringstream lines(command.get_footer());
  std::string example;
  for (std::string line; example.empty() && std::getline(lines, line);) {
    if (line.starts_with(called)) example = line.substr(2);
    while (example.ends_with('\\') && std::getline(lines, line)) {
      const std::size_t start = line.find_first_not_of(' ');
      example =
          example.substr(0, example.size() - 1) + (start == std::string::npos ? "" : line.substr(start));
    }
  }
  example = example.substr(0, example.find("  "));  // behind it stands what it is for
  return name + " is required" + (example.empty() ? "" : ", as in: " + example);
}

}  // namespace heddle::cli
