//go:build unix

// This file holds the Ethereum development node.

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// WellKnownDevMnemonic is the mnemonic that every Ethereum development node starts with. It
// and the keys below are public: never send anything of value to them.
const WellKnownDevMnemonic = "test test test test test test test test test test test junk"

// WellKnownDevAccount is one account of WellKnownDevMnemonic.
type WellKnownDevAccount struct {
	Address string // in lower case, with 0x
	Key     string // the private key, 32 bytes in hex without 0x
}

// WellKnownDevAccounts are the accounts m/44'/60'/0'/0/0 to 9 of WellKnownDevMnemonic. Anvil gives
// each 10,000 coins and signs for them by eth_sendTransaction.
var WellKnownDevAccounts = [10]WellKnownDevAccount{
	{
		"0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
		"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	},
	{
		"0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
		"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	},
	{
		"0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
		"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
	},
	{
		"0x90f79bf6eb2c4f870365e785982e1f101e93b906",
		"7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
	},
	{
		"0x15d34aaf54267db7d7c367839aaf71a00a2c6a65",
		"47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
	},
	{
		"0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
		"8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
	},
	{
		"0x976ea74026e726554db657fa54763abd0c3a0aa9",
		"92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
	},
	{
		"0x14dc79964da2c08b23698b3d3cc7ca32193d9955",
		"4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
	},
	{
		"0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f",
		"dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
	},
	{
		"0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
		"2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
	},
}

// AnvilEnv names the environment variable with the path of an anvil to run instead of the pinned
// one, for platforms for which none is pinned.
const AnvilEnv = "PAYMENTS_ANVIL"

// DefaultChainID is the chain that anvil makes when AnvilOptions names none.
const DefaultChainID = 31337

// AnvilOptions says what chain to start. The zero value is a chain that makes a block for every transaction.
type AnvilOptions struct {
	// ChainID is the id of the chain. Defaults to DefaultChainID.
	ChainID uint64
	// SlotsInAnEpoch sets the distance of the "safe" block from the tip, once this, and of the
	// "finalized" block, twice this. Defaults to 32.
	SlotsInAnEpoch uint64
	// BlockTime is the time between blocks. Defaults to 0: a block for every transaction, made
	// right after the node has answered for it, so that a receipt asked for at once may not be
	// there yet.
	BlockTime time.Duration
	// Args are further options of the command line, such as "--no-mining"; not "--quiet", which
	// hides the port. Defaults to none.
	Args []string
}

// AnvilNode is a running Ethereum development node.
type AnvilNode struct {
	// URL is the JSON-RPC endpoint, http://127.0.0.1:port.
	URL string
	// WebSocketURL is the same endpoint for subscriptions, ws://127.0.0.1:port.
	WebSocketURL string
	// ChainID is the id of the chain.
	ChainID uint64

	process *process
}

// Anvil starts a node with a fresh chain on a free port of 127.0.0.1 and stops it when the test
// ends. The pinned binary is fetched if it is not there. The test fails if the node cannot be
// started, and also if it ends on its own before the test does.
func Anvil(t testing.TB, o AnvilOptions) *AnvilNode {
	t.Helper()
	skipShort(t, "anvil")

	path, err := anvilPath()
	if err != nil {
		t.Fatalf("testenv: anvil: %v", err)
	}

	if o.ChainID == 0 {
		o.ChainID = DefaultChainID
	}
	// Port 0 leaves the choice to the system, so that no port is taken away between choosing it and
	// listening on it.
	args := []string{
		"--host",
		"127.0.0.1",
		"--port",
		"0",
		"--chain-id",
		strconv.FormatUint(o.ChainID, 10),
		"--mnemonic",
		WellKnownDevMnemonic,
	}
	if o.SlotsInAnEpoch != 0 {
		args = append(args, "--slots-in-an-epoch", strconv.FormatUint(o.SlotsInAnEpoch, 10))
	}

	if o.BlockTime != 0 {
		args = append(args, "--block-time", strconv.FormatFloat(o.BlockTime.Seconds(), 'f', -1, 64))
	}

	cmd := exec.Command(path, append(args, o.Args...)...)
	cmd.Dir = t.TempDir()

	p, err := startProcess("anvil", cmd, filepath.Join(cmd.Dir, "anvil.log"))
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	n := &AnvilNode{ChainID: o.ChainID, process: p}
	if err := p.waitReady(n.ready); err != nil {
		p.stop(syscall.SIGKILL)
		t.Fatalf("testenv: %v", err)
	}

	t.Cleanup(func() { p.finish(t, syscall.SIGTERM) })

	return n
}

// Kill ends the node at once, as a crash does. The chain is lost.
func (n *AnvilNode) Kill() { n.process.stop(syscall.SIGKILL) }

var anvilListening = regexp.MustCompile(`(?m)^Listening on (127\.0\.0\.1:[0-9]+)\s*$`)

// ready reads the port from the node's output, checks that the node answers for its chain, and
// switches off its log of every call.
func (n *AnvilNode) ready() error {
	text, err := os.ReadFile(n.process.log)
	if err != nil {
		return err
	}

	address := anvilListening.FindSubmatch(text)
	if address == nil {
		return fmt.Errorf("it has not named its port yet")
	}

	n.URL, n.WebSocketURL = "http://"+string(address[1]), "ws://"+string(address[1])

	var id string
	if err := n.call(&id, "eth_chainId"); err != nil {
		return err
	}

	if want := fmt.Sprintf("0x%x", n.ChainID); id != want {
		return fmt.Errorf("chain id %s at %s, want %s", id, n.URL, want)
	}

	return n.call(nil, "anvil_setLoggingEnabled", false)
}

func (n *AnvilNode) call(result any, method string, params ...any) error {
	return callNode(n.URL, result, method, params...)
}

// callNode makes one JSON-RPC call over a connection of its own, and stores the result in the value
// that result points to.
func callNode(url string, result any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}

	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}

	req.Header.Set("Content-Type", "application/json")

	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer resp.Body.Close()

	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: HTTP %s: %w", method, resp.Status, err)
	}

	if answer.Error != nil {
		return fmt.Errorf("%s: error %d: %s", method, answer.Error.Code, answer.Error.Message)
	}

	if result == nil {
		return nil
	}

	return json.Unmarshal(answer.Result, result)
}

// anvilPath returns the path of the binary, after fetching it if need be.
func anvilPath() (string, error) {
	if path := os.Getenv(AnvilEnv); path != "" {
		return path, nil
	}

	platform := runtime.GOOS + "-" + runtime.GOARCH
	if platform != "linux-amd64" {
		return "", fmt.Errorf("none is pinned for %s; set %s to the path of one", platform, AnvilEnv)
	}

	if err := fetch(); err != nil {
		return "", err
	}

	dir, err := CacheDir()
	if err != nil {
		return "", err
	}

	return filepath.Join(dir, "npm", "node_modules", "@foundry-rs", "anvil-"+platform, "bin", "anvil"), nil
}
