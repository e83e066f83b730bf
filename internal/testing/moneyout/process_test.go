//go:build unix

package moneyout_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/moneyout/ethereum"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// ordersVariable holds the orders, in JSON, of a test binary that another one starts as a process of its own.
const ordersVariable = "MONEYOUT_ORDERS"

// orders say what such a process does.
type orders struct {
	Do string // a key of duties
	// URL, Token and AccountID are those of its ethereum.Config.
	URL       string
	Token     chain.Asset
	AccountID string

	// SQLite is the store of a process that is to be killed, and Ahead how far its clock is.
	SQLite string
	Ahead  time.Duration
	// KillAt is the number of the effect that it dies at, before it or after; 0 lets it live and
	// write the names of its effects to the file Effects.
	KillAt  int
	After   bool
	Effects string
	// Destination and Amount are of the payout it makes, SettlementID what it releases.
	Destination  string
	Amount       chain.Amount
	SettlementID string

	// Postgres is the store of one of several processes, Name its name. Their clocks began at a time.
	Postgres, Name string
	Began          time.Time
	// Payouts is how many it accepts.
	Payouts int
}

// duties are what processes do.
var duties = map[string]func(t *testing.T, o orders){
	"payout":  payAndDie,
	"release": releaseAndDie,
	"serve":   serve,
}

func TestAsAProcess(t *testing.T) {
	text := os.Getenv(ordersVariable)
	if text == "" {
		t.Skip("other tests run it, as a process of its own")
	}

	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}

	duties[o.Do](t, o)
}

// child is a process that was started with orders.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.Closer // a serving process ends with it
	output bytes.Buffer
}

func start(t *testing.T, o orders) *child {
	t.Helper()

	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}

	c := &child{
		t: t,
		cmd: exec.CommandContext(
			t.Context(), binary, "-test.run=^TestAsAProcess$", "-test.v", "-test.timeout=15m",
		),
	}

	c.cmd.Env = append(os.Environ(), ordersVariable+"="+string(text))

	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}

	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	return c
}

// done waits for the end of a process that does its duty.
func (c *child) done() {
	c.t.Helper()

	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("a process ended with %v:\n%s", err, c.output.String())
	}
}

// killed waits for the end of a process that kills itself.
func (c *child) killed() {
	c.t.Helper()

	err := c.cmd.Wait()
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() ||
		status.Signal() != syscall.SIGKILL {
		c.t.Fatalf("a process was to be killed and ended with %v:\n%s", err, c.output.String())
	}
}

// doomed makes the engine of a process that is to be killed by the system, at once and without a
// chance to clean up.
func doomed(t *testing.T, o orders) (*ethereum.Harness, *crashtest.Process) {
	p := &crashtest.Process{
		End: func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)

			select {}
		},
	}
	w := ethereum.New(t, ethereum.Config{
		URL:       o.URL,
		ChainID:   testenv.DefaultChainID,
		Tokens:    []chain.Asset{o.Token},
		AccountID: o.AccountID,
		Store:     connection{openSQLite(t, o.SQLite), p},
		HTTP:      &http.Client{Transport: wire{p}},
	})
	w.Forward(o.Ahead)
	p.Arm(o.KillAt, o.After)

	return w, p
}

// survived writes down what a process did that was not to die.
func (o orders) survived(t *testing.T, p *crashtest.Process) {
	if o.KillAt != 0 {
		t.Fatalf("it was to be killed at effect %d, and had only %d", o.KillAt, len(p.Disarm()))
	}

	if err := os.WriteFile(o.Effects, []byte(strings.Join(p.Disarm(), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wire carries calls of a node, each an effect.
type wire struct{ process *crashtest.Process }

func (c wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}

	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}

	var answer *http.Response

	err = c.process.Do(methods(text), func() (err error) {
		answer, err = http.DefaultTransport.RoundTrip(r)
		return err
	})

	return answer, err
}

// methods names the calls of one JSON-RPC request.
func methods(body []byte) string {
	type call struct{ Method string }

	var batch []call
	if err := json.Unmarshal(body, &batch); err != nil {
		var one call

		_ = json.Unmarshal(body, &one)
		batch = []call{one}
	}

	var names []string
	for _, c := range batch {
		if !slices.Contains(names, c.Method) {
			names = append(names, c.Method)
		}
	}

	return strings.Join(names, " ")
}
