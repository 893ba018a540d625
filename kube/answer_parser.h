#pragma once

#include <boost/beast/core/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>

#include "kube/http.h"

namespace heddle::kube {

// Reads one answer of HTTP/1: its head into a HttpResponse, and its body from the read buffer to `on_chunk`, or into
// the response where there is no reader or the status is not 2xx. Drive it by put() and put_eof(), never with no bytes.
// Errors are Beast's: body_limit for a body over `max_body` bytes, which holds for what goes into the response alone,
// header_limit for a head over kMaxHead; operation_aborted where the reader has enough.
// Thread rule: one owner.
class AnswerParser final : public boost::beast::http::basic_parser<false> {
 public:
  // Bytes of names and values. An API server's head has a kilobyte or two; with warnings up to six.
  static constexpr std::size_t kMaxHead = 256 << 10;

  // on_chunk: null for none; must outlive the parser.
  AnswerParser(const ChunkReader* on_chunk, std::size_t max_body);

  bool streaming() const { return on_chunk_ != nullptr && response.status / 100 == 2; }

  HttpResponse response;

 private:
  using string_view = boost::beast::string_view;
  using error_code = boost::beast::error_code;
  using Length = boost::optional<std::uint64_t>;

  void on_request_impl(boost::beast::http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code&) override { response.status = code; }
  void on_field_impl(boost::beast::http::field, string_view name, string_view value,
                     error_code& error) override;
  void on_header_impl(error_code& error) override;
  void on_body_init_impl(const Length&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code& error) override { return Take(body, error); }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code& error) override {
    Expect(size, error);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code& error) override {
    return Take(body, error);
  }
  void on_finish_impl(error_code&) override {}

  void Expect(std::uint64_t more, error_code& error);
  std::size_t Take(string_view body, error_code& error);

  const ChunkReader* const on_chunk_;
  const std::size_t max_body_;
  std::size_t head_ = 0;
};

}  // namespace heddle::kube
