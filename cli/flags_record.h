#pragma once

#include "cli/record.h"

namespace CLI {
class App;
}

namespace heddle::cli {

void DefineRecord(CLI::App& record, RecordOptions& flags);

}  // namespace heddle::cli
