//go:build unix

// This file holds PgBouncer.

package testenv

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// pgBouncerPort names PgBouncer's socket; nothing listens on TCP.
const pgBouncerPort = "6432"

// PgBouncer starts a PgBouncer that pools transactions over at most so many sessions of the server of a DSN of
// Postgres, and returns the DSN of the same database through it. It is stopped when the test ends.
func PgBouncer(t testing.TB, dsn string, sessions int) string {
	t.Helper()
	skipShort(t, "PgBouncer")

	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer" // Debian's, off the PATH of most users
	}

	if _, err := os.Stat(path); err != nil {
		t.Fatalf("testenv: PgBouncer: %v; install pgbouncer (on Debian: apt-get install pgbouncer)", err)
	}

	target, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}

	p, dir, err := startPgBouncer(path, target, sessions)
	if err != nil {
		t.Fatalf("testenv: PgBouncer: %v", err)
	}

	t.Cleanup(func() {
		p.finish(t, syscall.SIGKILL)

		_ = os.RemoveAll(dir)
	})

	query := target.Query()
	query.Set("host", dir)
	query.Set("port", pgBouncerPort)
	target.RawQuery = query.Encode()

	return target.String()
}

func startPgBouncer(path string, target *url.URL, sessions int) (_ *process, dir string, err error) {
	install, err := findPostgres()
	if err != nil {
		return nil, "", err
	}

	// Named briefly: the path of a Unix socket has some 100 bytes at most.
	if dir, err = os.MkdirTemp("", "pb"); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()

	query := target.Query()
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
unix_socket_dir = %s
listen_port = %s
auth_type = any
pool_mode = transaction
default_pool_size = %d
`, query.Get("host"), query.Get("port"), dir, pgBouncerPort, sessions)

	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, "", err
	}

	if err := install.give(dir); err != nil {
		return nil, "", err
	}

	// It refuses to run as root, as PostgreSQL does.
	cmd := exec.Command(path, file)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: install.cred}

	p, err := startProcess("pgbouncer", cmd, filepath.Join(dir, "pgbouncer.log"))
	if err != nil {
		return nil, "", err
	}

	err = p.waitReady(func() error {
		conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL."+pgBouncerPort))
		if err != nil {
			return err
		}

		return conn.Close()
	})
	if err != nil {
		p.stop(syscall.SIGKILL)
		return nil, "", err
	}

	return p, dir, nil
}
