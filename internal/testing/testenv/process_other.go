//go:build unix && !linux

package testenv

import "syscall"

// endWithParent does nothing: only Linux has a signal for a parent's end.
func endWithParent(*syscall.SysProcAttr) {}
