#include "kube/server_clock.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace heddle::kube {
namespace {

using std::chrono::microseconds;

constexpr microseconds kTolerated = std::chrono::seconds(2);
constexpr microseconds kHalfASecond = std::chrono::milliseconds(500);  // a Date is cut to whole seconds

std::optional<int> Digits(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<base::WallTime> ParseHttpDate(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  constexpr std::string_view kForm = "___, __ ___ ____ __:__:__ GMT";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != '_' && kForm[i] != text[i]) return std::nullopt;
  }
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const auto day = Digits(text.substr(5, 2)), year = Digits(text.substr(12, 4)),
             hour = Digits(text.substr(17, 2)), minute = Digits(text.substr(20, 2)),
             second = Digits(text.substr(23, 2));
  if (month == kMonths.end() || !day || !year || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(unsigned(month - kMonths.begin()) + 1),
                                         std::chrono::day(unsigned(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

base::WallTime ServerClock::WallNow() {
  return own_.WallNow() + ahead();
}

bool ServerClock::Saw(const HttpResponse& answer, base::WallTime sent) {
  const base::WallTime received = own_.WallNow();
  // When it was said is not known better than how long it took; a clock that was set in between tells nothing.
  if (received < sent || received - sent > kTolerated) return false;
  const auto header = answer.Header("Date");
  const auto said = header ? ParseHttpDate(*header) : std::nullopt;
  if (!said) return false;
  microseconds ahead = *said + kHalfASecond - (sent + (received - sent) / 2);
  if (std::chrono::abs(ahead) <= kTolerated) ahead = microseconds(0);
  if (std::chrono::abs(ahead - this->ahead()) <= kTolerated && (ahead.count() == 0) == (ahead_ == 0))
    return false;
  ahead_ = ahead.count();
  return true;
}

ClockSettingTransport::ClockSettingTransport(HttpTransport& inner, base::Clock& own, ServerClock& clock,
                                             Log log)
    : inner_(inner), own_(own), clock_(clock), log_(std::move(log)) {}

base::Result<HttpResponse> ClockSettingTransport::Do(const HttpRequest& request, std::stop_token stop) {
  const base::WallTime sent = own_.WallNow();
  auto answer = inner_.Do(request, std::move(stop));
  if (answer && clock_.Saw(*answer, sent) && log_) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(clock_.ahead()).count();
    log_("Follows the API server's clock secondsAheadOfOurs=" + std::to_string(seconds));
  }
  return answer;
}

base::Result<HttpResponse> ClockSettingTransport::Stream(const HttpRequest& request,
                                                         const ChunkReader& on_chunk, std::stop_token stop) {
  return inner_.Stream(request, on_chunk, std::move(stop));
}

}  // namespace heddle::kube
