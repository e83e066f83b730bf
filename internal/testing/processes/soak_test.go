//go:build unix

package processes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Four processes over one PostgreSQL and one node, one of which is killed every second under load:
// for 60 s under make soak (or SOAKTIME, if that is less), for 8 s among the other tests. Merchants
// retry what is not answered, under the same idempotency key. In the end every request made one
// invoice, every payment is recorded once and released once, and every event was delivered at least
// once.
func TestSoakProcessesAreKilled(t *testing.T) {
	lasts := 8 * time.Second

	if text := os.Getenv("SOAKTIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}

		lasts = min(d, time.Minute)
	}

	const processes, payers = 4, 4

	s := newScene(t, service(t))
	f := rear(t, s.orders, processes)

	var working sync.WaitGroup

	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()

	for n := range payers {
		working.Go(func() { s.payAll(ctx, f, n) })
	}

	kills := 0

	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-tick.C:
			if f.replace(t, s.orders, kills) { // each in its turn
				kills++
			}

			continue
		case <-ctx.Done():
			tick.Stop()
		}

		break
	}

	working.Wait()
	f.replacing.Wait()

	if t.Failed() {
		t.FailNow()
	}

	settled(s)

	for _, p := range f.all {
		if err := p.end(); err != nil {
			t.Errorf("a process did not end in order: %v", err)
		}
	}

	s.verify(kills)
}

// scene is the harness around the processes: a merchant, the receiver of its webhooks, payers, and an
// engine that does not run, to look behind the processes.
type scene struct {
	orders
	t     *testing.T
	look  *payments.Engine
	owner event.Owner
	key   string
	node  *rpc.Client

	mu       sync.Mutex
	received map[string]int          // deliveries by event id
	paid     map[string]chain.Amount // by transaction hash
	invoiced map[string]string       // invoice ids by idempotency key
	of       map[string]string       // invoice ids by transaction hash
	retried  atomic.Int64
}

func newScene(t *testing.T, o orders) *scene {
	t.Helper()
	s := &scene{
		orders:   o,
		t:        t,
		received: map[string]int{},
		paid:     map[string]chain.Amount{},
		invoiced: map[string]string{},
		of:       map[string]string{},
	}

	var (
		err  error
		shut func()
	)
	if s.look, shut, err = o.engine(io.Discard); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(shut)

	if s.node, err = rpc.DialContext(t.Context(), o.RPC); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(s.node.Close)
	s.open()

	return s
}

// sibling returns the harness of another merchant over the same processes.
func (s *scene) sibling() *scene {
	other := &scene{
		orders:   s.orders,
		t:        s.t,
		look:     s.look,
		node:     s.node,
		received: map[string]int{},
		paid:     map[string]chain.Amount{},
		invoiced: map[string]string{},
		of:       map[string]string{},
	}
	other.open()

	return other
}

// open makes the merchant's account, with a key and a webhook endpoint.
func (s *scene) open() {
	t := s.t
	t.Helper()

	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()

		s.received[r.Header.Get(webhook.EventIDHeader)]++
	}))
	t.Cleanup(receiver.Close)

	var err error

	s.owner.AccountID = merchant(t, s.look)
	if _, s.key, err = s.look.Accounts.CreateKey(
		t.Context(), account.KeyParams{AccountID: s.owner.AccountID},
	); err != nil {
		t.Fatal(err)
	}

	if _, _, err := s.look.Webhooks.CreateEndpoint(
		t.Context(),
		webhook.EndpointParams{Owner: s.owner, URL: receiver.URL, Events: []event.Type{"*"}},
	); err != nil {
		t.Fatal(err)
	}
}

// payAll orders and pays until ctx ends. What was begun is finished.
func (s *scene) payAll(ctx context.Context, f *family, payer int) {
	pace := time.NewTicker(500 * time.Millisecond)
	defer pace.Stop()

	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}

		key := fmt.Sprintf("order-%d-%d", payer, n)
		amount := chain.Pow10(16).Add(chain.Units(uint64(1000*payer + n)))

		id, to, err := s.order(f, payer+n, key, amount)
		if err == nil {
			err = s.pay(id, to, amount, payer)
		}

		if err != nil {
			s.t.Errorf("%s: %v", key, err)
			return
		}
	}
}

