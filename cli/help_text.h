#pragma once

#include <cstddef>
#include <string>

namespace heddle::cli {

// What --help prints, in a terminal of `width` columns (0 = there is none: as it was written). Paragraphs are filled
// anew, and what an option, a command or an example is for is broken between words. Examples, which are to be copied,
// stay whole, as does what else is indented below a paragraph. Pure.
std::string HelpText(const std::string& help, std::size_t width);

}  // namespace heddle::cli
