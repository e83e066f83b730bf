//go:build unix

package testenv

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnvilAnswersForItsChain(t *testing.T) {
	for _, test := range []struct {
		name string
		o    AnvilOptions
		want string
	}{
		{"default chain", AnvilOptions{}, "0x7a69"},
		{"chosen chain", AnvilOptions{ChainID: 137}, "0x89"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := Anvil(t, test.o)

			var id string
			if err := n.call(&id, "eth_chainId"); err != nil || id != test.want {
				t.Errorf("chain id %q (%v), want %s", id, err, test.want)
			}

			if !strings.HasPrefix(n.URL, "http://127.0.0.1:") {
				t.Errorf("URL %s is not on 127.0.0.1", n.URL)
			}
		})
	}
}

func TestAnvilFinalityFollowsTheEpoch(t *testing.T) {
	n := Anvil(t, AnvilOptions{SlotsInAnEpoch: 1})
	if err := n.call(nil, "anvil_mine", "0xa"); err != nil {
		t.Fatal(err)
	}

	for tag, want := range map[string]string{"latest": "0xa", "safe": "0x9", "finalized": "0x8"} {
		var block struct{ Number string }
		if err := n.call(&block, "eth_getBlockByNumber", tag, false); err != nil || block.Number != want {
			t.Errorf("%s block %q (%v), want %s", tag, block.Number, err, want)
		}
	}
}

func TestAnvilMakesBlocksByTheClock(t *testing.T) {
	n := Anvil(t, AnvilOptions{BlockTime: 100 * time.Millisecond})

	mined := poll(stopTimeout, func() bool {
		var number string
		if err := n.call(&number, "eth_blockNumber"); err != nil {
			t.Fatal(err)
		}

		return number != "0x0"
	})
	if !mined {
		t.Error("no block")
	}
}

func TestAnvilKilled(t *testing.T) {
	n := Anvil(t, AnvilOptions{})
	n.Kill()

	if conn, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "http://")); err == nil {
		conn.Close()
		t.Error("something listens after Kill")
	}
}

func TestWellKnownDevAccountsAreThoseOfAnvil(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	Anvil(t, AnvilOptions{Args: []string{"--config-out", path}})

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var config struct {
		Accounts []string `json:"available_accounts"`
		Keys     []string `json:"private_keys"`
		Wallet   struct{ Mnemonic string }
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}

	if config.Wallet.Mnemonic != WellKnownDevMnemonic {
		t.Errorf("mnemonic %q", config.Wallet.Mnemonic)
	}

	if len(config.Accounts) != len(WellKnownDevAccounts) || len(config.Keys) != len(WellKnownDevAccounts) {
		t.Fatalf(
			"%d accounts and %d keys, want %d",
			len(config.Accounts), len(config.Keys), len(WellKnownDevAccounts),
		)
	}

	for i, a := range WellKnownDevAccounts {
		if config.Accounts[i] != a.Address || config.Keys[i] != "0x"+a.Key {
			t.Errorf(
				"account %d is %s with key %s, want %s with %s",
				i, config.Accounts[i], config.Keys[i], a.Address, a.Key,
			)
		}
	}
}
