//go:build unix

// This file holds clusters of PostgreSQL servers with Citus.

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// CitusCluster is a cluster of PostgreSQL servers on which Citus spreads tables. Its only way in are sockets.
type CitusCluster struct {
	// DSN is of an empty database on the coordinator.
	DSN     string
	servers []*postgresServer
}

// Citus starts so many PostgreSQL servers, the first of which coordinates, and spreads over all of them. They are
// stopped when the test ends. Where Citus is not installed in the server's library directory, the test fails.
func Citus(t testing.TB, nodes int) *CitusCluster {
	t.Helper()
	skipShort(t, "Citus")

	c := &CitusCluster{}

	t.Cleanup(func() {
		for _, s := range c.servers {
			s.finish(t, syscall.SIGQUIT)

			_ = os.RemoveAll(s.dir)
		}
	})

	if err := c.start(nodes); err != nil {
		t.Fatalf("testenv: Citus: %v; make citus builds and installs it", err)
	}

	return c
}

func (c *CitusCluster) start(nodes int) error {
	const name = "test"

	for range nodes {
		s, err := startPostgres(
			PostgresOptions{},
			"shared_preload_libraries=citus",
			"max_prepared_transactions=200",
			"citus.shard_count=6",
			"citus.max_adaptive_executor_pool_size=1", // see docs/distributed.md
			"plan_cache_mode=force_custom_plan",       // the same
			"citus.recover_2pc_interval=2s",
			"deadlock_timeout=200ms",
		)
		if err != nil {
			return err
		}

		c.servers = append(c.servers, s)
		if err := s.run("createdb", "--template=template0", name); err != nil {
			return err
		}

		if err := s.sql(name, "CREATE EXTENSION citus"); err != nil {
			return err
		}
	}

	first := c.servers[0]

	statements := []string{fmt.Sprintf("SELECT citus_set_coordinator_host('%s', 5432)", first.dir)}
	for _, s := range c.servers[1:] {
		statements = append(statements, fmt.Sprintf("SELECT citus_add_node('%s', 5432)", s.dir))
	}

	statements = append(
		statements,
		fmt.Sprintf("SELECT citus_set_node_property('%s', 5432, 'shouldhaveshards', true)", first.dir),
	)

	if err := first.sql(name, statements...); err != nil {
		return err
	}

	c.DSN = first.dsn(name)

	return nil
}

// Restart has a node, of which 0 coordinates, abort everything it does, and starts it again.
func (c *CitusCluster) Restart(t testing.TB, node int) {
	t.Helper()

	s := c.servers[node]
	s.finish(t, syscall.SIGQUIT)

	if err := s.start(); err != nil {
		t.Errorf("testenv: Citus: restart node %d: %v", node, err)
	}
}

// sql runs statements one by one.
func (s *postgresServer) sql(database string, statements ...string) error {
	psql, err := exec.LookPath("psql")
	if err != nil {
		psql = filepath.Join(s.bin, "psql")
	}

	args := []string{
		"-h",
		s.dir,
		"-p",
		"5432",
		"-U",
		"postgres",
		"-d",
		database,
		"-q",
		"-v",
		"ON_ERROR_STOP=1",
	}
	for _, statement := range statements {
		args = append(args, "-c", statement)
	}

	out, err := exec.Command(psql, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(statements, "; "), err, out)
	}

	return nil
}
