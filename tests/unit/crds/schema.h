#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "crds/object_meta.h"

namespace heddle::crds::schema {

// crds/<plural>.yaml as JSON; quoted scalars stay strings.
Json LoadYaml(const std::string& path);
std::vector<Json> LoadYamlDocuments(const std::string& path);
// The openAPIV3Schema of a CRD file.
Json LoadSchema(std::string_view plural);

// What the API server would say of `value`, CEL aside: sentences with paths. Adds the schema path
// ("status.nics[].rail") of everything that it saw to `seen`.
std::vector<std::string> Violations(const Json& schema, const Json& value, std::set<std::string>& seen);
// Every field of the schema, as the same schema paths, without metadata and what every kind has.
std::set<std::string> AllFields(const Json& schema);

// {"spec": {"classes": [{"name": null}]}} of "spec.classes[].name".
Json AtPath(const std::string& path);

// A change that the schema forbids, or one that it just allows.
struct Mutation {
  std::string path;  // "status.gpus[0].index"
  std::string what;
  Json value;  // the whole object, changed
};
std::vector<Mutation> Forbidden(const Json& schema, const Json& value);
std::vector<Mutation> JustAllowed(const Json& schema, const Json& value);

}  // namespace heddle::crds::schema
