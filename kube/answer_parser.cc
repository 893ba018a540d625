#include "kube/answer_parser.h"

#include <boost/asio/error.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace heddle::kube {

namespace http = boost::beast::http;

AnswerParser::AnswerParser(const ChunkReader* on_chunk, std::size_t max_body)
    : on_chunk_(on_chunk), max_body_(max_body) {
  header_limit(kMaxHead);  // of one line: Beast counts anew where a head comes in several reads
  // Not boost::none: 1.74 compares a Content-Length with it unasked, and none is less than every number.
  body_limit(std::numeric_limits<std::uint64_t>::max());
}

void AnswerParser::on_field_impl(http::field, string_view name, string_view value, error_code& error) {
  if (is_header_done()) return;  // a trailer
  head_ += name.size() + value.size();
  if (head_ > kMaxHead) {
    error = http::error::header_limit;
    return;
  }
  response.headers.push_back({std::string(name), std::string(value)});
}

// Before the body: one that is announced as too long is not waited for.
void AnswerParser::on_header_impl(error_code& error) {
  if (is_done()) return;
  if (const Length length = content_length()) Expect(*length, error);
}

// Makes room at once for what is announced, so that a long body is not moved as it grows.
void AnswerParser::Expect(std::uint64_t more, error_code& error) {
  if (streaming()) return;
  if (more > max_body_ - response.body.size()) {
    error = http::error::body_limit;
    return;
  }
  response.body.reserve(response.body.size() + std::size_t(more));
}

std::size_t AnswerParser::Take(string_view body, error_code& error) {
  if (body.empty()) return 0;
  if (streaming()) {
    if (!(*on_chunk_)(std::string_view(body.data(), body.size())))
      error = boost::asio::error::operation_aborted;
  } else if (body.size() > max_body_ - response.body.size()) {
    error = http::error::body_limit;
  } else {
    response.body.append(body.data(), body.size());
  }
  return body.size();
}

}  // namespace heddle::kube
