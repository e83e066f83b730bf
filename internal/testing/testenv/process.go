//go:build unix

// This file holds the child process: how it is started, watched and stopped.

package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child that writes its output into a file. It is watched without a goroutine of its
// own, so that tests that look for leaked goroutines see only their own.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string // path of its output

	mu      sync.Mutex
	stopped bool // it was sent a signal to end
	ended   bool
	state   syscall.WaitStatus // how it ended
}

// startProcess starts cmd with its output going to the file at log.
func startProcess(name string, cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer out.Close()

	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}

	endWithParent(cmd.SysProcAttr)

	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	return &process{name: name, cmd: cmd, log: log}, nil
}

// pid is the child's process id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// alive reports whether the child still runs. A child that has ended is reaped here, and its id is
// never signalled again.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return !p.reap(syscall.WNOHANG)
}

// reap collects the child if it has ended, or waits for its end if options is 0, and reports whether
// it has. The caller holds p.mu.
func (p *process) reap(options int) bool {
	if p.ended {
		return true
	}

	var got int

	err := retryInterrupted(func() (err error) {
		got, err = syscall.Wait4(p.pid(), &p.state, options, nil)
		return err
	})
	p.ended = got == p.pid() || errors.Is(err, syscall.ECHILD)

	return p.ended
}

// stop sends sig, and kills the child if it still runs after stopTimeout. It returns when the child
// has ended.
func (p *process) stop(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.reap(syscall.WNOHANG) {
		return
	}

	p.stopped = true

	_ = p.cmd.Process.Signal(sig)
	if sig != syscall.SIGKILL && poll(stopTimeout, func() bool { return p.reap(syscall.WNOHANG) }) {
		return
	}

	_ = p.cmd.Process.Kill()
	p.reap(0)
}

// finish stops the child at the end of a test, and fails the test if the child has ended before
// it was stopped.
func (p *process) finish(t testing.TB, sig syscall.Signal) {
	t.Helper()
	p.stop(sig)

	if !p.stopped {
		t.Errorf("testenv: %s ended before the test did (%s):\n%s", p.name, p.outcome(), p.tail())
	}
}

// waitReady polls ready until it returns nil. It gives up when the child ends or startTimeout has passed.
func (p *process) waitReady(ready func() error) error {
	var last error

	answered := poll(startTimeout, func() bool {
		last = ready()
		return last == nil || !p.alive()
	})
	switch {
	case !p.alive():
		return fmt.Errorf("%s ended while it started (%s):\n%s", p.name, p.outcome(), p.tail())
	case !answered:
		return fmt.Errorf("%s does not answer after %v: %w\n%s", p.name, startTimeout, last, p.tail())
	}

	return nil
}

// outcome describes how the child ended.
func (p *process) outcome() string {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.state.Signaled() {
		return "signal: " + p.state.Signal().String()
	}

	return fmt.Sprintf("exit status %d", p.state.ExitStatus())
}

// tail returns the last of what the child wrote, for a failure's message.
func (p *process) tail() string {
	const most = 4 << 10

	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()

	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}

	text, _ := io.ReadAll(f)

	return strings.TrimSpace(string(text))
}

// poll calls done until it returns true, and reports whether it did within the limit.
func poll(limit time.Duration, done func() bool) bool {
	deadline := time.Now().Add(limit)

	tick := time.NewTicker(pollEvery)
	defer tick.Stop()

	for !done() {
		if time.Now().After(deadline) {
			return false
		}

		<-tick.C
	}

	return true
}
