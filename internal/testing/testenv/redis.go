//go:build unix

// This file holds Redis.

package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis starts an empty Redis server that keeps nothing on disk, and returns its address,
// 127.0.0.1:port. The server is stopped when the test ends.
func Redis(t testing.TB) string {
	t.Helper()
	return RedisServer(t).Addr
}

// RedisNode is a running Redis server.
type RedisNode struct {
	// Addr is where it listens, 127.0.0.1:port.
	Addr string

	process *process
}

// Kill ends the server at once, as a crash does. Its data is lost.
func (n *RedisNode) Kill() { n.process.stop(syscall.SIGKILL) }

// RedisServer is Redis for a test that takes the server away while it runs.
func RedisServer(t testing.TB) *RedisNode {
	t.Helper()
	skipShort(t, "Redis")

	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("testenv: Redis: %v; install redis-server (on Debian: apt-get install redis-server)", err)
	}
	// Redis cannot choose a port itself, and the one chosen here can be taken before Redis listens
	// on it: then another is tried.
	const tries = 5

	var errs []error

	for range tries {
		n, err := startRedis(path, t.TempDir())
		if err == nil {
			t.Cleanup(func() { n.process.finish(t, syscall.SIGKILL) }) // at once: there is nothing to save
			return n
		}

		errs = append(errs, err)
	}

	t.Fatalf("testenv: Redis did not start in %d tries: %v", tries, errors.Join(errs...))

	return nil
}

func startRedis(path, dir string) (*RedisNode, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}

	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(
		path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", dir,
	)

	p, err := startProcess("redis-server", cmd, filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, err
	}

	n := &RedisNode{Addr: addr, process: p}
	if err := p.waitReady(n.ready); err != nil {
		p.stop(syscall.SIGKILL)
		return nil, err
	}

	return n, nil
}

// ready sees that the server answers, and that it is our child and not another process that took the port.
func (n *RedisNode) ready() error {
	info, err := n.command("INFO server")
	if err != nil {
		return err
	}

	if !strings.Contains(info, fmt.Sprintf("\nprocess_id:%d\r\n", n.process.pid())) {
		return fmt.Errorf("another process answers at %s", n.Addr)
	}

	return nil
}

// command sends one inline command over a connection of its own and returns the simple or bulk
// string of its answer.
func (n *RedisNode) command(line string) (string, error) {
	conn, err := net.DialTimeout("tcp", n.Addr, startTimeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return "", err
	}

	if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
		return "", err
	}

	r := bufio.NewReader(conn)

	head, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}

	head = strings.TrimSpace(head)
	if text, ok := strings.CutPrefix(head, "+"); ok {
		return text, nil
	}

	length, ok := strings.CutPrefix(head, "$")

	size, err := strconv.ParseUint(length, 10, 20)
	if !ok || err != nil {
		return "", fmt.Errorf("%s: unexpected answer %q", line, head)
	}

	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", err
	}

	return string(body), nil
}

// freePort returns an address of 127.0.0.1 on which nothing listened a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()

	return l.Addr().String(), nil
}
