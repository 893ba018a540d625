#include "nodeagent/pci/driver.h"

#include "formats/printable.h"

namespace heddle::nodeagent {

std::string DriverOf(const base::FileTree& files, const std::string& device) {
  const auto link = files.ReadLink(device + "/driver");
  // npos + 1 is 0
  return link ? formats::Printable(link->substr(link->find_last_of('/') + 1), 64) : std::string();
}

}  // namespace heddle::nodeagent
