//go:build unix

// This file holds the Bitcoin node.

package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// BitcoindEnv names the environment variable with the path of a bitcoind to run instead of the
// fetched one, for platforms for which none is fetched.
const BitcoindEnv = "PAYMENTS_BITCOIND"

// BitcoindOptions says what node to start. The zero value is a regtest node with an index of transactions.
type BitcoindOptions struct {
	// Args are further options of the command line, such as "-fastprune". Defaults to none.
	Args []string
	// NoTxIndex leaves the index of transactions out, which a pruned node cannot have.
	NoTxIndex bool
}

// BitcoindNode is a running Bitcoin node on an empty regtest chain that makes blocks only on request.
type BitcoindNode struct {
	BitcoinRPC

	process *process
}

// Bitcoind starts a regtest node without peers on free ports of 127.0.0.1 and stops it when the
// test ends. The node is fetched if it is not there. The test fails if the node cannot be started,
// and also if it ends on its own before the test does.
func Bitcoind(t testing.TB, o BitcoindOptions) *BitcoindNode {
	t.Helper()
	skipShort(t, "bitcoind")

	path, err := bitcoindPath()
	if err != nil {
		t.Fatalf("testenv: bitcoind: %v", err)
	}
	// The node cannot choose its port, and the one chosen here can be taken before it listens on
	// it: then another is tried.
	const tries = 5

	for try := 1; ; try++ {
		n, err := startBitcoind(path, t.TempDir(), o)
		if err == nil {
			t.Cleanup(func() { n.process.finish(t, syscall.SIGKILL) }) // at once: there is nothing to save
			return n
		}

		if try == tries {
			t.Fatalf("testenv: bitcoind did not start in %d tries: %v", tries, err)
		}
	}
}

func startBitcoind(path, dir string, o BitcoindOptions) (*BitcoindNode, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}

	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}

	n := &BitcoindNode{BitcoinRPC: rpcAt(addr)}

	args := []string{
		"-regtest",
		"-datadir=" + dir,
		"-rpcbind=" + host,
		"-rpcallowip=127.0.0.1/32",
		"-rpcport=" + port,
		"-rpcuser=" + n.User,
		"-rpcpassword=" + n.Password,
		"-listen=0",
		"-dnsseed=0",
		"-connect=0",
		"-printtoconsole=1",
		"-daemon=0",
		"-fallbackfee=0.0001",
	}
	if !o.NoTxIndex {
		args = append(args, "-txindex=1")
	}

	cmd := exec.Command(path, append(args, o.Args...)...)
	cmd.Dir = dir

	p, err := startProcess("bitcoind", cmd, filepath.Join(dir, "bitcoind.log"))
	if err != nil {
		return nil, err
	}

	n.process = p
	if err := p.waitReady(func() error { return n.ready(dir) }); err != nil {
		p.stop(syscall.SIGKILL)
		return nil, err
	}

	return n, nil
}

// Kill ends the node at once, as a crash does. The chain is lost.
func (n *BitcoindNode) Kill() { n.process.stop(syscall.SIGKILL) }

// ready sees that the node answers, and that it is our child and not another process that took the
// port: its log lies in our directory.
func (n *BitcoindNode) ready(dir string) error {
	var info struct {
		LogPath string `json:"logpath"`
	}
	if err := n.Call(context.Background(), &info, "getrpcinfo"); err != nil {
		return err
	}

	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}

	if !strings.HasPrefix(info.LogPath, dir) && !strings.HasPrefix(info.LogPath, real) {
		return fmt.Errorf("another process answers at %s", n.Addr)
	}

	return nil
}

// bitcoindPath returns the path of the node, after fetching it if need be.
func bitcoindPath() (string, error) {
	if path := os.Getenv(BitcoindEnv); path != "" {
		return path, nil
	}

	if err := fetchBitcoind(); err != nil {
		return "", err
	}

	dir, err := CacheDir()
	if err != nil {
		return "", err
	}

	return filepath.Join(dir, "bitcoind", "bin", "bitcoind"), nil
}

// fetchBitcoind brings the node into the cache, at most once per test binary; the script locks out
// other binaries.
var fetchBitcoind = sync.OnceValue(func() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}

	cmd := exec.Command("bash", filepath.Join("scripts", "bitcoind.sh"))

	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch bitcoind: %w\n%s", err, out)
	}

	return nil
})
