#include "cli/man_page.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <string_view>
#include <vector>

namespace heddle::cli {
namespace {

// As troff reads it: a dot or a quote at the start of a line is a request, a backslash begins an escape, a hyphen
// may be broken at.
std::string Escaped(std::string_view text) {
  std::string out;
  bool line_starts = true;
  for (const char c : text) {
    if (line_starts && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_starts = c == '\n';
  }
  return out;
}

std::string Trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of('\n'), last = text.find_last_not_of('\n');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

void Options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_name("--help")) continue;
    out += ".TP\n.B " + Escaped(option->get_name(option->get_positional(), true)) + "\n";
    out += Escaped(option->get_description()) + "\n";
  }
}

// Paragraphs, which the reader's width fills, and the indented lines below them as they were written: examples and
// tables.
void Footer(const std::string& text, std::string& out) {
  bool verbatim = false, paragraph = false;
  std::istringstream lines(Trimmed(text));
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with(' ');
    if (verbatim && !indented) out += ".fi\n";
    if (indented && !verbatim) out += ".nf\n";
    verbatim = indented;
    if (!line.empty() && !indented && !paragraph) out += ".PP\n";
    paragraph = !line.empty() && !indented;
    if (!line.empty()) out += Escaped(line) + "\n";
  }
  if (verbatim) out += ".fi\n";
}

void Commands(const CLI::App& app, const std::string& prefix, std::string& out) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;  // hidden
    const std::string name = prefix + sub->get_name();
    out += ".SS " + Escaped(name) + "\n" + Escaped(sub->get_description()) + "\n";
    Options(*sub, out);
    Footer(sub->get_footer(), out);
    Commands(*sub, name + " ", out);
  }
}

}  // namespace

std::string ManPage(const CLI::App& app) {
  std::string out = ".TH KUBECTL\\-HEDDLE 1 \"\" Heddle\n.SH NAME\nkubectl\\-heddle \\- " +
                    Escaped("GPU training jobs and the fabric they lie on") + "\n";
  out += ".SH SYNOPSIS\n.B kubectl heddle\n.I COMMAND\n[\\fIOPTION\\fR]...\n";
  out += ".SH DESCRIPTION\n" + Escaped(app.get_description()) + "\n";
  out += ".SH OPTIONS\nThose of every command.\n";
  Options(app, out);
  out += ".SH COMMANDS\n";
  Commands(app, "", out);
  out += ".SH EXAMPLES\n";
  Footer(app.get_footer(), out);
  return out;
}

}  // namespace heddle::cli
