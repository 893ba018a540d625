#include "operator/page/page.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/lower_case.h"
#include "base/version.h"
#include "crds/gang.h"
#include "crds/node_topology.h"
#include "operator/page/about.h"
#include "operator/page/static_files.h"
#include "operator/page/text.h"

namespace heddle::operators::page {
namespace {

constexpr std::size_t kMaxWaiting = 32;  // each holds a thread
constexpr std::string_view kJson = "application/json; charset=utf-8";

kube::ServedAnswer Sentence(int status, std::string sentence) {
  return {.status = status, .body = std::move(sentence) + "\n"};
}

std::string_view TypeOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {{
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".svg", "image/svg+xml"},
  }};
  for (const auto& [end, type] : kTypes) {
    if (name.ends_with(end)) return type;
  }
  return "application/octet-stream";
}

// Nothing from elsewhere, nothing inline, in nobody's frame.
const std::vector<kube::HttpHeader>& Guards() {
  static const std::vector<kube::HttpHeader> guards = {
      {"Content-Security-Policy",
       "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-store"},
  };
  return guards;
}

// By which a page that is open over an upgrade sees that this is no longer the form that it reads.
kube::HttpHeader VersionHeader() {
  return {"Heddle-Version", std::string(base::kVersion)};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (text[i] == '%' && low >= 0) {
      decoded += char(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string Parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return Decoded(one.substr(name.size() + 1));
  }
  return {};
}

std::chrono::seconds WaitOf(const std::string& text) {
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::clamp(std::chrono::seconds(seconds), std::chrono::seconds(0), Page::kLongestWait);
}

template <class Read, class About>
kube::ServedAnswer AnswerOf(const kube::ObjectPtr& object, const std::string& what, const Read& read,
                            const About& about) {
  if (object == nullptr) return Sentence(404, "there is no " + what);
  const auto parsed = read(*object);
  if (!parsed) return Sentence(422, what + " cannot be read: " + Cut(parsed.error().message, 1024));
  return {.content_type = std::string(kJson), .body = about(*parsed)};
}

}  // namespace

base::Status CheckAddress(std::string_view listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon != std::string_view::npos && IsLocalHost(listen)) return {};
  return base::Fail(base::Code::kInvalid,
                    "the page is served on loopback only, and not on \"" + std::string(listen) + "\"");
}

bool IsLocalHost(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  if (has_port) {
    const std::string_view port = host.substr(colon + 1);
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), digit)) return false;
    host = host.substr(0, colon);
  }
  const std::string lower = base::LowerCase(std::string(host));
  return lower == "localhost" || lower == "127.0.0.1" || lower == "[::1]";
}

kube::ServedAnswer Page::Answer(const kube::ServedRequest& request) {
  kube::ServedAnswer answer = Route(request);
  answer.headers.insert(answer.headers.end(), Guards().begin(), Guards().end());
  return answer;
}

kube::ServedAnswer Page::Route(const kube::ServedRequest& request) {
  if (!IsLocalHost(request.host)) {
    return Sentence(
        403,
        "this page answers as localhost only: open it as http://localhost:PORT, with the PORT that "
        "you gave kubectl port-forward");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    kube::ServedAnswer answer = Sentence(405, "this page can be read only: GET or HEAD");
    answer.headers.push_back({"Allow", "GET, HEAD"});
    return answer;
  }
  if (request.path == "/fabric/view.json") return AnswerView(request);
  if (request.path == "/fabric/about.json") return AnswerAbout(request);
  // Of `GET ?x` it is empty.
  const std::string_view path = request.path;
  const std::string_view name = path == "/" ? "index.html" : path.substr(path.empty() ? 0 : 1);
  for (const StaticFile& file : StaticFiles()) {
    if (file.name == name)
      return {.content_type = std::string(TypeOf(name)), .body = std::string(file.content)};
  }
  return Sentence(404,
                  "here are /, /fabric/view.json and /fabric/about.json?node=NAME or ?gang=NAMESPACE/NAME");
}

kube::ServedAnswer Page::AnswerView(const kube::ServedRequest& request) {
  const std::string since = Parameter(request.query, "since");
  // Who has nothing waits for the first view even without saying so: it is made only once somebody asks.
  const auto wait = since.empty() ? Page::kLongestWait : WaitOf(Parameter(request.query, "wait"));
  if (auto told = NewerThan(since, wait))
    return {.content_type = std::string(kJson), .body = *std::move(told), .headers = {VersionHeader()}};
  return Sentence(503,
                  "the operator has not read the cluster yet; it logs what it cannot read and what to do: "
                  "kubectl logs -n heddle-system deploy/heddle-operator");
}

kube::ServedAnswer Page::AnswerAbout(const kube::ServedRequest& request) const {
  const std::string node = Parameter(request.query, "node"), gang = Parameter(request.query, "gang");
  if (!node.empty()) {
    return AnswerOf(reads_.topologies.Get({"", node}), "NodeTopology " + Cut(node, 253),
                    crds::NodeTopologyFromJson, AboutNode);
  }
  if (!gang.empty()) {
    return AnswerOf(reads_.gangs.Get(kube::ObjectKey::Parse(gang)), "Gang " + Cut(gang, 320),
                    crds::GangFromJson, AboutGang);
  }
  return Sentence(400, "say ?node=NAME or ?gang=NAMESPACE/NAME");
}

std::optional<std::string> Page::NewerThan(const std::string& since, std::chrono::seconds wait) {
  const base::MonotonicTime deadline = clock_.Now() + wait;
  for (;;) {
    std::list<std::stop_source>::iterator mine;
    {
      const std::lock_guard lock(mutex_);
      asked_ = clock_.Now();
      if (auto news = journal_.Since(since)) return news;
      // Under the same lock: who is told a revision that came since then never asks for what came with it.
      if (stopped_ || clock_.Now() >= deadline || waiting_.size() >= kMaxWaiting) return NoNews();
      mine = waiting_.emplace(waiting_.end());
    }
    clock_.SleepUntil(deadline, mine->get_token());
    const std::lock_guard lock(mutex_);
    waiting_.erase(mine);
  }
}

std::optional<std::string> Page::NoNews() const {
  if (journal_.empty()) return std::nullopt;
  return "{\"revision\":" + Dump(journal_.revision()) + ",\"full\":false}\n";
}

void Page::WakeAll() {
  for (std::stop_source& one : waiting_) one.request_stop();
}

void Page::Publish(const Pieces& pieces) {
  const std::lock_guard lock(mutex_);
  if (journal_.Update(pieces)) WakeAll();
}

bool Page::wanted() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() || (asked_ && clock_.Now() - *asked_ < kInterest);
}

void Page::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  WakeAll();
}

}  // namespace heddle::operators::page
