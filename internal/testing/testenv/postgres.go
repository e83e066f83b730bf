//go:build unix

// This file holds PostgreSQL: one server per test binary and kind of options, one database per call.

package testenv

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// PostgresOptions says what server a database is to be in. Tests with equal options share a server.
type PostgresOptions struct {
	// Fsync has the server wait for the disk at each commit, as one with real data does. Defaults
	// to false, which is faster and loses data only when the machine itself goes down.
	Fsync bool
}

// Postgres returns the DSN of a new, empty database in a PostgreSQL server that does not wait for
// the disk. It is a URL that pgx, database/sql and psql accept, with full rights and a Unix socket
// for its host. The database is dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return PostgresWith(t, PostgresOptions{})
}

// PostgresWith is Postgres with a choice of server.
func PostgresWith(t testing.TB, o PostgresOptions) string {
	t.Helper()
	return createPostgres(t, o, func(*postgresServer) (string, error) { return "template0", nil })
}

// PostgresCopy is Postgres of a copy of what fill made: it is called once for each name of a server, with the DSN of
// an empty database, and leaves no connection open.
func PostgresCopy(t testing.TB, name string, fill func(dsn string) error) string {
	t.Helper()

	return createPostgres(t, PostgresOptions{}, func(s *postgresServer) (string, error) {
		return s.template("template_"+name, fill)
	})
}

// createPostgres makes a database as a copy of a template, and drops it when the test ends.
func createPostgres(
	t testing.TB,
	o PostgresOptions,
	template func(s *postgresServer) (string, error),
) string {
	t.Helper()
	skipShort(t, "PostgreSQL")

	s, err := postgres.use(o)
	if err != nil {
		t.Fatalf("testenv: PostgreSQL: %v", err)
	}

	t.Cleanup(func() { postgres.release(t, o) })

	from, err := template(s)
	if err != nil {
		t.Fatalf("testenv: PostgreSQL: %v\n%s", err, s.tail())
	}

	name := postgres.nextName()
	if err := s.copy(from, name); err != nil {
		t.Fatalf("testenv: PostgreSQL: %v\n%s", err, s.tail())
	}

	t.Cleanup(func() {
		// By force, because a test of lost connections may well leave some open.
		if err := s.run("dropdb", "--force", name); err != nil {
			t.Errorf("testenv: PostgreSQL: %v\n%s", err, s.tail())
		}
	})

	return s.dsn(name)
}

// postgres holds the servers of this test binary.
var postgres postgresServers

type postgresServers struct {
	mu      sync.Mutex
	held    bool // Main is running: servers outlive the tests that use them
	servers map[PostgresOptions]*postgresServer
	names   int
}

func (p *postgresServers) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.held = true
}

// use returns the server for the options, and starts it if it does not run yet. Each use needs a release.
func (p *postgresServers) use(o PostgresOptions) (*postgresServer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	s := p.servers[o]
	if s == nil {
		var err error
		if s, err = startPostgres(o); err != nil {
			return nil, err
		}

		if p.servers == nil {
			p.servers = make(map[PostgresOptions]*postgresServer)
		}

		p.servers[o] = s
	}

	s.users++

	return s, nil
}

// release ends one use. The last one stops the server, unless Main holds it.
func (p *postgresServers) release(t testing.TB, o PostgresOptions) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()

	s := p.servers[o]

	s.users--
	if s.alive() && (s.users > 0 || p.held) {
		return
	}

	if s.users == 0 {
		delete(p.servers, o)

		defer os.RemoveAll(s.dir)
	}

	s.finish(t, syscall.SIGQUIT) // without the last checkpoint: nothing of it is kept
}

func (p *postgresServers) stopAll() {
	p.mu.Lock()
	defer p.mu.Unlock()

	for o, s := range p.servers {
		s.stop(syscall.SIGQUIT)
		_ = os.RemoveAll(s.dir)

		delete(p.servers, o)
	}
}

func (p *postgresServers) nextName() string {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.names++

	return "test_" + strconv.Itoa(p.names)
}

// postgresServer is a running server whose only way in is a socket in its directory.
type postgresServer struct {
	*process
	postgresInstall
	dir   string
	args  []string
	users int

	copying   sync.Mutex // PostgreSQL refuses two copies of one template at once
	templates map[string]bool
}

// template returns the name of a database that fill made once.
func (s *postgresServer) template(name string, fill func(dsn string) error) (string, error) {
	s.copying.Lock()
	defer s.copying.Unlock()

	if s.templates[name] {
		return name, nil
	}

	if err := s.run("createdb", "--template=template0", name); err != nil {
		return "", err
	}

	if err := fill(s.dsn(name)); err != nil {
		return "", fmt.Errorf("fill %s: %w", name, err)
	}

	if s.templates == nil {
		s.templates = map[string]bool{}
	}

	s.templates[name] = true

	return name, nil
}

// copy makes a database as a copy of another one.
func (s *postgresServer) copy(from, name string) error {
	s.copying.Lock()
	defer s.copying.Unlock()

	return s.run("createdb", "--template="+from, name)
}

// startPostgres starts a server on a copy of the cached, freshly initialised data directory.
func startPostgres(o PostgresOptions, settings ...string) (_ *postgresServer, err error) {
	install, err := findPostgres()
	if err != nil {
		return nil, err
	}
	// Named briefly: the path of a Unix socket has some 100 bytes at most.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()

	if err := install.give(dir); err != nil {
		return nil, err
	}

	data := filepath.Join(dir, "data")
	if err := install.copyTemplate(data); err != nil {
		return nil, err
	}

	onOff := map[bool]string{true: "on", false: "off"}

	args := []string{
		"-D", data, "-k", dir, "-h", "", "-N", "200", "-c",
		"fsync=" + onOff[o.Fsync], "-c", "synchronous_commit=" + onOff[o.Fsync], "-c",
		"full_page_writes=" + onOff[o.Fsync],
	}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}

	s := &postgresServer{postgresInstall: install, dir: dir, args: args}

	return s, s.start()
}

