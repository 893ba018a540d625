#pragma once

#include <span>

#include "crds/cable_report.h"
#include "crds/codec.h"
#include "crds/node_lossless.h"
#include "lossless/policy.h"

// Between our own codecs and included by nobody else.
namespace heddle::crds::codec {

// Settings of hosts. What nobody said has no key.
Json WriteSettings(const lossless::PortSettings& settings);
lossless::PortSettings ReadSettings(const Field& field);

Json WritePriorities(const lossless::PrioritySet& set);
lossless::PrioritySet ReadPriorities(const Field& field);
lossless::PriorityTable ReadTable(const Field& field);
lossless::Numbers ReadNumbers(const Field& field, std::int64_t max);
Json WriteDcqcn(const lossless::Dcqcn& dcqcn);
lossless::Dcqcn ReadDcqcn(const Field& field);
std::vector<int> ReadDscps(const Field& field);
Json WriteInfiniBand(const lossless::InfiniBand& infiniband);
lossless::InfiniBand ReadInfiniBand(const Field& field);

LosslessMode ReadMode(const Field& field);
OnDrift ReadOnDrift(const Field& field);

// Adds the paths of the keys of an object that are none of `known`, kMaxUnknown of them at most.
void NoteUnknown(const Field& field, std::span<const std::string_view> known,
                 std::vector<std::string>& unknown);
inline constexpr std::size_t kMaxUnknown = 16;
inline constexpr std::size_t kMaxUid = 64;  // of a policy; the server's have 36 letters

Json WriteWish(const LosslessWish& wish);
LosslessWish ReadWish(const Field& field);
LosslessWish ReadWishHead(const Field& field);  // ports, policies, generation and UID only
Json WriteReport(const LosslessReport& report);
LosslessReport ReadReport(const Field& field);

Json WriteCableReport(const CableReport& report);
CableReport ReadCableReport(const Field& field);
// As counts.cables and its parts; of an object that also holds others.
void PutCableCounts(Json& json, const CableCounts& counts);
CableCounts ReadCableCounts(const Field& field, std::int64_t max);

inline constexpr std::int64_t kMaxBufferBytes = 1 << 30;
inline constexpr std::int64_t kMinMtu = 68;  // RFC 791
inline constexpr std::int64_t kMaxMtu = 65535;
inline constexpr std::int64_t kMaxCableMetres = 1000;

}  // namespace heddle::crds::codec
