package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// pageAddress is what every page serves on. A run replaces its port by a free one.
const pageAddress = "127.0.0.1:8080"

// startTimeout is how long a started block may take until it is ready: it may have a module to compile.
const startTimeout = 10 * time.Minute

// runner runs the blocks of one page, one after the other, as a reader would.
type runner struct {
	repo    string
	dir     string   // the page's own, empty at first
	state   string   // the file that carries variables and the directory from block to block
	address string   // what stands for pageAddress
	env     []string // of every command

	serves  bool   // a file of the page serves on address
	output  string // of the last block that ran
	started *started
	did     int
	skipped int
}

// started is a block that runs in the background.
type started struct {
	cmd  *exec.Cmd
	out  *safeBuffer
	done chan struct{} // closed when the command has ended
}

// newRunner returns a runner with a directory under scratch.
func newRunner(repo, scratch string, env []string) (*runner, error) {
	dir, err := os.MkdirTemp(scratch, "page-")
	if err != nil {
		return nil, err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()

	return &runner{
		repo:    repo,
		dir:     dir,
		state:   dir + ".state",
		address: listener.Addr().String(),
		env:     env,
	}, nil
}

// page runs all blocks of a page and stops what it started.
func (r *runner) page(ctx context.Context, path string) error {
	blocks, err := readPage(path)
	if err != nil {
		return err
	}

	defer r.stop()

	for _, b := range blocks {
		if err := r.block(ctx, b); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", path, b.line, b.verb, err)
		}
	}

	return nil
}

func (r *runner) block(ctx context.Context, b block) error {
	text := strings.ReplaceAll(b.text, pageAddress, r.address)

	if b.verb == "skip" {
		r.skipped++
		return nil
	}

	r.did++

	switch b.verb {
	case "file":
		r.serves = r.serves || strings.Contains(text, r.address)
		return r.write(b.args, text)
	case "run":
		return r.run(ctx, text, b.args == "repo")
	case "start":
		return r.start(ctx, text, b.args)
	case "set":
		return r.set(b.args)
	case "quote":
		content, err := os.ReadFile(filepath.Join(r.repo, b.args))
		if err != nil {
			return err
		}

		return compare(b.text, string(content))
	default:
		return compare(text, r.output)
	}
}

// compare returns an error for a line of want that got lacks.
func compare(want, got string) error {
	if line := missing(want, got); line != "" {
		return fmt.Errorf("no line %q, in this order, in:\n%s", line, got)
	}

	return nil
}

// write writes a block into the directory that the blocks before have changed to.
func (r *runner) write(name, text string) error {
	dir, err := r.current()
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}

// current returns the directory that the blocks before have changed to.
func (r *runner) current() (string, error) {
	script := fmt.Sprintf("[ ! -e %[1]q ] || . %[1]q; pwd", r.state)
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = r.dir

	out, err := cmd.Output()

	return strings.TrimSpace(string(out)), err
}

// run runs a block. Its variables and its directory are those of the next one.
func (r *runner) run(ctx context.Context, text string, inRepo bool) error {
	script := fmt.Sprintf(
		"[ ! -e %[1]q ] || . %[1]q\nset -a\n%[2]s\n"+
			"{ export -p | grep -v ' PWD='; printf 'cd %%q\\n' \"$PWD\"; } >%[1]q\n",
		r.state, text,
	)
	if inRepo {
		script = text
	}

	cmd := r.command(ctx, script, inRepo)

	out, err := cmd.CombinedOutput()
	r.output = string(out)

	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}

	return nil
}

// start runs a block in the background and waits until its output has the words.
func (r *runner) start(ctx context.Context, text, words string) error {
	r.stop()

	out := &safeBuffer{}
	cmd := r.command(ctx, fmt.Sprintf("[ ! -e %[1]q ] || . %[1]q\n%[2]s", r.state, text), false)
	cmd.Stdout, cmd.Stderr = out, out

	if err := cmd.Start(); err != nil {
		return err
	}

	r.started = &started{cmd: cmd, out: out, done: make(chan struct{})}

	go func() {
		defer close(r.started.done)

		_ = cmd.Wait()
	}()

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	for !strings.Contains(out.String(), words) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("no %q within %s in:\n%s", words, startTimeout, out)
		case <-r.started.done:
			return fmt.Errorf("it ended before it printed %q:\n%s", words, out)
		case <-time.After(50 * time.Millisecond):
		}
	}

	r.output = out.String()

	return r.listening(ctx)
}

// listening waits until the page's address accepts connections, if one of its files names it.
func (r *runner) listening(ctx context.Context) error {
	for r.serves {
		conn, err := net.Dial("tcp", r.address)
		if err == nil {
			return conn.Close()
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}

	return nil
}

// set sets a variable for the blocks that follow. args are its name and a regular expression with one group.
func (r *runner) set(args string) error {
	name, pattern, _ := strings.Cut(args, " ")

	group, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}

	if r.started == nil {
		return errors.New("nothing was started on this page")
	}

	found := group.FindStringSubmatch(r.started.out.String())
	if len(found) != 2 {
		return fmt.Errorf("no %s in:\n%s", pattern, r.started.out)
	}

	state, err := os.OpenFile(r.state, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()

	_, err = fmt.Fprintf(state, "export %s=%s\n", name, strconv.Quote(found[1]))

	return err
}

// stop ends what was started, with its children.
func (r *runner) stop() {
	if r.started == nil {
		return
	}

	_ = syscall.Kill(-r.started.cmd.Process.Pid, syscall.SIGTERM)

	select {
	case <-r.started.done:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-r.started.cmd.Process.Pid, syscall.SIGKILL)
		<-r.started.done
	}

	r.started = nil
}

// command returns a bash in a process group of its own.
func (r *runner) command(ctx context.Context, script string, inRepo bool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

	cmd.Dir = r.dir
	if inRepo {
		cmd.Dir = r.repo
	}

	return cmd
}

// safeBuffer is a buffer that a command fills while it is read.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends output.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.buf.Write(p)
}

// String returns all output so far.
func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.buf.String()
}
