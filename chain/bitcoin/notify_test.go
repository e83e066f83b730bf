//go:build unix

package bitcoin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// publishing starts a node that publishes its blocks, and returns where.
func publishing(t *testing.T) (n *node, endpoint string) {
	t.Helper()

	folder, err := os.MkdirTemp("", "zmq") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(folder) })

	endpoint = "ipc://" + filepath.Join(folder, "s")

	return startNode(t, testenv.BitcoindOptions{Args: []string{"-zmqpubhashblock=" + endpoint}}), endpoint
}

// notified returns a driver whose node announces its blocks.
func (n *node) notified(t *testing.T, endpoint string, change ...func(*bitcoin.Config)) chain.Driver {
	t.Helper()

	c := n.config()
	c.ZMQ = endpoint

	for _, apply := range change {
		apply(&c)
	}

	driver, err := bitcoin.New(c)
	if err != nil {
		t.Fatal(err)
	}

	return driver
}

// A node that ends, ends the subscription; while nobody is there, there is none.
func TestSubscriptionEndsWithTheNode(t *testing.T) {
	n, endpoint := publishing(t)
	driver := n.notified(t, endpoint).(chain.HeadNotifier)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)

	defer cancel()

	announced, ended := make(chan struct{}, 1000), make(chan error, 1)

	go func() { ended <- driver.NotifyHeads(ctx, func() { announced <- struct{}{} }) }()

	for received := false; !received; {
		n.must(t, n.Mine(ctx, 1))

		select {
		case <-announced:
			received = true
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("no block was announced")
		}
	}

	n.Kill()

	if err := <-ended; !errors.Is(err, fault.Unavailable) {
		t.Errorf("when the node ended: %v", err)
	}
}

func TestZMQEndpointIsChecked(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:28332", "tcp://127.0.0.1", "http://127.0.0.1:28332", "ipc://"} {
		_, err := bitcoin.New(bitcoin.Config{
			Network: bitcoin.Regtest,
			RPC:     "http://127.0.0.1:1",
			ZMQ:     endpoint,
		})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%q was answered %v", endpoint, err)
		}
	}
}
