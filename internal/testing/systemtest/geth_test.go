package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// gethNode runs go-ethereum's node in this process, on a chain of its own with the first well-known
// development account funded, and returns it with its URL. It makes a block on demand.
func gethNode(t *testing.T, options ...func(*node.Config, *ethconfig.Config)) (*simulated.Backend, string) {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	port := l.Addr().(*net.TCPAddr).Port
	l.Close()

	options = append(options, func(n *node.Config, _ *ethconfig.Config) {
		n.HTTPHost, n.HTTPPort, n.HTTPModules = "127.0.0.1", port, []string{"eth", "net", "web3", "txpool"}
		n.WSHost, n.WSPort, n.WSModules = n.HTTPHost, n.HTTPPort, n.HTTPModules
	})
	backend := simulated.NewBackend(types.GenesisAlloc{
		common.HexToAddress(testenv.WellKnownDevAccounts[0].Address): {
			Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(params.Ether)),
		},
	}, options...)

	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})

	return backend, fmt.Sprintf("http://127.0.0.1:%d", port)
}

// blockEverySecond has a node make blocks until the test ends.
func blockEverySecond(t *testing.T, backend *simulated.Backend) {
	t.Helper()

	ctx, stop := context.WithCancel(context.Background())

	done := make(chan struct{})
	go func() {
		defer close(done)

		tick := time.NewTicker(time.Second)
		defer tick.Stop()

		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				backend.Commit()
			}
		}
	}()

	t.Cleanup(func() {
		stop()
		<-done
	})
}

// The quickstart's scenario with real transactions on go-ethereum's own node.
func TestQuickstartOnGeth(t *testing.T) {
	if testing.Short() {
		t.Skip("plays for half a minute; run without -short")
	}

	backend, url := gethNode(t)
	blockEverySecond(t, backend)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	cmd := exec.CommandContext(
		ctx, "go", "run", "./examples/quickstart", "-once", "-addr", "127.0.0.1:0", "-evm-rpc", url,
	)
	cmd.Dir = "../../.."

	var out bytes.Buffer

	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}

	for _, step := range []string{
		"open",
		"detected",
		"confirmed",
		"paid",
		"released",
		"delivered, signature verified",
	} {
		if !strings.Contains(out.String(), step) {
			t.Errorf("the scenario has no step %q:\n%s", step, out.String())
		}
	}

	t.Log("\n" + out.String())
}