// start starts the server on its data directory and waits until it takes connections.
func (s *postgresServer) start() (err error) {
	cmd := s.command(s.dir, "postgres", s.args...)
	if s.process, err = startProcess("postgres", cmd, filepath.Join(s.dir, "postgres.log")); err != nil {
		return err
	}

	if err := s.waitReady(func() error { return s.run("pg_isready", "--quiet") }); err != nil {
		s.stop(syscall.SIGKILL)
		return err
	}

	return nil
}

// dsn returns the URL of a database. The host stands in the query because a path cannot stand in a
// URL's host.
func (s *postgresServer) dsn(database string) string {
	query := url.Values{"host": {s.dir}, "port": {"5432"}, "sslmode": {"disable"}}
	return "postgres://postgres@/" + database + "?" + query.Encode()
}

// run runs one of PostgreSQL's client programs against the server.
func (s *postgresServer) run(program string, args ...string) error {
	path := filepath.Join(s.bin, program)
	if _, err := os.Stat(path); err != nil {
		// A server may come without its clients: those of any other version do.
		path = newestVersion("/usr/lib/postgresql/*/bin/" + program)
	}

	cmd := exec.Command(
		path,
		append([]string{"-h", s.dir, "-p", "5432", "-U", "postgres"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}

	return nil
}

// postgresInstall is the PostgreSQL found on this machine, and the user its server runs as.
type postgresInstall struct {
	bin  string              // directory of its programs
	uid  int                 // the user of the server and of its files
	cred *syscall.Credential // set if that user is not ours
}

var findPostgres = sync.OnceValues(func() (postgresInstall, error) {
	i := postgresInstall{uid: os.Getuid()}

	initdb, err := exec.LookPath("initdb")
	if err != nil {
		// Debian keeps the server's programs off the PATH.
		initdb = newestVersion("/usr/lib/postgresql/*/bin/initdb")
	}

	if initdb == "" {
		return i, errors.New(
			"no initdb on the PATH or in /usr/lib/postgresql/*/bin; install postgresql (on Debian: " +
				"apt-get install postgresql)",
		)
	}
	// The other programs are beside it, not beside a link to it.
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return i, err
	}

	i.bin = filepath.Dir(initdb)
	if i.uid != 0 {
		return i, nil
	}
	// PostgreSQL refuses to run as root.
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}

		uid, errUID := strconv.ParseUint(u.Uid, 10, 31)

		gid, errGID := strconv.ParseUint(u.Gid, 10, 31)
		if err := errors.Join(errUID, errGID); err != nil {
			return i, fmt.Errorf("user %s: %w", name, err)
		}

		i.uid, i.cred = int(uid), &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}

		return i, nil
	}

	return i, errors.New("it refuses to run as root, and there is neither a user postgres nor nobody")
})

// newestVersion returns the match of pattern with the highest number for its asterisk, or "".
func newestVersion(pattern string) string {
	before, after, _ := strings.Cut(pattern, "*")
	matches, _ := filepath.Glob(pattern)
	newest, path := -1, ""

	for _, m := range matches {
		version, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(m, before), after))
		if err == nil && version > newest {
			newest, path = version, m
		}
	}

	return path
}

// command prepares one of the server's programs to run in dir as the server's user.
func (i postgresInstall) command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(i.bin, program), args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: i.cred}

	return cmd
}

// give makes the server's user the owner of dir.
func (i postgresInstall) give(dir string) error {
	if i.cred == nil {
		return nil
	}

	return os.Chown(dir, int(i.cred.Uid), int(i.cred.Gid))
}

// copyTemplate makes the data directory as a copy of the one in the cache, which the first caller
// on a machine makes. A template belongs to one version and one user.
func (i postgresInstall) copyTemplate(data string) error {
	version, err := exec.Command(filepath.Join(i.bin, "postgres"), "--version").Output()
	if err != nil {
		return fmt.Errorf("postgres --version: %w", err)
	}

	words := strings.Fields(string(version)) // postgres (PostgreSQL) 15.9 (Debian …)
	if len(words) < 3 {
		return fmt.Errorf("postgres --version: %q", version)
	}

	cache, err := CacheDir()
	if err != nil {
		return err
	}

	template := filepath.Join(cache, fmt.Sprintf("postgres-%s-uid%d", words[2], i.uid))

	err = withLock("postgres", func() error {
		if _, err := os.Stat(template); !errors.Is(err, os.ErrNotExist) {
			return err
		}

		return i.makeTemplate(template)
	})
	if err != nil {
		return err
	}

	return copyTree(template, data)
}

// makeTemplate runs initdb in a temporary directory, because the server's user may not reach the
// cache, and moves the result there.
func (i postgresInstall) makeTemplate(template string) error {
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if err := i.give(dir); err != nil {
		return err
	}

	data := filepath.Join(dir, "data")

	initdb := i.command(
		dir, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale",
		"--no-sync",
	)
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// Under another name first, so that an interrupted copy is never taken for a template.
	part := template + ".part"
	if err := errors.Join(os.RemoveAll(part), copyTree(data, part)); err != nil {
		return err
	}

	return os.Rename(part, template)
}

// copyTree copies a directory with its owners and modes.
func copyTree(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}

	return nil
}
