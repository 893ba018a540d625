#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "lossless/cable_compare.h"
#include "nodeagent/health/ethtool_socket.h"

namespace heddle::nodeagent {

// The forward error correction that an interface's link runs with now. Thread rule: one thread.
class FecCoding {
 public:
  FecCoding() = default;
  FecCoding(const FecCoding&) = delete;
  FecCoding& operator=(const FecCoding&) = delete;
  virtual ~FecCoding() = default;
  // Nothing: the link is down, the driver does not say, or it is one that switches do not have.
  virtual std::optional<lossless::Fec> Read(const std::string& netdev) = 0;
};

// By SIOCETHTOOL, ETHTOOL_GFECPARAM: of what it says only the active coding, not what is configured. Needs no rights.
class EthtoolFec final : public FecCoding {
 public:
  std::optional<lossless::Fec> Read(const std::string& netdev) override;

 private:
  EthtoolSocket socket_;
};

// Of the kernel's bits of an active coding (linux/ethtool.h, enum ethtool_fec_config_bits): one of OFF, RS and BASER.
// Several at once, AUTO and LLRS, which is another code than a switch's "rs", are nothing. Pure.
std::optional<lossless::Fec> FecOf(std::uint32_t active);

}  // namespace heddle::nodeagent
