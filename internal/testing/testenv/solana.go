//go:build unix

// This file holds the Solana node: the real virtual machine behind a JSON-RPC front with a
// simulated ledger (solana/server.js).

package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// SolanaOptions says what node to start. The zero value makes blocks only when Mine is called.
type SolanaOptions struct {
	// Finality is how many blocks on top of a block make it final. Defaults to 31, as on the network.
	Finality int
	// BlockTime is the time between blocks. Defaults to 0: blocks are made by Mine.
	BlockTime time.Duration
}

// SolanaNode is a running node. Execution, programs, fees and rent are real; slots, commitments and
// history are simulated.
type SolanaNode struct {
	// URL is the JSON-RPC endpoint, http://127.0.0.1:port.
	URL string
	// GenesisHash is the chain's; every node has its own.
	GenesisHash string

	process *process
}

// Solana starts a node with a fresh ledger on a free port of 127.0.0.1 and stops it when the test
// ends. The test fails if the node cannot be started, and also if it ends on its own before the
// test does.
func Solana(t testing.TB, o SolanaOptions) *SolanaNode {
	t.Helper()

	n := startSolana(t, o, filepath.Join(t.TempDir(), "solana.log"))
	t.Cleanup(func() { n.process.finish(t, syscall.SIGTERM) })

	return n
}

// startSolana starts a node that writes its output into a file. It skips or fails the test.
func startSolana(t testing.TB, o SolanaOptions, log string) *SolanaNode {
	t.Helper()
	skipShort(t, "the Solana virtual machine")

	cmd := nodeCommand(context.Background(), t, "solana", "internal/testing/testenv/solana/server.js")
	if o.Finality > 0 {
		cmd.Args = append(cmd.Args, "--finality", strconv.Itoa(o.Finality))
	}

	if o.BlockTime > 0 {
		cmd.Args = append(cmd.Args, "--slot-ms", strconv.FormatInt(o.BlockTime.Milliseconds(), 10))
	}

	p, err := startProcess("solana", cmd, log)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	n := &SolanaNode{process: p}
	if err := p.waitReady(n.ready); err != nil {
		p.stop(syscall.SIGKILL)
		t.Fatalf("testenv: %v", err)
	}

	return n
}

// SolanaNodes are nodes that one test uses after another, each with a chain of its own: most of the time of a start is
// that of loading the virtual machine. The zero value has none. Close stops them.
type SolanaNodes struct {
	mu      sync.Mutex
	dir     string // of their output
	started int
	idle    []*SolanaNode
}

// Start returns a node with a fresh ledger that makes blocks only when Mine is called, until the test ends. It fails
// the test as Solana does.
func (s *SolanaNodes) Start(t testing.TB, finality int) *SolanaNode {
	t.Helper()

	s.mu.Lock()
	defer s.mu.Unlock()

	var n *SolanaNode

	if last := len(s.idle) - 1; last >= 0 {
		n, s.idle = s.idle[last], s.idle[:last]
	} else {
		n = s.add(t)
	}

	err := n.Call(nil, "svm_begin", finality)
	if err == nil {
		err = n.Call(&n.GenesisHash, "getGenesisHash")
	}

	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	t.Cleanup(func() {
		if !n.process.alive() {
			n.process.finish(t, syscall.SIGTERM)
			return
		}

		s.mu.Lock()
		defer s.mu.Unlock()

		s.idle = append(s.idle, n)
	})

	return n
}

// add starts one more node.
func (s *SolanaNodes) add(t testing.TB) *SolanaNode {
	t.Helper()

	if s.dir == "" {
		dir, err := os.MkdirTemp("", "solana")
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}

		s.dir = dir
	}

	s.started++

	return startSolana(t, SolanaOptions{}, filepath.Join(s.dir, strconv.Itoa(s.started)+".log"))
}

// Close stops the nodes that no test uses, and removes what they wrote.
func (s *SolanaNodes) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, n := range s.idle {
		n.process.stop(syscall.SIGTERM)
	}

	s.idle = nil

	return os.RemoveAll(s.dir)
}

var solanaListening = regexp.MustCompile(`(?m)^Listening on (127\.0\.0\.1:[0-9]+)\s*$`)

