#pragma once

#include <regex>
#include <string>
#include <vector>

#include "cli/flags.h"

namespace heddle::cli {

// As a shell splits it, as far as the docs use it: quotes, and a backslash before the end of a line.
inline std::vector<std::string> WordsOf(const std::string& command) {
  std::vector<std::string> words;
  const std::regex word(R"rx("([^"]*)"|'([^']*)'|([^\s"'\\]+))rx");
  for (auto it = std::sregex_iterator(command.begin(), command.end(), word); it != std::sregex_iterator();
       ++it)
    words.push_back((*it)[1].matched ? (*it)[1] : (*it)[2].matched ? (*it)[2] : (*it)[3]);
  return words;
}

// `words` with the program's name first.
inline CommandLine ReadWords(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return ReadCommandLine(int(argv.size()), argv.data());
}

}  // namespace heddle::cli
