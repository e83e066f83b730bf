package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// What is not set, or set to what is not there, is named with its variable and with what to do next.
func TestCommandsSayWhatToDoNext(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	migrated := newOperator(t, "http://127.0.0.1:1")
	migrated.run("migrate")

	base := migrated.variables()
	free := testenv.Postgres(t)

	for name, c := range map[string]struct {
		change map[string]string
		args   []string
		says   []string
	}{
		"no database": {
			map[string]string{"DATABASE_URL": ""},
			[]string{"migrate"},
			[]string{"DATABASE_URL is empty: set it", "postgres://user@host/database"},
		},
		"a database that cannot be read": {
			map[string]string{"DATABASE_URL": "postgres://u:hunter2@[::1/x"},
			[]string{"migrate"},
			[]string{"DATABASE_URL cannot be read"},
		},
		"a dead database": {
			map[string]string{"DATABASE_URL": "postgres://u:hunter2@127.0.0.1:1/shop"},
			[]string{"serve"},
			[]string{`the database "shop" at 127.0.0.1, port 1`, "connection refused", "correct DATABASE_URL"},
		},
		"a database without tables": {
			map[string]string{"DATABASE_URL": free},
			[]string{"serve"},
			[]string{"has no schema of this library", "the command migrate"},
		},
		"no secret key": {
			map[string]string{"SECRET_KEY_FILE": ""},
			[]string{"serve"},
			[]string{"SECRET_KEY_FILE is empty: set it", "openssl rand -base64 32"},
		},
		"a secret key that is not there": {
			map[string]string{"SECRET_KEY_FILE": "nope"},
			[]string{"serve"},
			[]string{"SECRET_KEY_FILE cannot be read: stat nope", "openssl rand -base64 32"},
		},
		"a seed that is not there": {
			map[string]string{"MNEMONIC_FILE": "nope"},
			[]string{"signer"},
			[]string{"MNEMONIC_FILE cannot be read: stat nope", "a BIP-39 mnemonic"},
		},
		"a seed that is none": {
			map[string]string{"MNEMONIC_FILE": base["SECRET_KEY_FILE"]},
			[]string{"signer"},
			[]string{"MNEMONIC_FILE holds no seed"},
		},
		"no networks": {
			map[string]string{"NETWORKS": ""},
			[]string{"serve"},
			[]string{"NETWORKS is empty: name at least one"},
		},
		"a node without a scheme": {
			map[string]string{"NODES_LOCAL": "node.example.com"},
			[]string{"serve"},
			[]string{"NODES_LOCAL: ", "http(s)://host/path"},
		},
		"no base URL": {
			map[string]string{"BASE_URL": ""},
			[]string{"serve"},
			[]string{"BASE_URL is empty: set it"},
		},
		"an address that is taken": {
			map[string]string{"LISTEN": taken.Addr().String()},
			[]string{"serve"},
			[]string{"LISTEN: listen tcp " + taken.Addr().String(), "in use: set it to a free address"},
		},
		"a certificate without its key": {
			map[string]string{"TLS_KEY": ""},
			[]string{"serve"},
			[]string{"TLS_CERT and TLS_KEY: ", "set both"},
		},
		"a merchant without a name": {
			nil,
			[]string{"merchant"},
			[]string{"the merchant has no name", "server merchant 'Corner Shop'"},
		},
		"a flag behind the name": {
			nil,
			[]string{"merchant", "Shop", "-live"},
			[]string{`merchant takes one name, and was given ["Shop" "-live"]`},
		},
		"an argument too many": {
			nil,
			[]string{"serve", "now"},
			[]string{`serve takes no arguments, and was given ["now"]`},
		},
		"no network to unfreeze": {
			nil,
			[]string{"unfreeze"},
			[]string{"unfreeze takes one network, and was given []: server unfreeze sepolia"},
		},
		"a network that is not served": {
			nil,
			[]string{"unfreeze", "sepolia"},
			[]string{`"sepolia"`},
		},
		"a network that runs": {
			nil,
			[]string{"resume", "local"},
			[]string{"network local is not stopped"},
		},
		"an unknown command": {
			nil,
			[]string{"server"},
			[]string{`there is no command "server": use migrate`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			variables := maps.Clone(base)
			maps.Copy(variables, c.change)

			s, err := readSettings(lookup(variables))
			if err == nil {
				err = command(t.Context(), slog.New(slog.DiscardHandler), s, c.args)
			}

			if err == nil {
				t.Fatal("the command did not fail")
			}

			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("the error is\n%v\nwithout %q", err, says)
				}
			}

			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

// A second signer leaves the first one's socket alone, and takes the place of one that is dead.
func TestSecondSignerIsRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "pay")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "signer.sock")

	first, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("beside a signer that answers, the error is %v", err)
	}

	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", path)
	if err != nil {
		t.Errorf("the first signer does not answer any more: %v", err)
	} else {
		conn.Close()
	}

	first.(*net.UnixListener).SetUnlinkOnClose(false) // as a process that is killed

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second, err := listenUnix(path)
	if err != nil {
		t.Fatalf("after a signer that was killed, the error is %v", err)
	}

	second.Close()
}

// A request that needs a signer that is down is answered 503, and the log says what to start.
func TestAbsentSignerIsNamed(t *testing.T) {
	_, err := newRemoteSigner("nowhere.sock").PublicKey(t.Context(), chain.KeyRef{})
	if !errors.Is(err, fault.Unavailable) ||
		!strings.Contains(err.Error(), "at nowhere.sock: start it with the command signer") {
		t.Errorf("without a signer the error is %v", err)
	}
}