func (n *SolanaNode) ready() error {
	text, err := os.ReadFile(n.process.log)
	if err != nil {
		return err
	}

	address := solanaListening.FindSubmatch(text)
	if address == nil {
		return fmt.Errorf("it has not named its port yet")
	}

	n.URL = "http://" + string(address[1])

	return n.Call(&n.GenesisHash, "getGenesisHash")
}

// Call makes one JSON-RPC call and stores the result in the value that result points to; nil leaves it.
func (n *SolanaNode) Call(result any, method string, params ...any) error {
	return callNode(n.URL, result, method, params...)
}

// Mine closes blocks; the first holds what was sent.
func (n *SolanaNode) Mine(blocks int) error { return n.Call(nil, "svm_mine", blocks) }

// Hold has the node make blocks only when Mine is called, or by its clock again.
func (n *SolanaNode) Hold(held bool) error { return n.Call(nil, "svm_hold", held) }

// Skip leaves slots without a block.
func (n *SolanaNode) Skip(slots int) error { return n.Call(nil, "svm_skip", slots) }

// Fork replaces the newest depth blocks by depth + 1 others, of which the first holds the
// transactions to keep.
func (n *SolanaNode) Fork(depth int, keep ...string) error {
	return n.Call(nil, "svm_fork", depth, append([]string{}, keep...))
}

// Prune makes the node forget the blocks below a height.
func (n *SolanaNode) Prune(height uint64) error { return n.Call(nil, "svm_prune", height) }

// PruneRecords makes the node forget signatures and transactions below a height, not their blocks.
func (n *SolanaNode) PruneRecords(height uint64) error {
	return n.Call(nil, "svm_pruneRecords", height)
}

// LongTerm makes the node serve forgotten blocks from a long-term storage, or not.
func (n *SolanaNode) LongTerm(on bool) error { return n.Call(nil, "svm_longTerm", on) }

// Late makes each new block unavailable for so many calls that ask for it, as before its status is written.
func (n *SolanaNode) Late(calls int) error { return n.Call(nil, "svm_late", calls) }

// History makes the node keep transactions, as it does from the start, or have none.
func (n *SolanaNode) History(on bool) error { return n.Call(nil, "svm_history", on) }

// Commitments has the node refuse calls that name another commitment than these.
func (n *SolanaNode) Commitments(offered ...string) error {
	return n.Call(nil, "svm_commitments", offered)
}

// Nonces makes the network take transactions with durable nonces, as it does from the start, or refuse them.
func (n *SolanaNode) Nonces(on bool) error { return n.Call(nil, "svm_nonces", on) }

// Backends returns a URL behind which backends take turns, each of them so many blocks behind.
func (n *SolanaNode) Backends(lags ...int) (url string, err error) {
	return n.URL + "/balanced", n.Call(nil, "svm_backends", lags)
}

// Limit makes the node answer calls of a method beyond so many a second with HTTP status 429.
func (n *SolanaNode) Limit(method string, perSecond int) error {
	return n.Call(nil, "svm_limit", method, perSecond)
}

// Calls returns how often each method was called since it was last asked.
func (n *SolanaNode) Calls() (byMethod map[string]int, err error) {
	err = n.Call(&byMethod, "svm_calls")
	delete(byMethod, "svm_calls")

	return byMethod, err
}

// DamageMeta leaves out of a transaction's meta its token balances ("tokens"), or all of it ("null").
func (n *SolanaNode) DamageMeta(signature, damage string) error {
	return n.Call(nil, "svm_meta", signature, damage)
}

// Airdrop gives an address coins, in a transaction that the next block holds.
func (n *SolanaNode) Airdrop(address string, lamports uint64) error {
	return n.Call(nil, "requestAirdrop", address, lamports)
}

// SetPriorityFee sets what the node says was paid recently, in millionths of a lamport per compute unit.
func (n *SolanaNode) SetPriorityFee(microLamports uint64) error {
	return n.Call(nil, "svm_priorityFee", microLamports)
}

// SolanaNodeScript runs a script of this module in Node.js with web3.js and spl-token within reach
// of require, gives it input on standard input, and returns what it prints.
func SolanaNodeScript(t testing.TB, script string, input []byte) []byte {
	t.Helper()
	skipShort(t, "Node.js")

	return runNode(t, nodeCommand(t.Context(), t, "solana", script), script, input)
}
