// The one function that libFuzzer calls; CMake says which target this executable runs.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)heddle::fuzz::HEDDLE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
