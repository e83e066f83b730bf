//go:build unix

// This file holds MariaDB: one server per call.

package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// MariaDB starts an empty MariaDB server that does not wait for the disk, and returns the DSN of its
// database "test" for github.com/go-sql-driver/mysql, with full rights. The only way in is a Unix socket. The
// server is stopped when the test ends. Only `make stores` runs it: OnlyStores.
func MariaDB(t testing.TB) string {
	t.Helper()
	OnlyStores(t)
	skipShort(t, "MariaDB")

	dsn, server, err := startMariaDB()
	if err != nil {
		t.Fatalf(
			"testenv: MariaDB: %v; install mariadb-server (on Debian: apt-get install mariadb-server)",
			err,
		)
	}

	t.Cleanup(func() {
		server.finish(t, syscall.SIGKILL) // at once: there is nothing to save

		_ = os.RemoveAll(filepath.Dir(server.log))
	})

	return dsn
}

// startMariaDB starts a server on a fresh data directory.
func startMariaDB() (dsn string, _ *process, err error) {
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		return "", nil, err
	}

	program, err := exec.LookPath("mariadbd")
	if err != nil {
		program = "/usr/sbin/mariadbd" // which is not on every user's PATH
	}

	account, err := user.Current()
	if err != nil {
		return "", nil, err
	}
	// Named briefly: the path of a Unix socket has some 100 bytes at most.
	dir, err := os.MkdirTemp("", "maria")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()

	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")

	made := exec.Command(
		install, "--no-defaults", "--datadir="+data, "--user="+account.Username, "--skip-test-db",
		"--auth-root-authentication-method=normal", "--basedir=/usr",
	)
	if out, err := made.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}

	cmd := exec.Command(
		program, "--no-defaults", "--datadir="+data, "--user="+account.Username, "--socket="+socket,
		"--pid-file="+filepath.Join(dir, "pid"), "--skip-networking", "--innodb-flush-log-at-trx-commit=0",
		"--innodb-doublewrite=0", "--character-set-server=utf8mb4",
	)

	server, err := startProcess("mariadbd", cmd, filepath.Join(dir, "log"))
	if err != nil {
		return "", nil, err
	}

	ready := func() error {
		pid, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err == nil && strings.TrimSpace(string(pid)) != strconv.Itoa(server.pid()) {
			err = errors.New("another server answers")
		}

		return errors.Join(err, createMariaDB(socket))
	}
	if err := server.waitReady(ready); err != nil {
		server.stop(syscall.SIGKILL)
		return "", nil, err
	}

	return "root@unix(" + socket + ")/test?parseTime=true&interpolateParams=true", server, nil
}

// createMariaDB makes the database "test".
func createMariaDB(socket string) error {
	out, err := exec.Command(
		"mariadb",
		"--no-defaults",
		"--user=root",
		"--socket="+socket,
		"-e",
		"CREATE DATABASE IF NOT EXISTS test",
	).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb: %w: %s", err, out)
	}

	return nil
}
