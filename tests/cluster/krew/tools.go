//go:build tools

// Keeps the commands that tools/control-plane --krew builds among the module's requirements; never compiled.
package tools

import (
	_ "sigs.k8s.io/krew/cmd/krew"
	_ "sigs.k8s.io/krew/cmd/validate-krew-manifest"
)
