package testenv

import "syscall"

// endWithParent has the kernel stop the child when the test binary ends without cleaning up, as it
// does after a test's time-out. Strictly, the signal comes when the thread that started the child
// ends; Go's threads live on unless a goroutine ends while it is locked to one.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
