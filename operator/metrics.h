#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/switch_verdicts.h"
#include "operator/ufm_watch.h"
#include "topology/fabric.h"
#include "topology/suspects.h"

namespace heddle::operators {

// What the operator counts, for Prometheus.
// Thread rule: every member may be called from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void Reconciled(std::string_view reconciler, std::string_view result);  // "ok", or the error's code
  void Wrote(std::string_view reconciler, int writes);
  void Leading(bool leading);
  void QueueDepth(std::size_t ready);
  void Assembled(const std::map<std::string, topology::Fabric>& fabrics, std::size_t stale,
                 std::size_t left_out);

  void Switches(const SwitchAnswers& answers, const SwitchVerdicts& verdicts);
  void Ufms(const std::map<std::string, UfmAnswer>& answers);  // by Fabric
  void Suspects(const std::string& fabric, const std::vector<topology::Suspect>& suspects);

  std::string Text() const;  // the text exposition format

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace heddle::operators
