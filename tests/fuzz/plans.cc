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
void Annotations(std::string_view bytes) {
  const auto parallelism = crds::ParseParallelism(bytes);
  if (Read(parallelism)) {
    CHECK(parallelism->world() > 0 && parallelism->world() <= crds::kMaxWorld);
    (void)Read(crds::CheckWorld(*parallelism, 16, 8));
  }
  (void)Read(crds::ParseModel(bytes));
  (void)Read(crds::ParseConstraints(bytes));
  (void)Read(crds::ParseWait(bytes));
  const auto order = crds::ParseOrder(bytes);
  if (Read(order)) CHECK(Read(crds::ParseOrder(crds::FormatOrder(*order))));
}

void ClusterFile(std::string_view bytes) {
  cli::ClusterFiles files;
  const base::Status status = cli::ReadClusterFile("fuzz", std::string(bytes), files);
  if (!status) CHECK(!status.error().message.empty());
}

// Whatever is imported, `plan --topology` reads.
void Import(std::string_view bytes) {
  cli::ImportOptions options;
  options.sources = {bytes.starts_with("{") || bytes.starts_with("<") ? "host=a" : "a"};
  const cli::Output output = cli::ImportFabric(
      options, [bytes](const std::string&) -> base::Result<std::string> { return std::string(bytes); },
      {.format = cli::Format::kJson});
  if (output.exit_code != cli::Output::kOk) return;
  cli::ClusterFiles files;
  const base::Status status = cli::ReadClusterFile("imported", output.out, files);
  CHECK(status);
  CHECK(!files.topologies.empty());
}

// Whatever a file holds, the linter ends with one of its three exit codes and prints what scripts can read.
void Lint(std::string_view bytes) {
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
}

}  // namespace heddle::fuzz
