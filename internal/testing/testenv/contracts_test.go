//go:build unix

package testenv

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

func TestCommittedContractsAreWhatTheSourceCompilesTo(t *testing.T) {
	skipShort(t, "the Solidity compiler")

	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}

	fresh := t.TempDir()
	cmd := exec.Command("bash", filepath.Join("scripts", "contracts.sh"), fresh)

	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}

	compiled, err := filepath.Glob(filepath.Join(fresh, "*.json"))
	if err != nil {
		t.Fatal(err)
	}

	committed, err := filepath.Glob(filepath.Join("contracts", "*.json"))
	if err != nil {
		t.Fatal(err)
	}

	if len(compiled) == 0 || len(compiled) != len(committed) {
		t.Errorf("%d contracts are committed, the source has %d", len(committed), len(compiled))
	}

	for _, path := range compiled {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		got, err := os.ReadFile(filepath.Join("contracts", filepath.Base(path)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from its source (%v): run make contracts", filepath.Base(path), err)
		}
	}
}

// wallet sends transactions to a chain from the first well-known account.
type wallet struct {
	t *testing.T
	n *AnvilNode
}

var (
	sender   = WellKnownDevAccounts[0].Address
	receiver = "0x00000000000000000000000000000000000a11ce"
	bob      = "0x0000000000000000000000000000000000000b0b"
)

// deploy creates the contract with the encoded constructor arguments and returns its address.
func (w wallet) deploy(c contracts.Contract, args string) string {
	w.t.Helper()

	if !json.Valid([]byte(c.ABI)) {
		w.t.Errorf("ABI is not JSON: %s", c.ABI)
	}

	return w.send(map[string]string{"from": sender, "data": c.Bytecode + args}).ContractAddress
}

type receipt struct {
	Status          string
	ContractAddress string
	Logs            []struct{ Data string }
}

// send sends a transaction that must succeed.
func (w wallet) send(tx map[string]string) receipt {
	w.t.Helper()

	var hash string
	if err := w.n.call(&hash, "eth_sendTransaction", tx); err != nil {
		w.t.Fatal(err)
	}

	var r *receipt // null until the block is made, a moment after the node has taken the transaction

	mined := poll(stopTimeout, func() bool {
		if err := w.n.call(&r, "eth_getTransactionReceipt", hash); err != nil {
			w.t.Fatal(err)
		}

		return r != nil
	})
	if !mined || r.Status != "0x1" {
		w.t.Fatalf("receipt %+v, want a success", r)
	}

	return *r
}

// data encodes a call; its arguments are words.
func (w wallet) data(signature string, words ...string) string {
	w.t.Helper()

	var hash string
	if err := w.n.call(&hash, "web3_sha3", "0x"+hex.EncodeToString([]byte(signature))); err != nil {
		w.t.Fatal(err)
	}

	return hash[:len("0x")+8] + strings.Join(words, "")
}

func (w wallet) call(to, data string) (string, error) {
	var out string

	err := w.n.call(&out, "eth_call", map[string]string{"from": sender, "to": to, "data": data}, "latest")

	return out, err
}

// number is the result of a call that returns one number.
func (w wallet) number(to, signature string, words ...string) string {
	w.t.Helper()

	out, err := w.call(to, w.data(signature, words...))
	if err != nil {
		w.t.Fatal(err)
	}

	return "0x" + strings.TrimLeft(strings.TrimPrefix(out, "0x"), "0")
}

func (w wallet) balance(account string) string {
	w.t.Helper()

	var balance string
	if err := w.n.call(&balance, "eth_getBalance", account, "latest"); err != nil {
		w.t.Fatal(err)
	}

	return balance
}

func number(n int) string { return fmt.Sprintf("%064x", n) }

func address(a string) string { return strings.Repeat("0", 24) + strings.TrimPrefix(a, "0x") }

func text(s string) string {
	return number(len(s)) + hex.EncodeToString([]byte(s)) + strings.Repeat("00", 32-len(s))
}

const (
	returnsTrue    = "0x0000000000000000000000000000000000000000000000000000000000000001"
	returnsFalse   = "0x0000000000000000000000000000000000000000000000000000000000000000"
	returnsNothing = "0x"
)

