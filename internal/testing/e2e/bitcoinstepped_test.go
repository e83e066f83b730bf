//go:build unix

package e2e

// This file is a service on bitcoind that works on demand, in the time it is given, at fee rates that a test sets.

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// estimates carries the calls of a driver and answers fee estimates itself.
type estimates struct{ rate atomic.Int64 } // satoshi per 1000 vB

// RoundTrip implements http.RoundTripper.
func (e *estimates) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !bytes.Contains(body, []byte("estimatesmartfee")) {
		return answer, err
	}
	defer answer.Body.Close()

	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}

	if text, err = withEstimate(body, text, e.rate.Load()); err != nil {
		return nil, err
	}

	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))

	return answer, nil
}

// withEstimate puts a fee rate into the answer of a batch of calls.
func withEstimate(request, response []byte, rate int64) ([]byte, error) {
	var (
		calls []struct {
			ID     int
			Method string
		}
		answers []map[string]any
	)

	if err := json.Unmarshal(request, &calls); err != nil {
		return nil, err
	}

	if err := json.Unmarshal(response, &answers); err != nil {
		return nil, err
	}

	for _, call := range calls {
		i := slices.IndexFunc(answers, func(a map[string]any) bool { return a["id"] == float64(call.ID) })
		if call.Method == "estimatesmartfee" && i >= 0 {
			feerate := json.Number(decimal.New(rate, -8).String())
			answers[i]["result"], answers[i]["error"] = map[string]any{"feerate": feerate, "blocks": 3}, nil
		}
	}

	return json.Marshal(answers)
}

// steppedBitcoin is an engine over a node. What a test changes in config is before the engine is made.
type steppedBitcoin struct {
	t         *testing.T
	node      bitcoindHarness
	estimates *estimates
	now       time.Time
	driver    bitcoinDriver
	keys      *hdkey.Signer
	engine    *payments.Engine
	owner     event.Owner
	master    chain.Party
	slug      string
}

