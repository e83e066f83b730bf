//go:build unix

package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/store"
)

// The moments at which a process dies that serves a request with an Idempotency-Key.
const (
	beforeClaim  = "before the claim"
	beforeCommit = "when the work is done, before the commit"
	beforeAnswer = "after the commit, before the answer"
)

// The environment by which the test starts itself again as a service that dies.
const (
	killedKindEnv  = "HTTPAPI_TEST_KILLED_KIND"
	killedStoreEnv = "HTTPAPI_TEST_KILLED_STORE"
	killedWhenEnv  = "HTTPAPI_TEST_KILLED_WHEN"
)

// A process is killed while it serves a request. The same request with the same Idempotency-Key, to
// another process over the same database, makes or finds one object.
func TestKilledBetweenEffectAndAnswer(t *testing.T) {
	for _, kind := range storeKinds {
		if kind.create == nil {
			continue // nothing of it outlives the process
		}

		for _, when := range []string{beforeClaim, beforeCommit, beforeAnswer} {
			t.Run(kind.name+"/"+when, func(t *testing.T) { testKilled(t, kind, when) })
		}
	}
}

func testKilled(t *testing.T, kind storeKind, when string) {
	name := kind.create(t)
	s := openOn(t, kind.open(t, name), nil, time.Now)
	s.fund(t, "SIM", chain.Pow10(20))
	payee := string(s.network.NewAddress())

	s.key = s.newKey(
		t,
		account.KeyParams{
			Scopes:       account.AllScopes(),
			Destinations: []chain.Destination{{Address: chain.Address(payee)}},
		},
	)
	for _, q := range []request{
		{method: "POST", path: "/v1/invoices", body: invoiceBody},
		{method: "POST", path: "/v1/payouts", body: payoutBody("SIM", "1000000000000000000", payee)},
		{method: "POST", path: "/v1/webhook_endpoints", body: `{"url":"http://127.0.0.1:1/","events":["*"]}`},
	} {
		q.header = header("Idempotency-Key", "killed"+strings.ReplaceAll(q.path, "/", "-"))
		s.sendToKilled(t, kind.name, name, when, q)
		first, second := s.do(t, q), s.do(t, q)

		made, again := s.ok(t, first), s.ok(t, second)
		if replayed := first.header.Get("Idempotent-Replayed") == "true"; replayed != (when == beforeAnswer) {
			t.Errorf("%s: replayed: %t", q.path, replayed)
		}

		if second.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(first.body, second.body) {
			t.Errorf("%s made %v and then %v", q.path, made, again)
		}

		if list := s.get(t, q.path)["data"].([]any); len(list) != 1 ||
			list[0].(map[string]any)["id"] != made["id"] {
			t.Errorf("%s lists %v; %v was made", q.path, list, made["id"])
		}
	}
	// Its event is stored once, too.
	for _, typ := range []string{"invoice.created", "payout.created"} {
		if list := s.get(t, "/v1/events?type="+typ)["data"].([]any); len(list) != 1 {
			t.Errorf("%d events %s", len(list), typ)
		}
	}
}

// sendToKilled sends a request to another process, which dies of it.
func (s *shop) sendToKilled(t *testing.T, kind, name, when string, q request) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestServeUntilKilled$", "-test.v")

	child.Env = append(os.Environ(), killedKindEnv+"="+kind, killedStoreEnv+"="+name, killedWhenEnv+"="+when)
	said := &logs{} // written to by us and by the copier of the standard error output
	child.Stderr = said

	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	lines := bufio.NewScanner(out)

	address := ""
	for address == "" && lines.Scan() {
		_, _ = said.Write([]byte(lines.Text() + "\n"))
		_, address, _ = strings.Cut(lines.Text(), "serving on ")
	}

	if address == "" {
		_ = child.Wait()

		t.Fatalf("the other process does not serve:\n%s", said)
	}

	r, err := http.NewRequestWithContext(ctx, q.method, "http://"+address+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}

	r.GetBody = nil // the client must not send it again by itself
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", q.header.Get("Idempotency-Key"))

	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		t.Errorf("%s: the killed process answered %d: %s", q.path, answer.StatusCode, body)
	}

	_, _ = io.Copy(said, out)
	err = child.Wait()

	exit, ok := errors.AsType[*exec.ExitError](err)
	if ctx.Err() != nil || !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%s: the other process ended with %v, not by the signal:\n%s", q.path, err, said)
	}
}

// TestServeUntilKilled is no test: it is the process that TestKilledBetweenEffectAndAnswer starts.
func TestServeUntilKilled(t *testing.T) {
	when := os.Getenv(killedWhenEnv)
	if when == "" {
		return
	}

	i := slices.IndexFunc(storeKinds, func(k storeKind) bool { return k.name == os.Getenv(killedKindEnv) })
	db := storeKinds[i].open(t, os.Getenv(killedStoreEnv))

	accounts, err := db.Accounts(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}

	s := boot(t, killingStore{db, when}, nil, time.Now)
	s.account = accounts[0]
	s.fund(t, "SIM", chain.Pow10(20)) // each process has a simulated network of its own

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	fmt.Println("serving on " + listener.Addr().String())
	t.Fatal(http.Serve(listener, s.handler))
}

// killingStore is a store that kills its process at a moment of the first transaction that claims an
// Idempotency-Key.
type killingStore struct {
	payments.Store
	when string
}

// Update runs a transaction.
func (d killingStore) Update(ctx context.Context, f func(context.Context, store.Tx) error) error {
	claimed := false

	err := d.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := f(ctx, killingTx{tx, d.when, &claimed}); err != nil {
			return err
		}

		if claimed && d.when == beforeCommit {
			killProcess()
		}

		return nil
	})
	if err == nil && claimed {
		killProcess()
	}

	return err
}

// killingTx is a transaction that records when it claimed a key.
type killingTx struct {
	store.Tx
	when    string
	claimed *bool
}

// ClaimIdempotencyKey claims a key.
func (c killingTx) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	if c.when == beforeClaim {
		killProcess()
	}

	err := c.Tx.ClaimIdempotencyKey(ctx, r, stale, wait)
	*c.claimed = err == nil

	return err
}

// die ends the process as a power failure would: nothing of it runs any more.
func killProcess() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)

	select {}
}