func TestTokensOnAChain(t *testing.T) {
	w := wallet{t, Anvil(t, AnvilOptions{})}
	for _, test := range []struct {
		name     string
		contract contracts.Contract
		args     string
		decimals string
		returns  string // by transfer
	}{
		{
			"TestERC20",
			contracts.TestERC20,
			number(0x60) + number(0xa0) + number(18) + text("Token") + text("TKN"),
			"0x12",
			returnsTrue,
		},
		{"USDTLike", contracts.USDTLike, "", "0x6", returnsNothing},
		{"FalseOnSuccess", contracts.FalseOnSuccess, "", "0x6", returnsFalse},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := wallet{t, w.n}

			token := w.deploy(test.contract, test.args)
			if got := w.number(token, "decimals()"); got != test.decimals {
				t.Errorf("decimals %s, want %s", got, test.decimals)
			}

			w.send(
				map[string]string{
					"from": sender,
					"to":   token,
					"data": w.data("mint(address,uint256)", address(sender), number(1000)),
				},
			)

			transfer := w.data("transfer(address,uint256)", address(receiver), number(400))
			if got, err := w.call(token, transfer); err != nil || got != test.returns {
				t.Errorf("transfer returns %s (%v), want %s", got, err, test.returns)
			}

			r := w.send(map[string]string{"from": sender, "to": token, "data": transfer})
			if len(r.Logs) != 1 || r.Logs[0].Data != "0x"+number(400) {
				t.Errorf("logs %+v, want one Transfer of 400", r.Logs)
			}

			if got := w.number(token, "balanceOf(address)", address(receiver)); got != "0x190" {
				t.Errorf("received %s, want 0x190", got)
			}
		})
	}
}

func TestUSDTLikeFeePauseAndBlacklist(t *testing.T) {
	w := wallet{t, Anvil(t, AnvilOptions{})}
	token := w.deploy(contracts.USDTLike, "")
	set := func(signature string, words ...string) {
		t.Helper()
		w.send(map[string]string{"from": sender, "to": token, "data": w.data(signature, words...)})
	}
	set("mint(address,uint256)", address(sender), number(10000))
	set("setFee(uint256)", number(25))
	transfer := w.data("transfer(address,uint256)", address(receiver), number(4000))

	r := w.send(map[string]string{"from": sender, "to": token, "data": transfer})
	if len(r.Logs) != 2 || r.Logs[0].Data != "0x"+number(3990) || r.Logs[1].Data != "0x"+number(10) {
		t.Errorf("logs %+v, want a Transfer of 3990 and one of 10", r.Logs)
	}

	if got := w.number(token, "balanceOf(address)", address(receiver)); got != "0xf96" {
		t.Errorf("received %s, want 0xf96", got)
	}

	for _, refusal := range []struct{ signature, words, reason string }{
		{"setPaused(bool)", "", "paused"},
		{"setBlackListed(address,bool)", address(sender), "blacklisted"},
	} {
		set(refusal.signature, refusal.words, number(1))

		if _, err := w.call(token, transfer); err == nil || !strings.Contains(err.Error(), refusal.reason) {
			t.Errorf("after %s: error %v, want %q", refusal.signature, err, refusal.reason)
		}

		set(refusal.signature, refusal.words, number(0))

		if _, err := w.call(token, transfer); err != nil {
			t.Errorf("after %s was taken back: %v", refusal.signature, err)
		}
	}
}

func TestForwarderSendsCoinByInternalCalls(t *testing.T) {
	w := wallet{t, Anvil(t, AnvilOptions{})}
	forwarder := w.deploy(contracts.Forwarder, "")

	r := w.send(map[string]string{
		"from":  sender,
		"to":    forwarder,
		"value": "0x3e8",
		"data":  w.data("forward(address)", address(receiver)),
	})
	if len(r.Logs) != 0 {
		t.Errorf("logs %+v, want none", r.Logs)
	}

	if got := w.balance(receiver); got != "0x3e8" {
		t.Errorf("receiver has %s, want 0x3e8", got)
	}

	many := w.data("forwardMany(address[],uint256[])", number(0x40), number(0xa0),
		number(2), address(receiver), address(bob), number(2), number(1), number(2))
	w.send(map[string]string{"from": sender, "to": forwarder, "value": "0x3", "data": many})

	if alice, bobs := w.balance(receiver), w.balance(bob); alice != "0x3e9" || bobs != "0x2" {
		t.Errorf("receivers have %s and %s, want 0x3e9 and 0x2", alice, bobs)
	}

	wrong := map[string]string{"from": sender, "to": forwarder, "value": "0x4", "data": many}
	if err := w.n.call(
		nil, "eth_call", wrong, "latest",
	); err == nil ||
		!strings.Contains(err.Error(), "coin left over") {
		t.Errorf("with too much value: error %v, want a refusal", err)
	}
}
