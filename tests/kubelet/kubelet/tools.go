//go:build tools

// Keeps the command among the module's requirements; never compiled.
package tools

import _ "k8s.io/kubernetes/cmd/kubelet"
