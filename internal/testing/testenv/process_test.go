//go:build unix

package testenv

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func startShell(t *testing.T, script string) *process {
	t.Helper()

	p, err := startProcess("shell", exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { p.stop(syscall.SIGKILL) })

	return p
}

func TestReadinessReportsAChildThatEnds(t *testing.T) {
	p := startShell(t, "echo the port is taken; exit 3")

	err := p.waitReady(func() error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("error %v, want one with the exit status and the output", err)
	}
}

func TestReadinessDoesNotTrustAnAnswerOfSomeoneElse(t *testing.T) {
	p := startShell(t, "exit 1")

	err := p.waitReady(func() error {
		poll(stopTimeout, func() bool { return !p.alive() })
		return nil // another process answers at the address
	})
	if err == nil {
		t.Error("ready although the child has ended")
	}
}

func TestStopReturnsWhenTheChildHasEnded(t *testing.T) {
	p := startShell(t, "exec sleep 1000")
	if !p.alive() {
		t.Fatal("the child does not run")
	}

	p.stop(syscall.SIGKILL)

	if p.alive() {
		t.Error("the child runs after stop")
	}

	if got, want := p.outcome(), "signal: killed"; got != want {
		t.Errorf("outcome %q, want %q", got, want)
	}

	p.stop(syscall.SIGKILL) // a second time does nothing
}
