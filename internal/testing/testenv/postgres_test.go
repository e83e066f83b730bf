//go:build unix

package testenv

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// query asks the database by psql and returns the one value of the answer.
func query(t *testing.T, dsn, sql string) string {
	t.Helper()

	install, err := findPostgres()
	if err != nil {
		t.Fatal(err)
	}

	out, err := exec.Command(filepath.Join(install.bin, "psql"), dsn, "-XAtqc", sql).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", sql, err, out)
	}

	return strings.TrimSpace(string(out))
}

func TestPostgresGivesEachCallItsOwnDatabase(t *testing.T) {
	one, other := Postgres(t), Postgres(t)
	query(t, one, "create table only_here (x int)")

	if got := query(t, one, "select count(*) from pg_tables where schemaname = 'public'"); got != "1" {
		t.Errorf("%s tables in the database that has one", got)
	}

	if got := query(t, other, "select count(*) from pg_tables where schemaname = 'public'"); got != "0" {
		t.Errorf("%s tables in a new database", got)
	}
}

func TestPostgresOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		dsn  string
		want string
	}{
		{"without the disk", Postgres(t), "off"},
		{"with the disk", PostgresWith(t, PostgresOptions{Fsync: true}), "on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
				if got := query(t, test.dsn, "show "+setting); got != test.want {
					t.Errorf("%s is %s, want %s", setting, got, test.want)
				}
			}

			if got := query(t, test.dsn, "show listen_addresses"); got != "" {
				t.Errorf("listens on %q, want a Unix socket only", got)
			}
		})
	}
}

func TestPostgresDropsTheDatabaseDespiteOpenConnections(t *testing.T) {
	witness := Postgres(t)

	var dropped string

	t.Run("user", func(inner *testing.T) {
		dsn := Postgres(inner)
		dropped = query(t, dsn, "select current_database()")

		install, err := findPostgres()
		if err != nil {
			t.Fatal(err)
		}
		// A child of the outer test: it is still connected when the inner one ends.
		left := startShell(
			t,
			`exec "`+filepath.Join(install.bin, "psql")+`" "`+dsn+`" -Xqc "select pg_sleep(1000)"`,
		)

		connected := poll(stopTimeout, func() bool {
			return query(
				t,
				witness,
				"select count(*) from pg_stat_activity where query like '%pg_sleep(1000)' and datname = '"+dropped+"'",
			) == "1"
		})
		if !connected {
			t.Fatalf("psql did not connect:\n%s", left.tail())
		}
	})

	if got := query(
		t, witness, "select count(*) from pg_database where datname = '"+dropped+"'",
	); got != "0" {
		t.Errorf("database %s is still there", dropped)
	}
}

func TestPostgresServersEndWithTheirUsers(t *testing.T) {
	skipShort(t, "PostgreSQL")

	var p postgresServers // without Main

	first, err := p.use(PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}

	second, err := p.use(PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if first != second {
		t.Error("two servers for equal options")
	}

	p.release(t, PostgresOptions{})

	if !first.alive() {
		t.Error("the server ended under its second user")
	}

	p.release(t, PostgresOptions{})

	if first.alive() {
		t.Error("the server outlives its users")
	}
}

func TestNewestVersion(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9", "15", "100-x"} {
		if err := copyTree(t.TempDir(), filepath.Join(dir, version)); err != nil {
			t.Fatal(err)
		}
	}

	if got, want := newestVersion(dir+"/*"), filepath.Join(dir, "15"); got != want {
		t.Errorf("newest is %s, want %s", got, want)
	}

	if got := newestVersion(dir + "/*/none"); got != "" {
		t.Errorf("newest of nothing is %q", got)
	}
}
