package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// TestReadme copies the commands of README.md into a shell, one after the other as a reader does. Only the node is
// running already, and addresses are free ones.
func TestReadme(t *testing.T) {
	node := testenv.Anvil(t, testenv.AnvilOptions{Args: []string{"--block-time", "1"}})
	address := freeAddress(t)

	commands := strings.NewReplacer(
		"anvil --block-time 1 &\n", "",
		"postgres:///payments", "'"+testenv.Postgres(t)+"'",
		"http://127.0.0.1:8545", node.URL,
		"127.0.0.1:8080", address,
		"go build -o server ./examples/server\n", "cp "+os.Args[0]+" server\n",
		"SIGNER_SOCKET=signer.sock", "SIGNER_SOCKET=signer.sock ADMIN_LISTEN=127.0.0.1:0 "+asServer+"=1",
	).Replace(readmeCommands(t))

	dir, err := os.MkdirTemp("", "pay")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { os.RemoveAll(dir) })

	printed := shell(t, dir, commands)

	key := regexp.MustCompile(`(?m)^key (pay_test_sk_\S+)$`).FindStringSubmatch(printed())
	if key == nil {
		t.Fatalf("no key was printed:\n%s", printed())
	}

	shop := newOperator(t, node.URL).client("http://" + address)
	shop.key = key[1]

	await(t, "the server listens", func() (string, bool) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return printed(), false
		}

		return "", conn.Close() == nil
	})

	var inv struct{ Status string }

	shop.call("POST", "/v1/invoices", `{"price":{"currency":"USD","amount":"25"}}`, &inv)

	if inv.Status != "open" {
		t.Errorf("the invoice is %q, want open", inv.Status)
	}
}

// The file that the README shows is one that the program reads.
func TestReadmeSettings(t *testing.T) {
	s, err := readSettings(lookup(map[string]string{"SETTINGS_FILE": "deploy/settings.yaml"}))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := s.drivers(nil); err != nil {
		t.Error(err)
	}

	if _, err := s.rates(); err != nil {
		t.Error(err)
	}
}

// readmeCommands returns the first block of commands of README.md.
func readmeCommands(t *testing.T) string {
	t.Helper()

	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}

	_, after, _ := strings.Cut(string(page), "```sh\n")

	commands, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("README.md has no block of commands")
	}

	return commands
}

// shell runs commands until the last one has ended, and returns a function for what they have printed. What they
// left in the background ends with the test.
func shell(t *testing.T, dir, commands string) func() string {
	t.Helper()

	path := filepath.Join(dir, "printed")

	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	printed := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		return string(text)
	}

	err = cmd.Run()

	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })

	if err != nil {
		t.Fatalf("the commands ended with %v\n%s", err, printed())
	}

	return printed
}

// freeAddress returns an address of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	address := listener.Addr().String()

	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}

	return address
}
