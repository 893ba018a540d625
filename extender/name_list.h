#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::extender {

// A request whose NodeNames come last and are a plain list, as kube-scheduler writes them, in two: of thousands of
// names the list is nearly all of the request, and to parse it like any JSON took most of an answer's time. Every name
// is looked at, and none needs escapes; the rest is a request without names, to be parsed like any other.
struct NamesApart {
  std::string request;
  std::string_view names;  // "a","b": a part of the body
};
// Nothing for any other body, whatever is right or wrong with it.
std::optional<NamesApart> TakeNamesApart(std::string_view body);

// Each of them, without its quotes: views of the body.
std::vector<std::string_view> NamesOf(const NamesApart& apart);

// Whether it is made of what a node's name is made of, and so needs no escapes.
bool IsPlainName(std::string_view name);

}  // namespace heddle::extender
