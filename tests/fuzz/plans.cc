// What people write for plans, and the objects and files that plans stand on.
#include <string>

#include "base/check.h"
#include "cli/cluster_files.h"
#include "cli/import.h"
#include "cli/lint.h"
#include "crds/parallelism.h"
#include "tests/fuzz/targets.h"

namespace heddle::fuzz {

// All the words that an ML engineer may write, each read as each.
bool Annotations(std::string_view bytes) {
  const auto parallelism = crds::ParseParallelism(bytes);
  bool read = Read(parallelism);
  if (read) {
    CHECK(parallelism->world() > 0 && parallelism->world() <= crds::kMaxWorld);
    (void)Read(crds::CheckWorld(*parallelism, 16, 8));
  }
  read = Read(crds::ParseModel(bytes)) || read;
  read = Read(crds::ParseConstraints(bytes)) || read;
  read = Read(crds::ParseWait(bytes)) || read;
  const auto order = crds::ParseOrder(bytes);
  if (!Read(order)) return read;
  CHECK(Read(crds::ParseOrder(crds::FormatOrder(*order))));
  return true;
}

bool ClusterFile(std::string_view bytes) {
  cli::ClusterFiles files;
  const base::Status status = cli::ReadClusterFile("fuzz", std::string(bytes), files);
  if (!status) CHECK(!status.error().message.empty());
  return status.has_value();
}

// Whatever is imported, `plan --topology` reads.
bool Import(std::string_view bytes) {
  cli::ImportOptions options;
  options.sources = {bytes.starts_with("{") || bytes.starts_with("<") ? "host=a" : "a"};
  const cli::Output output = cli::ImportFabric(
      options, [bytes](const std::string&) -> base::Result<std::string> { return std::string(bytes); },
      {.format = cli::Format::kJson});
  if (output.exit_code != cli::Output::kOk) return false;
  cli::ClusterFiles files;
  const base::Status status = cli::ReadClusterFile("imported", output.out, files);
  CHECK(status);
  CHECK(!files.topologies.empty());
  return true;
}

// Whatever a file holds, the linter ends with one of its three exit codes and prints what scripts can read.
bool Lint(std::string_view bytes) {
  const cli::Output output =
      cli::Lint({.files = {"a"}},
                [bytes](const std::string&) -> base::Result<std::string> { return std::string(bytes); },
                {.format = cli::Format::kJson});
  const auto printed = crds::Json::parse(output.out, nullptr, false);
  CHECK(!printed.is_discarded());
  const bool found = !printed.at("findings").empty(), unread = !printed.at("unreadable").empty();
  CHECK(output.exit_code == (unread  ? cli::Output::kUsage
                             : found ? cli::Output::kRefused
                                     : cli::Output::kOk));
  return !unread;
}

}  // namespace heddle::fuzz
