#include "nodeagent/qos/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "base/file_tree.h"
#include "crds/node_lossless.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using crds::Json;
using lossless::Setting;

constexpr int kVersion = 1;
constexpr std::size_t kMaxFile = 64 * 1024;  // one with all settings twice is 6 KiB
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kBeside = ".new";
constexpr std::string_view kBad = ".bad";  // behind kSuffix: out of the way of the port's next record

base::Status Failed(std::string_view what, const std::string& path) {
  return base::Fail(Code::kUnavailable, fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

// A name as a file's: what may not stand in one, and % itself, as %xx.
std::string FileName(const std::string& port) {
  std::string name;
  for (const char c : port) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-' || c == ':';
    if (plain) {
      name += c;
    } else {
      name += fmt::format("%{:02x}", unsigned(static_cast<unsigned char>(c)));
    }
  }
  return name + std::string(kSuffix);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

base::Status SyncFolder(const std::string& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() < 0 || ::fsync(descriptor.number()) != 0) return Failed("sync", folder);
  return {};
}

base::Status WriteSynced(const std::string& path, const std::string& text) {
  const Descriptor descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (descriptor.number() < 0) return Failed("make", path);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(descriptor.number(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return Failed("write", path);
    done += std::size_t(wrote);
  }
  if (::fsync(descriptor.number()) != 0) return Failed("sync", path);
  return {};
}

class DiskJournal final : public Journal {
 public:
  explicit DiskJournal(std::string folder) : folder_(std::move(folder)) {}

  Loaded Load() override {
    Loaded loaded;
    const base::DiskFileTree files(folder_);
    const auto names = files.List(".");
    if (!names) {
      if (names.error().code != Code::kNotFound) loaded.problems.push_back(names.error().message);
      return loaded;
    }
    std::set<std::string> aside;
    for (const std::string& name : *names) {
      if (!name.ends_with(kSuffix)) continue;
      const auto text = files.Read(name);
      auto record = text ? ParseRecord(*text) : base::Result<PortRecord>(base::Fail(text.error()));
      if (record && FileName(record->port) != name)
        record = base::Fail(Code::kInvalid, "it is the record of " + record->port);
      if (!record) {
        loaded.problems.push_back(Unreadable(PutAside(name), record.error().message));
        aside.insert(name + std::string(kBad));
        continue;
      }
      loaded.records.push_back(*std::move(record));
    }
    // Until a person has looked at the port, whichever agent found it so.
    for (const std::string& name : *names) {
      if (name.ends_with(std::string(kSuffix) + std::string(kBad)) && !aside.contains(name))
        loaded.problems.push_back(Unreadable(name, "an agent before this one found it so"));
    }
    std::sort(loaded.records.begin(), loaded.records.end(),
              [](const PortRecord& a, const PortRecord& b) { return a.port < b.port; });
    return loaded;
  }

  base::Status Put(const PortRecord& record) override {
    ASSIGN_OR_RETURN(const std::string text, RecordText(record), "keep the record of " + record.port);
    TRY(MakeFolder());
    const std::string path = folder_ + "/" + FileName(record.port);
    TRY(WriteSynced(path + std::string(kBeside), text));
    if (::rename((path + std::string(kBeside)).c_str(), path.c_str()) != 0) return Failed("rename to", path);
    return SyncFolder(folder_);
  }

  base::Status Remove(const std::string& port) override {
    const std::string path = folder_ + "/" + FileName(port);
    if (::unlink(path.c_str()) != 0) {
      if (errno == ENOENT) return {};
      return Failed("remove", path);
    }
    return SyncFolder(folder_);
  }

 private:
  // What it is called from now on: as before where it cannot be renamed.
  std::string PutAside(const std::string& name) const {
    const std::string bad = name + std::string(kBad);
    return ::rename((folder_ + "/" + name).c_str(), (folder_ + "/" + bad).c_str()) == 0 ? bad : name;
  }

  std::string Unreadable(const std::string& name, std::string_view why) const {
    return fmt::format(
        "{}/{} cannot be read, so nothing is known of a write that it may tell of: {}; look at the port, "
        "then remove the file: it is looked for when the agent starts",
        folder_, name, why);
  }

  base::Status MakeFolder() const {
    std::error_code error;
    if (std::filesystem::create_directories(folder_, error); error)
      return base::Fail(Code::kUnavailable, fmt::format("make {}: {}", folder_, error.message()));
    return {};
  }

  const std::string folder_;
};

Json ToJson(const UnsettledWrite& write) {
  Json settings = Json::array();
  for (const Setting setting : write.settings) settings.push_back(lossless::SettingName(setting));
  return {{"roce1", write.roce1},
          {"port",
           {{"name", write.port.name},
            {"rdmaDevice", write.port.rdma_device},
            {"rdmaPort", write.port.rdma_port},
            {"netdev", write.port.netdev},
            {"pci", write.port.pci_address},
            {"driver", write.port.driver}}},
          {"want", crds::ToJson(write.want)},
          {"before", crds::ToJson(write.before)},
          {"settings", std::move(settings)},
          {"link",
           {{"carrier", write.link.carrier},
            {"carrierChanges", write.link.carrier_changes},
            {"errors", write.link.errors}}},
          {"noise", write.noise},
          {"noiseSeconds", write.noise_seconds},
          {"starts", write.starts},
          {"undone", write.undone},
          {"interrupts", write.interrupts},
          {"back", write.back},
          {"why", write.why},
          {"conflict", write.conflict},
          {"about", write.about}};
}

Json ToJson(const PortRecord& record) {
  Json json{{"version", kVersion},
            {"port", record.port},
            {"policy", record.edition.policy},
            {"generation", record.edition.generation},
            {"subject", record.subject},
            {"applied", record.applied},
            {"failed", record.failed},
            {"conflict", record.conflict},
            {"boot", record.boot},
            {"crashes", record.crashes}};
  if (!record.edition.uid.empty()) json["policyUid"] = record.edition.uid;
  Json repairs = Json::array();
  for (const base::WallTime repair : record.repairs) repairs.push_back(base::FormatTime(repair));
  json["repairs"] = std::move(repairs);
  Json unsupported = Json::object();
  for (const auto& [setting, why] : record.unsupported)
    unsupported[std::string(lossless::SettingName(setting))] = why;
  json["unsupported"] = std::move(unsupported);
  json["pauseOff"] = record.pause_off;
  if (record.unsettled) json["unsettled"] = ToJson(*record.unsettled);
  return json;
}

// Reads what RecordText wrote. The first thing that does not fit is remembered; what comes after it is nothing.
class Reader {
 public:
  base::Result<PortRecord> Read(const Json& json) {
    if (Get<int>(json, "version") != kVersion)
      return base::Fail(Code::kInvalid, fmt::format("version: this agent reads {}", kVersion));
    PortRecord record;
    record.port = Get<std::string>(json, "port");
    record.edition.policy = Get<std::string>(json, "policy");
    record.edition.generation = Get<std::int64_t>(json, "generation");
    if (json.contains("policyUid")) record.edition.uid = Get<std::string>(json, "policyUid");
    record.subject = Get<std::string>(json, "subject");
    record.applied = Get<bool>(json, "applied");
    if (json.contains("pauseOff"))
      record.pause_off = Get<bool>(json, "pauseOff");  // or an agent wrote it that had none
    record.failed = Get<std::string>(json, "failed");
    record.conflict = Get<std::string>(json, "conflict");
    record.boot = Get<std::string>(json, "boot");
    record.crashes = Get<int>(json, "crashes");
    if (record.crashes < 0) Note("crashes");
    for (const auto& text : Get<std::vector<std::string>>(json, "repairs")) {
      const auto time = base::ParseTime(text);
      if (!time) Note("repairs");
      if (time) record.repairs.push_back(std::chrono::floor<std::chrono::seconds>(*time));
    }
    for (const auto& [name, why] : Get<std::map<std::string, std::string>>(json, "unsupported"))
      record.unsupported[SettingOf(name)] = why;
    if (const auto write = json.find("unsettled"); write != json.end()) record.unsettled = ReadWrite(*write);
    if (record.port.empty()) Note("port");
    if (!problem_.empty()) return base::Fail(Code::kInvalid, problem_ + ": is missing or makes no sense");
    return record;
  }

 private:
  void Note(std::string_view key) {
    if (problem_.empty()) problem_ = key;
  }

  template <class T>
  T Get(const Json& json, const char* key) {
    const auto value = json.is_object() ? json.find(key) : json.end();
    // get_to of a value of another type is the one thing of nlohmann's that only throws.
    if (json.is_object() && value != json.end() && Fits<T>(*value)) return value->template get<T>();
    Note(key);
    return {};
  }
  // nlohmann cuts off what does not fit, and a file that was damaged would look whole.
  template <class T>
  static bool InRange(const Json& value) {
    if (value.is_number_unsigned()) return std::in_range<T>(value.get<std::uint64_t>());
    return value.is_number_integer() && std::in_range<T>(value.get<std::int64_t>());
  }
  template <class T>
  static bool Fits(const Json& value) {
    [[maybe_unused]] const auto all = [&value](auto fits) {
      return std::all_of(value.begin(), value.end(), fits);
    };
    if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
    if constexpr (std::is_same_v<T, std::string>) return value.is_string();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return InRange<T>(value);
    if constexpr (std::is_same_v<T, std::vector<std::string>>)
      return value.is_array() && all([](const Json& item) { return item.is_string(); });
    if constexpr (std::is_same_v<T, std::map<std::string, std::string>>)
      return value.is_object() && all([](const Json& item) { return item.is_string(); });
    if constexpr (std::is_same_v<T, std::map<std::string, std::uint64_t>>)
      return value.is_object() && all([](const Json& item) { return item.is_number_unsigned(); });
    if constexpr (std::is_same_v<T, Json>) return value.is_object();
    return false;
  }

  Setting SettingOf(const std::string& name) {
    const auto setting = lossless::ParseSetting(name);
    if (!setting || int(*setting) >= lossless::kHostSettings) Note(name);
    return setting.value_or(Setting::kDcbx);
  }

  lossless::PortSettings ReadSettings(const Json& json, const char* key) {
    auto settings = crds::PortSettingsFromJson(Get<Json>(json, key));
    if (!settings) Note(std::string(key) + " " + settings.error().message);
    return settings ? *std::move(settings) : lossless::PortSettings();
  }

  UnsettledWrite ReadWrite(const Json& json) {
    UnsettledWrite write;
    const Json port = Get<Json>(json, "port");
    write.port = {Get<std::string>(port, "name"), Get<std::string>(port, "rdmaDevice"),
                  Get<int>(port, "rdmaPort"),     Get<std::string>(port, "netdev"),
                  Get<std::string>(port, "pci"),  Get<std::string>(port, "driver")};
    write.want = ReadSettings(json, "want");
    write.before = ReadSettings(json, "before");
    for (const auto& name : Get<std::vector<std::string>>(json, "settings"))
      write.settings.push_back(SettingOf(name));
    // An agent before this one did not ask.
    write.roce1 = json.contains("roce1") && Get<bool>(json, "roce1");
    const Json link = Get<Json>(json, "link");
    write.link = {Get<bool>(link, "carrier"), Get<std::uint64_t>(link, "carrierChanges"),
                  Get<std::map<std::string, std::uint64_t>>(link, "errors")};
    write.noise = Get<std::map<std::string, std::uint64_t>>(json, "noise");
    // An agent before this one did not say.
    if (json.contains("noiseSeconds")) write.noise_seconds = Get<std::int64_t>(json, "noiseSeconds");
    write.starts = Get<int>(json, "starts");
    // An agent before this one did not count.
    if (json.contains("undone")) write.undone = Get<int>(json, "undone");
    if (write.undone < 0) Note("undone");
    write.interrupts = Get<bool>(json, "interrupts");
    write.back = Get<bool>(json, "back");
    write.why = Get<std::string>(json, "why");
    write.conflict = Get<bool>(json, "conflict");
    write.about = Get<std::string>(json, "about");
    return write;
  }

  std::string problem_;
};

}  // namespace

std::string AboutOf(const PortRecord& record) {
  // As agents had it that knew no UID, where there is none: they may have begun a write.
  return fmt::format("{} {} {}{}{}", record.edition.policy, record.edition.generation, record.subject,
                     record.edition.uid.empty() ? "" : " ", record.edition.uid);
}

base::Result<std::string> RecordText(const PortRecord& record) {
  const std::string text = ToJson(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (text.size() > kMaxFile)
    return base::Fail(Code::kTooLarge, fmt::format("it has {} bytes, of {} at most", text.size(), kMaxFile));
  ASSIGN_OR_RETURN(const PortRecord back, ParseRecord(text));
  if (back != record) return base::Fail(Code::kInvalid, "it would not be read back as it was written");
  return text;
}

base::Result<PortRecord> ParseRecord(const std::string& text) {
  if (text.size() > kMaxFile)
    return base::Fail(Code::kTooLarge, fmt::format("it has {} bytes, of {} at most", text.size(), kMaxFile));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return base::Fail(Code::kInvalid, "it is no JSON object");
  return Reader().Read(json);
}

std::unique_ptr<Journal> OpenJournal(std::string folder) {
  return std::make_unique<DiskJournal>(std::move(folder));
}

}  // namespace heddle::nodeagent
