#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crds/condition.h"
#include "operator/node_labels.h"
#include "operator/port_sightings.h"
#include "operator/view.h"
#include "topology/fabric.h"

namespace heddle::operators {

// What all NodeTopologies and all declarations together say. A value; immutable once made.
struct Assembly {
  std::map<std::string, topology::Fabric> fabrics;  // by object name
  std::map<std::string, std::string> spec_errors;   // by object name: why its spec is not in force
  std::map<std::string, std::string> left_out;      // by node: why its NodeTopology could not be read
  std::map<std::string, std::vector<std::string>> contradictions;  // by node: topology::Check's sentences
  std::map<std::string, std::vector<crds::Condition>>
      complaints;                      // by node: its conditions that are False, and Ready if Unknown
  CongestedPorts congested;            // that agents report
  std::vector<std::string> reporting;  // nodes whose agents have ever reported, sorted
  friend bool operator==(const Assembly&, const Assembly&) = default;

  // Of every fabric that the node belongs to, the first by name wins. Empty for a node of none.
  Labels LabelsOf(const std::string& node) const;
};
using AssemblyPtr = std::shared_ptr<const Assembly>;

// The last assembly, for whoever reads it. Null before the first.
// Thread rule: every member may be called from any thread.
class CurrentAssembly {
 public:
  AssemblyPtr Get() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void Set(AssemblyPtr assembly) {
    const std::lock_guard lock(mutex_);
    current_ = std::move(assembly);
  }

 private:
  mutable std::mutex mutex_;
  AssemblyPtr current_;
};

// Assembles fabrics, reading again only those NodeTopologies that have changed: 5,000 objects of 16 KB take
// most of a second to read. Thread rule: one owner.
class Assembler {
 public:
  AssemblyPtr Assemble(const kube::SortedObjects& topologies, const kube::SortedObjects& fabrics);

 private:
  struct Reading {
    kube::ObjectPtr object;  // the very object that was read
    bool reported = false;
    topology::Node node;
    std::string error;
    std::vector<std::string> contradictions;
    std::vector<crds::Condition> complaints;
    std::vector<crds::CongestedPort> congested;
  };
  static Reading Read(const kube::ObjectPtr& object);

  std::map<std::string, Reading> readings_;
};

}  // namespace heddle::operators
