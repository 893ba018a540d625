#include "kube/pruning.h"

namespace heddle::kube {

Pruning::Pruning(std::initializer_list<std::string_view> without, std::initializer_list<Only> only) {
  for (const std::string_view path : without) At(path).drops_ = true;
  for (const Only& one : only) {
    Pruning& list = At(one.list);
    list.only_key_ = one.key;
    list.only_value_ = one.value;
  }
}

Pruning& Pruning::At(std::string_view path) {
  const auto dot = path.find('.');
  Pruning& first = below_[std::string(path.substr(0, dot))];
  return dot == std::string_view::npos ? first : first.At(path.substr(dot + 1));
}

Pruning Pruning::And(std::initializer_list<std::string_view> without) const {
  Pruning more = *this;
  for (const std::string_view path : without) more.At(path).drops_ = true;
  return more;
}

Pruning Pruning::Under(std::string_view field) const {
  Pruning outer;
  outer.below_.emplace(field, *this);
  return outer;
}

const Pruning* Pruning::Of(std::string_view field) const {
  const auto found = below_.find(field);
  return found == below_.end() ? nullptr : &found->second;
}

}  // namespace heddle::kube
