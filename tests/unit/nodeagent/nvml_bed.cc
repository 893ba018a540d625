#include "nvml_bed.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace heddle::test {

std::string Built(const std::string& name) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string path = (here.parent_path() / name).string();
  EXPECT_TRUE(std::filesystem::exists(path)) << path << " is not built";
  return path;
}

NvmlBed::NvmlBed(const std::string& machine) {
  const RecordedMachine recorded(machine);
  recorded_ = base::DiskFileTree(recorded.path()).Read("nvml.yaml").value_or("");
  EXPECT_FALSE(recorded_.empty()) << machine;
  if (!recorded_.ends_with('\n')) recorded_ += '\n';
  Write(recorded_);
  ::setenv("HEDDLE_TEST_NVML", path().c_str(), 1);
}

void NvmlBed::Write(const std::string& yaml) const {
  folder_.Write("nvml.yaml.new", yaml);
  std::filesystem::rename(path() + ".new", path());
}

std::string NvmlBed::Changed(const std::string& after, const std::string& old, const std::string& now) const {
  std::string yaml = recorded_;
  const std::size_t from = yaml.find(after);
  const std::size_t at = from == std::string::npos ? from : yaml.find(old, from);
  EXPECT_NE(at, std::string::npos) << "no " << old << " after " << after;
  return at == std::string::npos ? yaml : yaml.replace(at, old.size(), now);
}

}  // namespace heddle::test
