//go:build unix

// This file holds PostgreSQL's dumps, and a replica that can lag.

package testenv

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// PostgresDump is a dump of a database by pg_dump. The database may be in use meanwhile.
type PostgresDump struct {
	server *postgresServer
	file   string
}

// DumpPostgres dumps a database that Postgres returned.
func DumpPostgres(t testing.TB, dsn string) PostgresDump {
	t.Helper()

	s, name, err := postgres.serverOf(dsn)
	if err != nil {
		t.Fatalf("testenv: PostgreSQL: %v", err)
	}

	file := filepath.Join(t.TempDir(), "dump")
	if err := s.run("pg_dump", "--format=custom", "--file="+file, name); err != nil {
		t.Fatalf("testenv: PostgreSQL: %v", err)
	}

	return PostgresDump{server: s, file: file}
}

// Restore restores the dump by pg_restore into a new database and returns its DSN. The database is dropped
// when the test ends.
func (d PostgresDump) Restore(t testing.TB) string {
	t.Helper()

	dsn := Postgres(t)

	s, name, err := postgres.serverOf(dsn)
	if err == nil {
		err = s.run("pg_restore", "--exit-on-error", "--dbname="+name, d.file)
	}

	if err != nil {
		t.Fatalf("testenv: PostgreSQL: %v", err)
	}

	return dsn
}

// serverOf returns the running server of a DSN, and the database's name.
func (p *postgresServers) serverOf(dsn string) (*postgresServer, string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, "", err
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, s := range p.servers {
		if s.dir == u.Query().Get("host") {
			return s, strings.TrimPrefix(u.Path, "/"), nil
		}
	}

	return nil, "", errors.New("no server of this test binary has the database " + u.Path)
}

// PostgresReplica is a server that follows the one of a database by streaming replication.
type PostgresReplica struct {
	primary  *postgresServer
	replica  *postgresServer
	database string
}

// FollowPostgres starts a replica of the server of a database that Postgres returned. It is stopped when the
// test ends.
func FollowPostgres(t testing.TB, dsn string) *PostgresReplica {
	t.Helper()

	s, name, err := postgres.serverOf(dsn)
	if err != nil {
		t.Fatalf("testenv: PostgreSQL: %v", err)
	}

	r := &PostgresReplica{primary: s, database: name}
	if r.replica, err = s.startReplica(); err != nil {
		t.Fatalf("testenv: PostgreSQL replica: %v", err)
	}

	t.Cleanup(func() {
		r.replica.finish(t, syscall.SIGQUIT)
		_ = os.RemoveAll(r.replica.dir)
	})

	return r
}

// startReplica copies a running server and starts the copy as its replica.
func (s *postgresServer) startReplica() (_ *postgresServer, err error) {
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()

	if err := s.give(dir); err != nil {
		return nil, err
	}

	data := filepath.Join(dir, "data")

	base := s.command(
		dir, "pg_basebackup", "-h", s.dir, "-p", "5432", "-U", "postgres", "-D", data, "-R", "-X", "stream",
		"-c", "fast", "--no-sync",
	)
	if out, err := base.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}

	cmd := s.command(
		dir, "postgres", "-D", data, "-k", dir, "-h", "", "-N", "200", "-c", "fsync=off",
	)

	p, err := startProcess("postgres replica", cmd, filepath.Join(dir, "postgres.log"))
	if err != nil {
		return nil, err
	}

	copied := &postgresServer{process: p, postgresInstall: s.postgresInstall, dir: dir}
	if err := p.waitReady(func() error { return copied.run("pg_isready", "--quiet") }); err != nil {
		p.stop(syscall.SIGKILL)
		return nil, err
	}

	return copied, nil
}

// Detach waits until the replica has everything that the primary has now, and then cuts it off: from here
// on it lags.
func (r *PostgresReplica) Detach(t testing.TB) {
	t.Helper()

	at, err := r.primary.query(r.database, "SELECT pg_current_wal_lsn()")
	if err != nil {
		t.Fatalf("testenv: PostgreSQL: %v", err)
	}

	r.await(t, "has what the primary has", "SELECT pg_last_wal_replay_lsn() >= '"+at+"'")

	for _, statement := range []string{
		"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()",
	} {
		if _, err := r.replica.query(r.database, statement); err != nil {
			t.Fatalf("testenv: PostgreSQL replica: %v", err)
		}
	}

	r.await(t, "is cut off", "SELECT count(*) = 0 FROM pg_stat_wal_receiver")
}

// Promote makes the replica a primary, and returns the DSN of the database in it.
func (r *PostgresReplica) Promote(t testing.TB) string {
	t.Helper()

	if _, err := r.replica.query(r.database, "SELECT pg_promote()"); err != nil {
		t.Fatalf("testenv: PostgreSQL replica: %v", err)
	}

	r.await(t, "is a primary", "SELECT NOT pg_is_in_recovery()")

	return r.replica.dsn(r.database)
}

// await waits until a query of the replica is true.
func (r *PostgresReplica) await(t testing.TB, what, condition string) {
	t.Helper()

	var (
		answer string
		err    error
	)

	if !poll(startTimeout, func() bool {
		answer, err = r.replica.query(r.database, condition)
		return answer == "t"
	}) {
		t.Fatalf("testenv: the PostgreSQL replica never %s: %q, %v\n%s", what, answer, err, r.replica.tail())
	}
}

// query returns the only value of a statement's answer.
func (s *postgresServer) query(database, statement string) (string, error) {
	cmd := s.command(
		s.dir, "psql", "-h", s.dir, "-p", "5432", "-U", "postgres", "-At", "-c", statement, database,
	)

	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, out)
	}

	return strings.TrimSpace(string(out)), nil
}
