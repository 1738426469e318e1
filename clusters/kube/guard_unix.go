//go:build unix && !linux

package kube

import "syscall"

// pluginAttributes put a plugin into a process group of its own, so that all
// of it can be ended.
func pluginAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