// order makes an invoice, from whichever process answers.
func (s *scene) order(
	f *family,
	n int,
	key string,
	amount chain.Amount,
) (id string, to chain.Address, err error) {
	body := fmt.Sprintf(
		`{"options":[{"asset":"ETH","network":"local","amount":"%s"}],"order_id":%q}`, amount, key,
	)

	deadline := time.Now().Add(patience)
	for ; time.Now().Before(deadline); n++ {
		status, answer, err := s.post(f.somebody(n), key, body)
		if err != nil || status == http.StatusConflict || status >= 500 {
			// A process that was killed, or a request that crashed with one and still holds its claim:
			// ask another one.
			s.retried.Add(1)
			time.Sleep(20 * time.Millisecond)

			continue
		}

		var made struct {
			ID      string
			Options []struct{ Address chain.Address }
		}
		if err := json.Unmarshal(
			answer, &made,
		); err != nil || status != http.StatusOK ||
			len(made.Options) != 1 {
			return "", "", fmt.Errorf("%d: %s (%w)", status, answer, err)
		}

		s.mu.Lock()
		defer s.mu.Unlock()

		s.invoiced[key] = made.ID

		return made.ID, made.Options[0].Address, nil
	}

	return "", "", errors.New("nobody answers")
}

func (s *scene) post(addr, key, body string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()

	req, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "http://"+addr+"/v1/invoices", bytes.NewReader([]byte(body)),
	)
	if err != nil {
		return 0, nil, err
	}

	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(resp.Body)

	return resp.StatusCode, answer, err
}

// pay sends the amount from one of the node's own accounts.
func (s *scene) pay(invoiceID string, to chain.Address, amount chain.Amount, payer int) error {
	var hash string

	err := s.node.CallContext(s.t.Context(), &hash, "eth_sendTransaction", map[string]any{
		"from":  testenv.WellKnownDevAccounts[payer].Address,
		"to":    to,
		"value": (*hexutil.Big)(amount.Big()),
		"gas":   hexutil.Uint64(21000),
	})
	if err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.paid[hash], s.of[hash] = amount, invoiceID

	return nil
}

// awaitFollower waits until a process has begun to read the network.
func (s *scene) awaitFollower() {
	s.t.Helper()

	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		report, err := s.look.Health(s.t.Context())
		if err == nil && len(report.Networks) > 0 && report.Networks[0].Height > 0 {
			return
		}
	}

	s.t.Fatal("no process began to read the network within a minute")
}

// settled waits until nothing is left to do for any of the accounts: all payments released, all deliveries made. It
// gives up when nothing moves any more.
func settled(all ...*scene) {
	t := all[0].t
	t.Helper()

	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()

	var last, lastOfAll string

	moved := time.Now()

	for _, s := range all {
		for {
			state, done := s.state()
			if done {
				break
			}

			if state != last {
				last, moved = state, time.Now()
			}

			if time.Since(moved) > patience { // others may be served before it
				ofAll := ""

				for _, other := range all {
					state, _ := other.state()
					ofAll += state + "\n"
				}

				if ofAll == lastOfAll {
					t.Fatalf("nothing moves any more: %s", state)
				}

				lastOfAll, moved = ofAll, time.Now()
			}

			<-tick.C
		}
	}
}

// state says what became of an account's payments; done is true when nothing is left to do.
func (s *scene) state() (state string, done bool) {
	s.t.Helper()

	payments, settlements := s.records()
	counts, released := map[string]int{}, 0

	for _, p := range payments {
		counts["payments "+string(p.Status)]++
	}

	for _, x := range settlements {
		counts[strings.TrimSpace("settlements "+string(x.Status)+" "+string(x.Reason))]++

		if x.Status == settlement.Released {
			released++
		}
	}

	pending, err := internal.Of(s.look).Store().
		Deliveries(s.t.Context(), webhook.DeliveryFilter{
			Owner:    s.owner,
			Statuses: []webhook.DeliveryStatus{webhook.DeliveryPending},
			Limit:    1,
		})
	if err != nil {
		s.t.Fatal(err)
	}

	return fmt.Sprintf(
		"of %d payments %d are released; deliveries pending: %v; %v",
		len(s.paid),
		released,
		len(pending) > 0,
		counts,
	), released == len(s.paid) && len(pending) == 0
}

const everything = 1_000_000

func (s *scene) records() ([]invoice.Payment, []settlement.Settlement) {
	s.t.Helper()

	payments, err := internal.Of(s.look).Store().
		Payments(s.t.Context(), invoice.PaymentFilter{Owner: s.owner, Limit: everything})
	if err != nil {
		s.t.Fatal(err)
	}

	settlements, err := internal.Of(s.look).Store().
		Settlements(s.t.Context(), settlement.Filter{Owner: s.owner, Limit: everything})
	if err != nil {
		s.t.Fatal(err)
	}

	return payments, settlements
}

// verify verifies the records and audits them.
func (s *scene) verify(kills int) {
	t := s.t
	t.Helper()

	events, deliveries := s.verifyRecords()
	s.audit()

	if kills == 0 || len(s.paid) == 0 {
		t.Errorf("nothing was tested: %d kills, %d payments", kills, len(s.paid))
	}

	t.Logf(
		"%d processes killed; %d requests sent again; %d invoices by as many keys; %d payments, each "+
			"recorded once and released once; %d events delivered %d times, each at least once; the audit agrees",
		kills,
		s.retried.Load(),
		len(s.invoiced),
		len(s.paid),
		events,
		deliveries,
	)
}

