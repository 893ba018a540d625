//go:build tools

// Keeps the client that tools/control-plane builds beside the peer among the module's requirements; never compiled.
package main

import (
	_ "github.com/openconfig/gnmi/cmd/gnmi_cli"
)
