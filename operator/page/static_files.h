#pragma once

#include <span>
#include <string_view>

namespace heddle::operators::page {

struct StaticFile {
  std::string_view name;  // "index.html"
  std::string_view content;
};

// What lies in operator/page/static, sorted by name; cmake/embed.cmake writes the definition.
std::span<const StaticFile> StaticFiles();

}  // namespace heddle::operators::page
