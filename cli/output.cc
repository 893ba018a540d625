#include "cli/output.h"

#include "crds/yaml.h"

namespace heddle::cli {

namespace {

const std::string kIsItUp =
    "Is the cluster up, and does `kubectl version` reach it with the same --kubeconfig?";

}  // namespace

std::string NextStep(const base::Error& error) {
  using base::Code;
  switch (error.code) {
    // A wait of our own, for one request. Where the server gave up it is kUnavailable.
    case Code::kTimeout:
      return kIsItUp + " Where it is slow, --request-timeout 2m waits longer.";
    case Code::kUnavailable:
      return kIsItUp;
    case Code::kUnauthorized:
      return "Log in again; `kubectl auth whoami` shows who you are.";
    case Code::kForbidden:
      return "Ask for the right to read this; `kubectl auth can-i --list` shows what you may do.";
    case Code::kThrottled:
      return "The API server has more to do than it can; try again in a minute.";
    case Code::kUnimplemented:
      return "Is Heddle installed here? `kubectl get crds` should list nodetopologies.heddle.dev.";
    default:
      return "";
  }
}

std::string Printed(const crds::Json& json, Format format) {
  const std::string text = json.dump(2, ' ', false, crds::Json::error_handler_t::replace) + "\n";
  return format == Format::kYaml ? crds::ToYaml(crds::Json::parse(text)) : text;
}

std::string NoteLines(const std::vector<std::string>& notes) {
  std::string lines;
  for (const std::string& note : notes) lines += "Note: " + WithoutControls(note) + "\n";
  return lines;
}

Output Failure(const base::Error& error) {
  Output output;
  output.exit_code = error.code == base::Code::kInvalid ? Output::kUsage : Output::kFailed;
  output.err = "Error: " + WithoutControls(error.message) + "\n";
  const std::string next = NextStep(error);
  if (!next.empty()) output.err += next + "\n";
  return output;
}

Output FailureOfInput(const base::Error& error) {
  Output output = Failure(error);
  output.exit_code = Output::kUsage;
  return output;
}

}  // namespace heddle::cli
