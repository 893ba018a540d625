#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace heddle::kube {

// What of an object its reader does not make into a tree, since nobody will ask for it: of a pod or a Node that is most
// of the time it takes to read one. A path names fields from the object's top, "spec.containers.env"; a list on the way
// stands for each of its items.
class Pruning {
 public:
  // Of a list of objects only the items whose field `key` is this text; those that are no objects go, too.
  struct Only {
    std::string_view list, key, value;
  };
  Pruning() = default;
  explicit Pruning(std::initializer_list<std::string_view> without, std::initializer_list<Only> only = {});

  // More of it.
  Pruning And(std::initializer_list<std::string_view> without) const;
  // For objects that lie in a field of another one.
  Pruning Under(std::string_view field) const;

  // What holds for that field, or for the items of the list in it; null where all of it is kept.
  const Pruning* Of(std::string_view field) const;
  bool drops() const { return drops_; }                      // the field itself
  const std::string& only_key() const { return only_key_; }  // empty = all items
  const std::string& only_value() const { return only_value_; }

 private:
  Pruning& At(std::string_view path);

  bool drops_ = false;
  std::string only_key_, only_value_;
  std::map<std::string, Pruning, std::less<>> below_;
};

}  // namespace heddle::kube
