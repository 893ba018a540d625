#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heddle::cli {

// What a command line's words stand for, without reading it: for completion, and to say which word is wrong. The
// parser's own errors name no choices and turn the words around. `app`: of the whole program; nothing here changes it.

// "-o", "--output" or "--output=json", not "-".
bool IsOption(const std::string& word);

// As it is typed, without a value: "--output" of "--output=json", "-f" of "-fjob.yaml".
std::string OptionOf(const std::string& word);

// Of `app` or of a command around it; null = there is none.
const CLI::Option* OptionNamed(const CLI::App* app, const std::string& name);

bool TakesValue(const CLI::Option& option);

// Hidden ones, too; null = there is none.
const CLI::App* SubcommandNamed(const CLI::App& app, const std::string& word);

// The names of those that are shown.
std::vector<std::string> SubcommandsOf(const CLI::App& app);

// "kubectl heddle fabric import", of the command `import` of `fabric`.
std::string CalledAs(const CLI::App& command);

// The innermost command that `words` (without the program's name) name.
const CLI::App& CommandNamed(const CLI::App& app, const std::vector<std::string>& words);

// A sentence on the first of `words` that no command has a place for: which was meant, or what there is. Empty = each
// has one.
std::string WrongWord(const CLI::App& app, const std::vector<std::string>& words);

// "--filename is required, as in: kubectl heddle prepare -f job.yaml", by the first example in the help of `command`.
std::string MissingWord(const CLI::App& command, const std::string& name);

}  // namespace heddle::cli
