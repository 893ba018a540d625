#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gnmi/client.h"

namespace heddle::test {

// Switches that answer at once, on the caller's thread, what a test says. A database's table is what a SONiC switch
// answers for a path of one step; other paths answer by their text.
struct FakeSwitch {
  bool listens = true;
  std::vector<std::string> models{"sonic-db"};
  std::map<std::string, gnmi::Json> tables;  // by "CONFIG_DB:/PORT"; one that is missing answers {}
  std::map<std::string, std::map<gnmi::Path, gnmi::Json>> parts;  // in place of a table: update by update
  std::optional<base::Error> refuses;                             // what each call comes to
  std::map<std::string, base::Error> troubles;  // what a Get or a subscription with that path comes to
  std::set<std::string> unreadable;             // paths whose values nobody can read
  std::map<std::string, int> asked;             // how often a Get had that path
  std::map<std::string, int> subscribed;        // likewise a subscription that was kept
  bool streams = false;                         // keeps subscriptions; else ends them as unknown
  int gets = 0, dials = 0;
  std::map<std::string, gnmi::StreamEvents> open;  // by the first path that was subscribed to
  gnmi::Endpoint last;                             // that it was dialled by
};

class FakeDialer final : public gnmi::Dialer {
 public:
  std::map<std::string, FakeSwitch> switches;  // by address

  base::Result<std::unique_ptr<gnmi::Client>> Dial(const gnmi::Endpoint& endpoint) override {
    FakeSwitch& there = switches[endpoint.address];
    ++there.dials;
    there.last = endpoint;
    return std::make_unique<FakeClient>(there, endpoint.address);
  }

 private:
  class FakeStream final : public gnmi::Stream {
   public:
    FakeStream(FakeSwitch& there, std::string path) : there_(there), path_(std::move(path)) {}
    ~FakeStream() override { there_.open.erase(path_); }

   private:
    FakeSwitch& there_;
    const std::string path_;
  };

  class FakeClient final : public gnmi::Client {
   public:
    FakeClient(FakeSwitch& there, std::string address) : there_(there), address_(std::move(address)) {}

    void Capabilities(std::chrono::milliseconds,
                      std::function<void(base::Result<gnmi::ServerCapabilities>)> done) override {
      if (const auto error = Trouble()) return done(base::Fail(*error));
      gnmi::ServerCapabilities said;
      for (const std::string& model : there_.models) said.models.push_back({model, "", ""});
      done(std::move(said));
    }
    void Get(const gnmi::GetRequest& request, std::chrono::milliseconds,
             std::function<void(base::Result<std::vector<gnmi::Notice>>)> done) override {
      ++there_.gets;
      if (const auto error = Trouble()) return done(base::Fail(*error));
      for (const gnmi::Path& path : request.paths) ++there_.asked[gnmi::FormatPath(path)];
      for (const gnmi::Path& path : request.paths) {
        const auto trouble = there_.troubles.find(gnmi::FormatPath(path));
        if (trouble != there_.troubles.end()) return done(base::Fail(trouble->second));
      }
      std::vector<gnmi::Notice> notices;
      for (const gnmi::Path& path : request.paths) {
        const auto found = there_.tables.find(gnmi::FormatPath(path));
        gnmi::Notice notice;
        if (there_.unreadable.contains(gnmi::FormatPath(path))) {
          notice.updates.push_back({path, base::Fail(base::Code::kInvalid, "nothing at all")});
          notices.push_back(std::move(notice));
          continue;
        }
        if (const auto parts = there_.parts.find(gnmi::FormatPath(path)); parts != there_.parts.end()) {
          for (const auto& [where, part] : parts->second) notice.updates.push_back({where, part.dump()});
          notices.push_back(std::move(notice));
          continue;
        }
        notice.updates.push_back({path, found == there_.tables.end() ? "{}" : found->second.dump()});
        notices.push_back(std::move(notice));
      }
      done(std::move(notices));
    }
    std::unique_ptr<gnmi::Stream> Subscribe(const gnmi::SubscribeRequest& request,
                                            gnmi::StreamEvents events) override {
      const std::string path = gnmi::FormatPath(request.subscriptions.at(0).path);
      std::optional<base::Error> refused;
      for (const gnmi::Subscription& one : request.subscriptions) {
        const auto trouble = there_.troubles.find(gnmi::FormatPath(one.path));
        if (trouble != there_.troubles.end()) refused = trouble->second;
      }
      if (!there_.streams) {
        events.ended(base::Fail(base::Code::kUnimplemented, address_ + ": keeps no subscriptions"));
      } else if (refused) {
        events.ended(base::Fail(*refused));
      } else {
        for (const gnmi::Subscription& one : request.subscriptions)
          ++there_.subscribed[gnmi::FormatPath(one.path)];
        events.synced();
        there_.open[path] = std::move(events);
      }
      return std::make_unique<FakeStream>(there_, path);
    }

   private:
    std::optional<base::Error> Trouble() const {
      if (!there_.listens)
        return base::Error{base::Code::kUnavailable, address_ + ": nobody listens there", std::nullopt};
      return there_.refuses;
    }

    FakeSwitch& there_;
    const std::string address_;
  };
};

}  // namespace heddle::test
