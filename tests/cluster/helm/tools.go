//go:build tools

// Keeps the command among the module's requirements; never compiled.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