// audit fails the test when the records differ from each other or from the node.
func (s *scene) audit() {
	s.t.Helper()

	a, err := s.look.Audit(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}

	for _, d := range a.Differences() {
		s.t.Errorf("the audit found %s: %s", d.Kind, d.Message)
	}
}

// verifyRecords compares what was done with what is recorded, with what the node holds, and with what was delivered.
// It returns how many events there are, and how often they were delivered.
func (s *scene) verifyRecords() (stored, deliveries int) {
	t, ctx := s.t, s.t.Context()
	t.Helper()

	invoices, err := internal.Of(s.look).
		Store().
		Invoices(ctx, invoice.Filter{Owner: s.owner, Limit: everything})
	if err != nil {
		t.Fatal(err)
	}

	byID, numbers := map[string]invoice.Invoice{}, map[int64]bool{}
	for _, i := range invoices {
		byID[i.ID], numbers[i.Number] = i, true
		if i.Status != invoice.Paid {
			t.Errorf("invoice %s is %s", i.ID, i.Status)
		}
	}

	if len(invoices) != len(s.invoiced) || len(numbers) != len(invoices) {
		t.Errorf("%d requests made %d invoices with %d numbers", len(s.invoiced), len(invoices), len(numbers))
	}

	for key, id := range s.invoiced {
		if byID[id].OrderID != key {
			t.Errorf("%s was answered invoice %s, which is of %q", key, id, byID[id].OrderID)
		}
	}

	payments, settlements := s.records()

	recorded := map[string]int{}
	for _, p := range payments {
		if recorded[p.TxHash]++; p.Amount != s.paid[p.TxHash] || p.InvoiceID != s.of[p.TxHash] ||
			p.Status != invoice.Confirmed {
			t.Errorf(
				"payment %s of %s to invoice %s is %s; paid were %s to %s",
				p.TxHash, p.Amount, p.InvoiceID, p.Status, s.paid[p.TxHash], s.of[p.TxHash],
			)
		}
	}

	for hash := range s.paid {
		if recorded[hash] != 1 {
			t.Errorf("payment %s is recorded %d times", hash, recorded[hash])
		}
	}

	s.released(settlements)

	events, err := internal.Of(s.look).Store().Events(ctx, event.Filter{Owner: s.owner, Limit: everything})
	if err != nil {
		t.Fatal(err)
	}

	type step struct {
		object   string
		sequence int64
	}

	steps := map[step]bool{}

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, e := range events {
		if s.received[e.ID] == 0 {
			t.Errorf("event %s (%s) was never delivered", e.ID, e.Type)
		}

		deliveries += s.received[e.ID]
		if at := (step{e.ObjectID, e.Sequence}); steps[at] {
			t.Errorf("two events have sequence %d of %s", e.Sequence, e.ObjectID)
		} else {
			steps[at] = true
		}
	}

	for at := range steps {
		if at.sequence > 1 && !steps[step{at.object, at.sequence - 1}] {
			t.Errorf("event %d of %s is missing", at.sequence-1, at.object)
		}
	}

	if len(s.received) != len(events) {
		t.Errorf("%d events were delivered, %d are stored", len(s.received), len(events))
	}

	return len(events), deliveries
}

// released checks that every deposit was moved once: nothing is left of it, and the master wallet
// holds the sum.
func (s *scene) released(all []settlement.Settlement) {
	t := s.t
	t.Helper()

	var net chain.Amount

	for _, x := range all {
		if x.Status != settlement.Released || x.NetReleased == nil ||
			x.Gross != x.NetReleased.Add(x.FeePaid).Add(x.NetworkFees) {
			t.Errorf("settlement %s does not balance: %+v", x.ID, x)
			continue
		}

		net = net.Add(*x.NetReleased)
		if left := s.balance(x.Deposit.Address); left.Sign() != 0 {
			t.Errorf("%s is left at the deposit address %s", left, x.Deposit.Address)
		}
	}

	if len(all) == 0 {
		return
	}

	if got := s.balance(all[0].MasterWalletAddress); got.String() != net.String() {
		t.Errorf("the master wallet holds %s, released were %s", got, net)
	}
}

func (s *scene) balance(of chain.Address) *big.Int {
	s.t.Helper()

	var b hexutil.Big
	if err := s.node.CallContext(
		s.t.Context(), &b, "eth_getBalance", common.HexToAddress(strings.ToLower(string(of))),
		"latest",
	); err != nil {
		s.t.Fatal(err)
	}

	return b.ToInt()
}