func stepBitcoin(t *testing.T, change ...func(*payments.Config)) *steppedBitcoin {
	t.Helper()

	if testing.Short() {
		t.Skip("needs bitcoind; run without -short")
	}

	s := &steppedBitcoin{
		t:         t,
		node:      startBitcoind(t).(bitcoindHarness),
		estimates: &estimates{},
		now:       time.Now(),
		slug:      bitcoin.Regtest.Slug,
	}
	s.estimates.rate.Store(5_000)

	driver, err := bitcoin.New(bitcoin.Config{
		Network: bitcoin.Regtest,
		// No block of the scenarios pays a fee: what the estimate may say is bounded by this alone.
		FallbackFeeRate: 100_000,
		RPC:             s.node.url(),
		HTTPClient:      &http.Client{Transport: s.estimates},
		Attempts:        1,
	})
	must(t, err)

	s.driver = driver.(bitcoinDriver)

	s.keys, err = hdkey.New(mnemonic, "")
	must(t, err)

	now := func() time.Time { return s.now }
	prices, err := rate.NewFixed(map[string]string{"BTC/USD": "60000"}, time.Minute, now)
	must(t, err)

	config := payments.Config{
		Store:        memory.New(),
		Drivers:      []payments.ChainDriver{s.driver},
		Signer:       s.keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{s.slug: s.node.address(t)},
		Now:          now,
		Log:          slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range change {
		f(&config)
	}

	s.engine, err = payments.New(config)
	must(t, err)
	s.register()

	return s
}

// register makes the merchant, who also may spend block rewards at once if there are any.
func (s *steppedBitcoin) register() {
	s.t.Helper()

	made, err := s.engine.Accounts.CreateAccount(s.t.Context(), account.Settings{Name: "Corner Shop"})
	must(s.t, err)

	s.owner = event.Owner{AccountID: made.ID}
	s.master, err = internal.Of(s.engine).Transactions.MasterWallet(s.t.Context(), s.slug, made.Index)
	must(s.t, err)
	s.work()
}

// work does what is due now.
func (s *steppedBitcoin) work() {
	s.t.Helper()

	for range 200 {
		did, err := s.engine.Step(s.t.Context())
		must(s.t, err)

		if !did {
			return
		}
	}

	s.t.Fatal("the engine does not come to rest")
}

// pass lets time pass for the engine and the node, in steps of a minute or a sixtieth of it.
func (s *steppedBitcoin) pass(d time.Duration) {
	s.t.Helper()

	for d > 0 {
		part := min(d, max(time.Minute, d/60))
		s.now = s.now.Add(part)
		s.node.call(s.t, nil, "setmocktime", s.now.Unix())
		s.work()

		d -= part
	}
}

// mine makes blocks of what waits, and has them read.
func (s *steppedBitcoin) mine(blocks int) {
	s.t.Helper()
	s.node.mine(s.t, blocks)
	s.pass(5 * time.Second)
}

// mineThese makes a block of given transactions, in hex, and leaves the pool alone.
func (s *steppedBitcoin) mineThese(raw ...string) {
	s.t.Helper()
	s.node.call(s.t, nil, "generateblock", s.node.address(s.t), append([]string{}, raw...))
	s.pass(5 * time.Second)
}

// fund pays the master wallet amounts, in coins of their own.
func (s *steppedBitcoin) fund(satoshi ...uint64) {
	s.t.Helper()

	want := s.available()

	for _, v := range satoshi {
		s.node.pay(s.t, s.master.Address, chain.Units(v))
		want = want.Add(chain.Units(v))
	}

	s.mine(3)

	for range 12 {
		if !s.available().Less(want) {
			return
		}

		s.t.Logf("%s, and has to be %s", s.funds(), want)
		s.pass(5 * time.Second)
	}

	s.t.Fatalf("the master wallet was not funded: %s", s.funds())
}

// funds says what the engine and the node know of the master wallet.
func (s *steppedBitcoin) funds() string {
	s.t.Helper()

	cursor, _, err := internal.Of(s.engine).Store().Cursor(s.t.Context(), s.slug)
	must(s.t, err)

	return fmt.Sprintf(
		"%s is available at height %d; the node is at %d, has %s unspent and %d in its pool",
		s.available(), cursor.At.Height,
		s.node.height(s.t), s.node.holds(s.t, s.master.Address), len(s.node.pool(s.t)),
	)
}

func (s *steppedBitcoin) payOut(to string, satoshi uint64) payout.Payout {
	s.t.Helper()

	p, err := s.engine.Payouts.Create(s.t.Context(), s.payoutParams(to, satoshi))
	must(s.t, err)
	s.pass(5 * time.Second)

	return p
}

func (s *steppedBitcoin) payoutParams(to string, satoshi uint64) payout.Params {
	return payout.Params{
		Owner:       s.owner,
		Network:     s.slug,
		Asset:       "BTC",
		Amount:      chain.Units(satoshi),
		Destination: to,
		RequestedBy: payout.Requester{Type: "user", ID: "test"},
	}
}

func (s *steppedBitcoin) payout(id string) payout.Payout {
	s.t.Helper()

	p, err := s.engine.Payouts.Get(s.t.Context(), s.owner, id)
	must(s.t, err)

	return p
}

// outgoing returns the transaction of a payout.
func (s *steppedBitcoin) outgoing(p payout.Payout) wallet.Transaction {
	s.t.Helper()

	t, err := internal.Of(s.engine).Store().Transaction(s.t.Context(), p.TransactionID)
	must(s.t, err)

	return t
}

func (s *steppedBitcoin) deposit() chain.Address {
	s.t.Helper()

	d, err := s.engine.Invoices.CreateDeposit(
		s.t.Context(), invoice.DepositParams{Owner: s.owner, Network: s.slug},
	)
	must(s.t, err)

	return d.Address
}

// settlements returns the merchant's, the oldest first.
func (s *steppedBitcoin) settlements() []settlement.Settlement {
	s.t.Helper()

	all, _, err := s.engine.Settlements.List(s.t.Context(), settlement.Filter{Owner: s.owner, Limit: 100})
	must(s.t, err)
	slices.Reverse(all)

	return all
}

// available is what the master wallet may spend.
func (s *steppedBitcoin) available() chain.Amount {
	s.t.Helper()

	all, err := s.engine.Payouts.Balances(s.t.Context(), s.owner)
	must(s.t, err)

	for _, b := range all {
		if b.Address == s.master.Address {
			return b.Available()
		}
	}

	return chain.Amount{}
}

// atRest fails unless every payout is over, nothing is reserved or promised, and the audit is clean.
func (s *steppedBitcoin) atRest(payouts ...payout.Payout) {
	s.t.Helper()

	for _, p := range payouts {
		if p = s.payout(p.ID); p.Status != payout.Confirmed && p.Status != payout.Failed {
			s.t.Errorf("payout %s is still %s", p.ID, p.Status)
		}
	}

	st := internal.Of(s.engine).Store()

	coins, err := st.Coins(s.t.Context(), s.slug, s.master.Address)
	must(s.t, err)

	for _, c := range coins {
		if c.ReservedBy != "" && c.SpentBy == "" {
			s.t.Errorf("coin %v of %s is reserved by %s", c.Outpoint, c.Amount, c.ReservedBy)
		}
	}

	rows, err := st.BalancesOf(s.t.Context(), s.slug)
	must(s.t, err)

	for _, b := range rows {
		if len(b.Reservations) > 0 {
			s.t.Errorf("of the balance of %s are promised %+v", b.Address, b.Reservations)
		}
	}

	s.audited(true)
}

// audited fails unless the audit is clean, or unless it is not. It returns what the audit says.
func (s *steppedBitcoin) audited(clean bool) string {
	s.t.Helper()

	report, err := s.engine.Audit(s.t.Context())
	must(s.t, err)

	var lines []string
	for _, d := range report.Differences() {
		lines = append(lines, string(d.Kind)+" "+string(d.Address)+": "+d.Message)
	}

	text := strings.Join(lines, "\n")
	if report.Clean() != clean {
		s.t.Errorf("the audit says:\n%s", text)
	}

	return text
}

// raw returns the bytes of an attempt of ours, in hex.
func (s *steppedBitcoin) raw(t wallet.Transaction, attempt int) string {
	s.t.Helper()

	return hex.EncodeToString(t.Attempts[attempt].Signed.Raw)
}

// refused fails unless the node refuses bytes.
func (s *steppedBitcoin) refused(what, raw string) {
	s.t.Helper()

	if err := s.node.Call(context.Background(), nil, "sendrawtransaction", raw, 0); err == nil {
		s.t.Errorf("the node takes %s", what)
	}
}
