//go:build tools

// Keeps the command among the module's requirements; never compiled.
package tools

import _ "github.com/kubeflow/training-operator/cmd/training-operator.v1"
