#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "cli/typed_words.h"
#include "sizing/catalogue.h"

namespace heddle::cli {

const std::string_view kCompletionFile =
    R"(#!/bin/sh
# kubectl runs this when Tab is pressed behind `kubectl heddle`. Install it where $PATH finds it:
#   kubectl heddle completion > ~/.local/bin/kubectl_complete-heddle && chmod +x ~/.local/bin/kubectl_complete-heddle
exec kubectl heddle __complete "$@"
)";

namespace {

// A positional of this name takes one of these, with a name behind the slash.
constexpr std::array kOwnerKinds{"job/",      "jobset/",     "trainjob/", "pytorchjob/", "mpijob/",
                                 "lws/",      "raycluster/", "rayjob/",   "rayservice/", "sts/",
                                 "podgroup/", "pods/",       "gang/"};

// The first line: what stands in a list beside the word.
std::string About(const std::string& description) {
  return description.substr(0, description.find('\n'));
}

class Completing {
 public:
  Completing(const CLI::App& app, const std::vector<std::string>& words)
      : command_(&app), typed_(words.back()) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) Read(words[i]);
  }

  Completion Answer() && {
    if (open_ != nullptr) {
      AnswerValue(*open_);
    } else if (IsOption(typed_) || typed_ == "-") {
      AnswerOptions();
    } else {
      AnswerWords();
    }
    return std::move(answer_);
  }

 private:
  void Read(const std::string& word) {
    if (open_ != nullptr) {
      Take(*open_, word);
      open_ = nullptr;
    } else if (IsOption(word)) {
      const std::size_t equals = word.find('=');
      const CLI::Option* option = OptionNamed(command_, word.substr(0, equals));
      if (option == nullptr || !TakesValue(*option)) return;
      if (equals == std::string::npos) {
        open_ = option;
      } else {
        Take(*option, word.substr(equals + 1));
      }
    } else if (const CLI::App* sub = SubcommandNamed(*command_, word)) {
      command_ = sub;
    } else {
      ++given_;
    }
  }

  // Of the options those that say where names come from.
  void Take(const CLI::Option& option, const std::string& value) {
    if (option.check_name("--kubeconfig")) given_names_.kubeconfig = value;
    if (option.check_name("--context")) given_names_.context = value;
    if (option.check_name("--as")) given_names_.as = value;
    if (option.check_name("--as-group")) given_names_.as_groups.push_back(value);
    if (option.check_name("--namespace")) given_names_.ns = value;
    if (option.check_name("--topology")) given_names_.topology.push_back(value);
  }

  void Want(NamesWanted::What what) {
    answer_.names = given_names_;
    answer_.names->what = what;
    answer_.names->typed = typed_;
  }

  void Offer(const std::string& word, std::string about) {
    if (word.starts_with(typed_)) answer_.candidates.push_back({word, std::move(about)});
  }

  void AnswerValue(const CLI::Option& option) {
    if (option.check_name("--output")) {
      for (const char* format : {"table", "json", "yaml"}) Offer(format, "");
    } else if (option.check_name("--kubeconfig") || option.check_name("--filename") ||
               option.check_name("--topology") || option.check_name("--taken") ||
               option.check_name("--prices") || option.check_name("--results")) {
      answer_.after = AfterWord::kFiles;
    } else if (option.check_name("--node")) {
      Want(NamesWanted::What::kNodes);
    } else if (option.check_name("--machine")) {
      for (const sizing::MachineType& one : sizing::Machines())
        Offer(std::string(one.word), std::string(one.title));
    } else if (option.check_name("--collective")) {
      for (const char* name : {"all_reduce", "reduce_scatter", "all_gather", "alltoall", "sendrecv"})
        Offer(name, "");
    } else if (option.check_name("--wiring")) {
      for (const char* wiring : {"rail-optimised", "fat-tree", "rail-only"}) Offer(wiring, "");
    }
  }

  void AnswerOptions() {
    for (const CLI::App* app = command_; app != nullptr; app = app->get_parent()) {
      // What `fabric` itself takes says nothing to its `import` and `design`.
      if (app != command_ && app->get_parent() != nullptr) continue;
      for (const CLI::Option* option : app->get_options()) {
        // Every command has a --help of its own.
        if (!option->nonpositional() || (app != command_ && option->check_name("--help"))) continue;
        for (const std::string& name : option->get_lnames())
          Offer("--" + name, About(option->get_description()));
      }
    }
  }

  void AnswerWords() {
    for (const CLI::App* sub : command_->get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) Offer(sub->get_name(), About(sub->get_description()));
    }
    for (const CLI::Option* option : command_->get_options()) {
      if (!option->get_positional()) continue;
      // As many FILEs as one likes; one of anything else.
      if (option->check_name("FILE")) answer_.after = AfterWord::kFiles;
      if (given_ > 0) continue;
      if (option->check_name("NODE")) Want(NamesWanted::What::kNodes);
      if (option->check_name("KIND/NAME") && typed_.find('/') != std::string::npos) {
        Want(NamesWanted::What::kOwners);
      } else if (option->check_name("KIND/NAME")) {
        for (const char* kind : kOwnerKinds) Offer(kind, "");
        if (!answer_.candidates.empty()) answer_.after = AfterWord::kNoSpace;
      }
    }
  }

  const CLI::App* command_;
  const std::string& typed_;
  const CLI::Option* open_ = nullptr;  // whose value comes next
  int given_ = 0;                      // positionals
  NamesWanted given_names_;            // what the options so far say of it
  Completion answer_;
};

}  // namespace

Completion Complete(const CLI::App& app, const std::vector<std::string>& words) {
  static const std::vector<std::string> kNothingYet{""};
  return Completing(app, words.empty() ? kNothingYet : words).Answer();
}

std::string Printed(const Completion& completion) {
  std::string out;
  for (const auto& [word, about] : completion.candidates) {
    out += word;
    if (!about.empty()) out.append("\t").append(about);
    out += '\n';
  }
  return out + fmt::format(":{}\n", int(completion.after));
}

}  // namespace heddle::cli
