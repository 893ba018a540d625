//go:build tools

// Keeps the command among the module's requirements; never compiled.
package tools

import _ "github.com/ray-project/kuberay/ray-operator"
