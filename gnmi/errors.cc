#include "gnmi/errors.h"

#include <fmt/format.h>
#include <grpcpp/support/status.h>

#include <array>

#include "base/printable.h"

namespace heddle::gnmi {
namespace {

using base::Code;

constexpr std::size_t kMaxQuote = 300;

Code CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
      return Code::kInvalid;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Code::kTimeout;
    case grpc::StatusCode::NOT_FOUND:
      return Code::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return Code::kAlreadyExists;
    case grpc::StatusCode::PERMISSION_DENIED:
      return Code::kForbidden;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Code::kUnauthorized;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Code::kThrottled;
    case grpc::StatusCode::UNIMPLEMENTED:
      return Code::kUnimplemented;
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNAVAILABLE:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

// What gRPC writes of a connection that did not come about, and what is to be done. The first that is found counts.
struct Symptom {
  std::string_view text;
  std::string_view sentence;
};
constexpr std::array<Symptom, 8> kSymptoms{{
    {"wrong version number", "does not speak TLS on this port: is its gNMI server set to none?"},
    {"missing selected ALPN", "speaks TLS on this port, but no gRPC"},
    {"Tls handshake failed", "fails the TLS handshake"},
    {"Connection refused", "refuses the connection: nobody listens there; is gNMI on, and is this its port?"},
    {"DNS resolution failed", "has a name that has no address"},
    {"No route to host", "cannot be reached: no route"},
    {"Network is unreachable", "cannot be reached: no route"},
    {"keepalive watchdog timeout", "was connected and answers no ping any more: the connection is dead"},
}};

std::string Quote(const std::string& said, std::string_view secret) {
  std::string text = said;
  for (std::size_t at = 0; !secret.empty() && (at = text.find(secret, at)) != std::string::npos;)
    text.replace(at, secret.size(), "***"), at += 3;
  return base::Printable(text, kMaxQuote);
}

std::string Seconds(std::chrono::milliseconds span) {
  return fmt::format("{} s", double(span.count()) / 1000);
}

std::string Unavailable(const std::string& text, const std::string& quote) {
  if (const auto at = text.find(kRefusedCertificate); at != std::string::npos)
    return base::Printable(text.substr(at + kRefusedCertificate.size()), 2 * kMaxQuote);
  for (const Symptom& symptom : kSymptoms) {
    if (text.find(symptom.text) != std::string::npos) return fmt::format("{} ({})", symptom.sentence, quote);
  }
  return fmt::format("cannot be reached, or ended the connection: {}", quote);
}

std::string Sentence(Code code, const grpc::Status& status, const Asked& asked) {
  const std::string& text = status.error_message();
  const std::string quote = text.empty() ? "it does not say why" : Quote(text, asked.secret);
  switch (code) {
    case Code::kUnavailable:
      return Unavailable(text, quote);
    case Code::kTimeout:
      if (!asked.connected) return fmt::format("cannot be connected to within {}", Seconds(asked.timeout));
      return fmt::format("gives no answer within {}", Seconds(asked.timeout));
    case Code::kUnauthorized:
      return fmt::format("does not accept this login: {}", quote);
    case Code::kForbidden:
      return fmt::format("does not allow this to this user: {}", quote);
    case Code::kUnimplemented:
      return fmt::format("does not offer this by gNMI: {}", quote);
    case Code::kNotFound:
      return fmt::format("has nothing there: {}", quote);
    case Code::kThrottled:
      return fmt::format("has no room for this now: {}", quote);
    case Code::kTooLarge:
      return fmt::format("answers more than is read: {}", quote);
    case Code::kInvalid:
      return fmt::format("does not understand the request: {}", quote);
    default:
      return fmt::format("failed: {}", quote);
  }
}

}  // namespace

base::Error ErrorOf(const grpc::Status& status, const Asked& asked) {
  Code code = CodeOf(status.error_code());
  // Our own limit, or the switch's on what we send, which is the same to us.
  if (code == Code::kThrottled && status.error_message().find("larger than max") != std::string::npos)
    code = Code::kTooLarge;
  return {code, fmt::format("{} {}", asked.address, Sentence(code, status, asked)), {}};
}

}  // namespace heddle::gnmi
