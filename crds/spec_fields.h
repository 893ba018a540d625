#pragma once

#include <span>
#include <string>
#include <string_view>

#include "crds/codec.h"

// Between the checks of specs that somebody reads without a server (lossless_policy_fields, rdma_device_policy_fields),
// and included by nobody else.
namespace heddle::crds::codec {

// The fields that an object has and its schema does not, each with the one that was probably meant.
class UnknownFields {
 public:
  void LookAt(const Field& field, std::span<const std::string_view> known);
  void LookAtEach(const Field& list, std::span<const std::string_view> known);
  // kInvalid with all of them, where there are any. `kind`, `name`: of the object.
  [[nodiscard]] base::Status Refused(std::string_view kind, std::string_view name) const;

 private:
  std::size_t found_ = 0;
  std::string text_;
};

// The API server takes any text in a nodeSelector, and no Node can have such a label.
void RefuseLabelsOfNoNode(const Field& selector);

}  // namespace heddle::crds::codec
