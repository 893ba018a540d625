#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_tree.h"

namespace heddle::nodeagent {

// What hwloc knows and a single sysfs file does not: how many NUMA nodes have processors or memory, and to
// which of them a PCI device belongs where its numa_node says -1 but its CPU list does not.
struct Locality {
  int numa_nodes = 0;  // 0 = could not be found out
  std::map<std::string, int, std::less<>>
      numa_of_pci;      // devices that belong to exactly one NUMA node of several
  std::string product;  // DMI product name; empty = unknown
  std::vector<std::string> problems;
};

// `root`: "/" or a recorded machine's folder, and `files` the view of it. hwloc opens the files itself, and
// learns of another root only by an environment variable (HWLOC_FSROOT): so call this before any other thread
// runs. NUMA nodes and processors do not change while a kernel runs, so once is enough.
Locality ProbeLocality(const base::FileTree& files, const std::string& root);

// Reads through `files` what hwloc would read, so that a recording holds it.
void ReadForHwloc(const base::FileTree& files);

}  // namespace heddle::nodeagent
