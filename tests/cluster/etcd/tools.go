//go:build tools

// Keeps etcd among the module's requirements; never compiled.
package tools

import _ "go.etcd.io/etcd/server/v3"
