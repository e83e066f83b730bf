//go:build unix

// This file holds the fake Tron full node.

package testenv

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/btcsuite/btcd/address/v2/base58"
)

// TronOptions says what chain the fake node makes; see internal/testing/testenv/tron/node for what it does
// and does not. The zero value is a chain with the main network's prices and nobody on it.
type TronOptions struct {
	// Balances are what accounts hold from the first block on, in sun, by address (base58).
	Balances map[string]int64
	// Contracts are deployed before the first block, with calls made after each.
	Contracts []TronContract
	// SolidLag is how many blocks the newest solidified block is behind the newest. Defaults to 18.
	SolidLag int
	// Parameters change chain parameters by their key in getchainparameters.
	Parameters map[string]int64
	// EnergyFactor multiplies the energy of every call. Defaults to 1.
	EnergyFactor int
	// HideInternal leaves internal transactions out of receipts.
	HideInternal bool
	// Genesis is any text; chains with different texts are different networks.
	Genesis string
}

// TronContract is a contract to deploy: its creation code with encoded arguments, and calls, all in hex.
type TronContract struct {
	Bytecode string   `json:"bytecode"`
	Calls    []string `json:"calls"`
}

// TronNode is a running fake of a Tron full node.
type TronNode struct {
	// URL is where /wallet/… and /walletsolidity/… are served, http://127.0.0.1:port.
	URL string
	// Genesis is the id of the first block, in hex.
	Genesis string
	// Contracts are the addresses (base58) of TronOptions.Contracts.
	Contracts []string

	process *process
}

// TronState is what the node says after each control.
type TronState struct {
	Tip      uint64 `json:"tip"`
	Solid    uint64 `json:"solid"`
	Pool     int    `json:"pool"`
	Requests int    `json:"requests"`
	Time     int64  `json:"time"` // of the newest block, in milliseconds
	TxID     string `json:"txid"` // of "send"
	Bytes    string `json:"transaction"`
}

// TronPayment is a transaction of somebody outside, which the node makes, signs and takes into its pool.
type TronPayment struct {
	PrivateKey string // hex
	To         string // base58: who is paid, or the contract that is called
	Amount     int64  // sun
	Data       []byte // of a call; a transfer of coin has none
	FeeLimit   int64  // sun
	Memo       string
}

// Tron builds the fake node if it is not built yet, starts it on a free port of 127.0.0.1 and stops
// it when the test ends.
func Tron(t testing.TB, o TronOptions) *TronNode {
	t.Helper()
	skipShort(t, "the fake Tron node")

	path, err := tronNode()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	config := map[string]any{
		"contracts":     o.Contracts,
		"solid_lag":     o.SolidLag,
		"parameters":    o.Parameters,
		"energy_factor": o.EnergyFactor,
		"hide_internal": o.HideInternal,
		"genesis":       o.Genesis,
	}

	balances := map[string]int64{}
	for a, sun := range o.Balances {
		balances[TronHex(a)] = sun
	}

	config["balances"] = balances

	text, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("testenv: tron: %v", err)
	}

	dir := t.TempDir()

	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatalf("testenv: tron: %v", err)
	}

	p, err := startProcess(
		"the fake Tron node", exec.Command(path, "-config", file), filepath.Join(dir, "tron.log"),
	)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	n := &TronNode{process: p}
	if err := p.waitReady(n.ready); err != nil {
		p.stop(syscall.SIGKILL)
		t.Fatalf("testenv: %v", err)
	}

	t.Cleanup(func() { p.finish(t, syscall.SIGTERM) })

	return n
}

// tronNode builds the node into the cache and returns its path, once per test binary; the lock
// keeps other binaries out.
var tronNode = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}

	dir, err := CacheDir()
	if err != nil {
		return "", err
	}

	path := filepath.Join(dir, "tronnode")

	return path, withLock("tronnode", func() error {
		cmd := exec.Command("go", "build", "-o", path, ".")

		cmd.Dir = filepath.Join(root, "internal", "testing", "testenv", "tron", "node")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the fake Tron node: %w\n%s", err, out)
		}

		return nil
	})
})

var tronReady = regexp.MustCompile(`(?m)^ready (\{.*\})\s*$`)

// ready reads where the node listens and what it made.
func (n *TronNode) ready() error {
	text, err := os.ReadFile(n.process.log)
	if err != nil {
		return err
	}

	line := tronReady.FindSubmatch(text)
	if line == nil {
		return errors.New("it has not named its port yet")
	}

	var hello struct {
		Address   string   `json:"address"`
		Genesis   string   `json:"genesis"`
		Contracts []string `json:"contracts"`
	}
	if err := json.Unmarshal(line[1], &hello); err != nil {
		return err
	}

	n.URL, n.Genesis, n.Contracts = "http://"+hello.Address, hello.Genesis, nil
	for _, c := range hello.Contracts {
		raw, err := hex.DecodeString(c)
		if err != nil {
			return err
		}

		n.Contracts = append(n.Contracts, base58.CheckEncode(raw[1:], raw[0]))
	}

	_, err = n.Control(context.Background(), "state", nil)

	return err
}

// TronHex returns the hex form (41…) of a base58 address; of anything else an empty string.
func TronHex(a string) string {
	payload, version, err := base58.CheckDecode(a)
	if err != nil {
		return ""
	}

	return hex.EncodeToString(append([]byte{version}, payload...))
}

// Control asks something of the chain itself: mine (blocks), fork (depth, keep), prune (below),
// skip (millis), stake (address, energy, net), parameter (key, value), energyfactor (value), drop,
// storage (address, slot, word), state.
func (n *TronNode) Control(ctx context.Context, name string, args map[string]any) (TronState, error) {
	if args == nil {
		args = map[string]any{}
	}

	var s TronState

	err := n.Call(ctx, "/control/"+name, args, &s)

	return s, err
}

// Send broadcasts a payment, which stays in the pool until a block is made.
func (n *TronNode) Send(ctx context.Context, p TronPayment) (TronState, error) {
	payment := map[string]any{
		"private_key": p.PrivateKey,
		"to":          TronHex(p.To),
		"amount":      p.Amount,
		"data":        hex.EncodeToString(p.Data),
		"fee_limit":   p.FeeLimit,
		"memo":        p.Memo,
	}

	return n.Control(ctx, "send", map[string]any{"send": payment})
}

// Balance returns an address's balance in sun at the newest block, with the pool's transactions.
func (n *TronNode) Balance(ctx context.Context, a string) (int64, error) {
	var account struct {
		Balance int64 `json:"balance"`
	}

	err := n.Call(ctx, "/wallet/getaccount", map[string]any{"address": TronHex(a)}, &account)

	return account.Balance, err
}

// View calls a contract's view function and returns what it answered.
func (n *TronNode) View(ctx context.Context, contract string, data []byte) ([]byte, error) {
	var answer struct {
		Results []string `json:"constant_result"`
	}

	err := n.Call(ctx, "/wallet/triggerconstantcontract", map[string]any{
		"owner_address":    TronHex(contract),
		"contract_address": TronHex(contract),
		"data":             hex.EncodeToString(data),
	}, &answer)
	if err != nil {
		return nil, err
	}

	if len(answer.Results) != 1 {
		return nil, fmt.Errorf("%s answered %d results", contract, len(answer.Results))
	}

	return hex.DecodeString(answer.Results[0])
}

// Call makes one request over a connection of its own and decodes the answer.
func (n *TronNode) Call(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}

	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: startTimeout}

	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}

	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, bytes.TrimSpace(text))
	}

	return json.Unmarshal(text, answer)
}
