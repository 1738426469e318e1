package kube

import "syscall"

// pluginAttributes put a plugin into a process group of its own, so that all
// of it can be ended, and end it when its guard is killed.
func pluginAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
