// libgrpc, abseil and libcpprest are not built with the thread sanitizer, which so misses what orders their threads and reports
// all that goes through a call, from their own queues to the messages. Where none of their frames is on a stack, the
// race is ours.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:grpc::\n"
         "race:libgrpc\n"
         "race:libgpr\n"
         "race:libabsl\n"
         "race:web::http::client::details::\n"
         "race:boost::asio::detail::\n"
         "race:libcpprest.so\n";
}
