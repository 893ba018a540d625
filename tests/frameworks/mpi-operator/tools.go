//go:build tools

// Keeps the command among the module's requirements; never compiled.
package tools

import _ "github.com/kubeflow/mpi-operator/cmd/mpi-operator"
