#include "nodeagent/recording/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kName = 100, kPrefix = 155;

// IEEE Std 1003.1, "ustar Interchange Format".
struct Header {
  char name[kName];
  char mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
  char type;
  char link[kName];
  char magic[8];  // "ustar", a zero, "00"
  char owner[32], group[32], major[8], minor[8];
  char prefix[kPrefix];
  char rest[12];
};
static_assert(sizeof(Header) == kBlock);

constexpr char kFile = '0', kLink = '2', kFolder = '5', kPax = 'x';

template <std::size_t N>
void Put(char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(N, text.size()));
}

// Octal with a zero behind it.
template <std::size_t N>
void PutOctal(char (&field)[N], std::size_t number) {
  Put(field, fmt::format("{:0{}o}", number, N - 1));
}

// Where a path is parted into prefix and name; npos = it does not fit both.
std::size_t PartOf(std::string_view path) {
  if (path.size() <= kName) return 0;
  const std::size_t first = path.size() - kName - 1;  // the name behind an earlier slash is too long
  const std::size_t slash = path.find('/', first);
  return slash == std::string_view::npos || slash > kPrefix || slash + 1 == path.size()
             ? std::string_view::npos
             : slash;
}

class Archive {
 public:
  void Add(char type, std::string_view path, std::string_view content, std::string_view link) {
    const bool long_path = PartOf(path) == std::string_view::npos, long_link = link.size() > kName;
    if (long_path || long_link) {
      std::string records;
      if (long_path) records += Record("path", path);
      if (long_link) records += Record("linkpath", link);
      Write(kPax, "pax", records, "");
    }
    Write(type, path, content, link);
  }

  std::string Finish() && {
    bytes_.append(2 * kBlock, '\0');
    return std::move(bytes_);
  }

 private:
  // "27 path=sys/devices/…\n", whose number counts itself.
  static std::string Record(std::string_view word, std::string_view value) {
    const std::size_t rest = word.size() + value.size() + 3;
    std::size_t length = rest + 1;
    while (length != rest + std::to_string(length).size()) ++length;
    return fmt::format("{} {}={}\n", length, word, value);
  }

  void Write(char type, std::string_view path, std::string_view content, std::string_view link) {
    Header header;
    std::memset(&header, 0, sizeof header);
    const std::size_t part = PartOf(path);
    if (part == 0 || part == std::string_view::npos) {
      Put(header.name, path);  // too long a one is cut, and stands whole in the record before
    } else {
      Put(header.prefix, path.substr(0, part));
      Put(header.name, path.substr(part + 1));
    }
    PutOctal(header.mode, type == kFolder ? 0755 : 0644);
    PutOctal(header.uid, 0);
    PutOctal(header.gid, 0);
    PutOctal(header.size, content.size());
    PutOctal(header.mtime, 0);
    header.type = type;
    Put(header.link, link);
    Put(header.magic, std::string_view("ustar\00000", 8));
    std::memset(header.checksum, ' ', sizeof header.checksum);
    std::size_t sum = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
    for (std::size_t i = 0; i < kBlock; ++i) sum += bytes[i];
    Put(header.checksum, fmt::format("{:06o}", sum));
    header.checksum[6] = '\0';
    bytes_.append(reinterpret_cast<const char*>(&header), kBlock);
    bytes_ += content;
    bytes_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
  }

  std::string bytes_;
};

// All folders that a path lies in.
void AddParents(std::string_view path, std::set<std::string>& folders) {
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1))
    folders.insert(std::string(path.substr(0, slash)));
}

}  // namespace

std::string ToTar(const RecordedFiles& recorded) {
  std::set<std::string> folders;
  for (const std::string& path : recorded.folders) {
    if (!path.empty()) folders.insert(path);
    AddParents(path, folders);
  }
  for (const auto& [path, content] : recorded.files) AddParents(path, folders);
  for (const auto& [path, target] : recorded.links) AddParents(path, folders);
  Archive archive;
  // Sorted, so that a folder comes before what lies in it.
  for (const std::string& path : folders) archive.Add(kFolder, path + "/", "", "");
  for (const auto& [path, content] : recorded.files) archive.Add(kFile, path, content, "");
  for (const auto& [path, target] : recorded.links) {
    if (target.starts_with('/') || folders.contains(path) || recorded.files.contains(path)) continue;
    archive.Add(kLink, path, "", target);
  }
  return std::move(archive).Finish();
}

}  // namespace heddle::nodeagent
