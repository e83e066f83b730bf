//go:build unix

// This file holds the second Bitcoin node, which is of another make.

package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// BtcdNode is a running btcd on an empty regtest chain. It has no wallet and makes no blocks;
// package regtest does.
type BtcdNode struct {
	BitcoinRPC

	process *process
}

// Btcd starts a regtest node without peers on a free port of 127.0.0.1, with an index of
// transactions, and stops it when the test ends. The node is built if it is not there. The test
// fails if the node cannot be started, and also if it ends before the test does.
func Btcd(t testing.TB) *BtcdNode {
	t.Helper()
	skipShort(t, "btcd")

	path, err := btcdPath()
	if err != nil {
		t.Fatalf("testenv: btcd: %v", err)
	}

	const tries = 5 // the port chosen can be taken before the node listens on it

	for try := 1; ; try++ {
		n, err := startBtcd(path, t.TempDir())
		if err == nil {
			t.Cleanup(func() { n.process.finish(t, syscall.SIGKILL) })
			return n
		}

		if try == tries {
			t.Fatalf("testenv: btcd did not start in %d tries: %v", tries, err)
		}
	}
}

func startBtcd(path, dir string) (*BtcdNode, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}

	n := &BtcdNode{BitcoinRPC: rpcAt(addr)}
	cmd := exec.Command(
		path,
		"--regtest",
		"--notls",
		"--nolisten",
		"--txindex",
		"--datadir="+dir,
		"--logdir="+dir,
		"--configfile="+filepath.Join(
			dir, "none.conf",
		),
		"--rpclisten="+addr,
		"--rpcuser="+n.User,
		"--rpcpass="+n.Password,
		"--rpcmaxclients=100",
	)

	cmd.Dir = dir
	if n.process, err = startProcess("btcd", cmd, filepath.Join(dir, "output.log")); err != nil {
		return nil, err
	}

	if err := n.process.waitReady(n.ready); err != nil {
		n.process.stop(syscall.SIGKILL)
		return nil, err
	}

	return n, nil
}

// ready sees that the node answers with an empty chain, which no other process at the port would.
func (n *BtcdNode) ready() error {
	var blocks int
	if err := n.Call(context.Background(), &blocks, "getblockcount"); err != nil {
		return err
	}

	if blocks != 0 {
		return fmt.Errorf("another process answers at %s", n.Addr)
	}

	return nil
}

// btcdPath returns the path of the node, after building it if need be: at most once per test
// binary, and the script locks out other binaries.
var btcdPath = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}

	cmd := exec.Command("bash", filepath.Join("scripts", "btcd.sh"))

	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build btcd: %w\n%s", err, out)
	}

	found, err := filepath.Glob(filepath.Join(root, ".cache", "btcd", "btcd-v*"))
	if err != nil {
		return "", fmt.Errorf("looking for btcd in .cache/btcd: %w", err)
	}

	if len(found) != 1 {
		return "", fmt.Errorf("there are %d nodes in .cache/btcd: %v", len(found), found)
	}

	_, err = os.Stat(found[0])

	return found[0], err
})
