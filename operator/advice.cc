#include "operator/advice.h"

namespace heddle::operators {

std::string Advice(const base::Error& error) {
  using base::Code;
  switch (error.code) {
    case Code::kUnavailable:
    case Code::kTimeout:
      return "check that the API server is up and that --kubeconfig (or the pod's service account) names it; "
             "trying again";
    case Code::kUnauthorized:
      return "the API server does not know these credentials: renew the token or certificate; trying again";
    case Code::kForbidden:
      return "the role lacks this right: helm upgrade the chart, or bind ClusterRole heddle-operator to this "
             "account; "
             "trying again";
    case Code::kNotFound:
    case Code::kUnimplemented:
      return "the API server does not serve this kind: install Heddle's CRDs (kubectl apply -f crds/, or "
             "helm install); "
             "trying again";
    case Code::kThrottled:
      return "the API server asks for patience; trying again";
    default:
      return "trying again";
  }
}

}  // namespace heddle::operators
