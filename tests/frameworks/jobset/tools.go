//go:build tools

// Keeps the command among the module's requirements; never compiled.
package tools

import _ "sigs.k8s.io/jobset"
