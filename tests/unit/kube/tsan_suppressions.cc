// libcpprest is not built with the thread sanitizer, which so misses that its shared_ptrs count atomically
// and reports their release. Our own code has no such frame on its stacks.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:web::http::client::details::\n"
         "race:boost::asio::detail::\n"
         "race:libcpprest.so\n";
}
