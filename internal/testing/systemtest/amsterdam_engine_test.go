package systemtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/moneyout/ethereum"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// withholding is a way to a node that keeps transactions to itself while it is on, and says that the node took them.
type withholding struct {
	mu   sync.Mutex
	on   bool
	kept []*types.Transaction
}

// RoundTrip passes a request on, or keeps its transaction.
func (w *withholding) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	var call struct {
		ID     json.RawMessage
		Method string
		Params []hexutil.Bytes
	}

	if json.Unmarshal(body, &call) != nil || call.Method != "eth_sendRawTransaction" ||
		!w.keeps(call.Params[0]) {
		return http.DefaultTransport.RoundTrip(r)
	}

	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": call.ID, "result": w.last().Hash()})
	if err != nil {
		return nil, err
	}

	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(answer)),
		Request:    r,
	}, nil
}

// keeps keeps a transaction while it is on.
func (w *withholding) keeps(raw []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	tx := new(types.Transaction)
	if !w.on || tx.UnmarshalBinary(raw) != nil {
		return false
	}

	w.kept = append(w.kept, tx)

	return true
}

func (w *withholding) last() *types.Transaction {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.kept[len(w.kept)-1]
}

// turn has it keep transactions, or none any more.
func (w *withholding) turn(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.on = on
}

// forked is an engine over a node that passes to Amsterdam's rules.
type forked struct {
	*mover
	*ethereum.Harness
	way *withholding
	usd chain.Asset
}

// newForked returns an engine over a node whose rules change from a time on (Unix seconds).
func newForked(t *testing.T, from uint64) *forked {
	t.Helper()

	f := &forked{mover: newMover(t, "fork", amsterdamFrom(from)), way: &withholding{}}
	f.usd = chain.Asset{
		Symbol:    "USDC",
		Name:      "USD Coin",
		Kind:      chain.Token,
		Contract:  f.token.Contract,
		Decimals:  6,
		MinAmount: chain.Units(1),
	}
	f.Harness = ethereum.New(t, ethereum.Config{
		URL:      f.url,
		ChainID:  simulatedChainID,
		Tokens:   []chain.Asset{f.usd},
		HTTP:     &http.Client{Transport: f.way},
		Settings: account.Settings{ManualRelease: true, PayoutsPerHour: 1000},
		Mine: func(blocks int) {
			for range blocks {
				f.backend.Commit()
			}
		},
		Fund: func(to chain.Address, amount chain.Amount) { f.fund(to, f.native, amount) },
	})
	f.Mine(8)
	f.Follow()

	return f
}

// settlements returns all settlements, of which there must be a number.
func (f *forked) settlements() []settlement.Settlement {
	f.mover.t.Helper()
	all, _, err := f.Engine.Settlements.List(
		f.mover.t.Context(), settlement.Filter{Owner: f.Owner, Limit: 100},
	)
	f.must(err)

	return all
}

// deposit has somebody pay to a new address, and has the release of it begin.
func (f *forked) deposit(asset chain.Asset, amount chain.Amount) settlement.Settlement {
	f.mover.t.Helper()

	before := len(f.settlements())

	d, err := f.Engine.Invoices.CreateDeposit(
		f.mover.t.Context(), invoice.DepositParams{Owner: f.Owner, Network: f.Network},
	)
	f.must(err)
	f.fund(d.Address, asset, amount)

	f.Until("the settlement opened", 2, func() bool { return len(f.settlements()) > before })

	for _, s := range f.settlements() {
		if s.DepositAddressID == d.ID {
			f.must(f.Engine.Settlements.ReleaseNow(f.mover.t.Context(), f.Owner, s.ID))
			return s
		}
	}

	f.mover.t.Fatal("no settlement of the deposit")

	return settlement.Settlement{}
}

// steps returns the transactions of the release of a settlement.
func (f *forked) steps(id string) []wallet.Transaction {
	f.mover.t.Helper()
	s, err := f.Engine.Settlements.Get(f.mover.t.Context(), f.Owner, id)
	f.must(err)

	if s.SweepID == "" {
		return nil
	}

	all, err := internal.Of(f.Engine).Store().TransactionsOf(f.mover.t.Context(), s.SweepID)
	f.must(err)

	return all
}

// signedSweep reports whether the sweep of a settlement is signed.
func (f *forked) signedSweep(id string) bool {
	for _, t := range f.steps(id) {
		if t.Kind == wallet.Sweep && len(t.Attempts) > 0 {
			return true
		}
	}

	return false
}

// A network passes to Amsterdam's rules while money is on its way. What was signed before, with the gas of before, and
// is executed after it: a sweep that runs out of gas is made again with what it takes now, a payout fails as reverted
// with its reason, and what follows is made by the new rules.
func TestMoneyOutAcrossTheFork(t *testing.T) {
	f := newForked(t, uint64(time.Now().Add(24*time.Hour).Unix()))
	f.Harness.Fund(chain.Pow10(18).Mul(10))

	usd := f.deposit(f.usd, chain.Units(400_000_000))
	eth := f.deposit(f.native, chain.Pow10(18))

	f.Until("the top-up is in a block", 1, func() bool { return f.Nonce(f.Master) >= 1 })

	f.way.turn(true)
	f.Until("both sweeps are signed", 1, func() bool {
		return f.signedSweep(usd.ID) && f.signedSweep(eth.ID)
	})

	known, err := f.Engine.Payouts.Create(t.Context(), payout.Params{
		Owner:       f.Owner,
		Network:     f.Network,
		Asset:       "ETH",
		Amount:      chain.Pow10(17),
		Destination: string(f.payer()),
	})
	f.must(err)

	fresh := f.Pay(chain.Pow10(17))
	for _, p := range []payout.Payout{known, fresh} {
		f.Until("the payout is signed", 0, func() bool { return f.Get(p.ID).Status == payout.Processing })
	}

	f.must(f.backend.AdjustTime(36 * time.Hour))
	f.way.turn(false)

	next := map[common.Address]uint64{}

	for _, tx := range f.way.kept {
		from, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		f.must(err)

		if tx.Nonce() < next[from] {
			continue // the same once more
		}

		f.must(f.backend.Client().SendTransaction(t.Context(), tx))
		next[from] = tx.Nonce() + 1
		waitForPool(t, f.backend, from, next[from])
	}

	f.backend.Commit()

	f.Becomes(known.ID, payout.Confirmed, 1)

	fresh = f.Becomes(fresh.ID, payout.Failed, 1)
	if fresh.FailureCode != wallet.FailReverted || fresh.FailureMessage == "" || fresh.NetworkFee == nil {
		t.Errorf("the payout to a new account is %+v", fresh)
	}

	for what, id := range map[string]string{"tokens": usd.ID, "coin": eth.ID} {
		f.Until("the "+what+" are released", 1, func() bool {
			s, err := f.Engine.Settlements.Get(t.Context(), f.Owner, id)
			f.must(err)

			return s.Status == settlement.Released
		})

		for _, step := range f.steps(id) {
			t.Logf("the release of %s: %-6s %s %s, at most %s, cost %s",
				what, step.Kind, step.State, step.Failure, step.Order.MaxFee, step.Fee)
		}
	}

	if got := f.TokenBalance(f.usd, f.Master); got != chain.Units(400_000_000) {
		t.Errorf("%s units of the token arrived", got)
	}

	sweeps := 0

	for _, step := range f.steps(usd.ID) {
		if step.Kind == wallet.Sweep {
			sweeps++
		}
	}

	if sweeps != 2 {
		t.Errorf("the tokens were swept %d times, want once by the old gas and once by the new", sweeps)
	}

	// By the new rules.
	p := f.Becomes(f.Pay(chain.Pow10(17)).ID, payout.Confirmed, 2)
	t.Logf("a payout to a new account: at most %s, cost %s", p.MaxNetworkFee, p.NetworkFee)

	again := f.deposit(f.usd, chain.Units(400_000_000))
	f.Until("tokens are released by the new rules", 1, func() bool {
		s, err := f.Engine.Settlements.Get(t.Context(), f.Owner, again.ID)
		f.must(err)

		return s.Status == settlement.Released
	})
	f.Clean()
}

// A release of coin to a master wallet that nobody used creates its account, under either rules: all but its fee
// arrives, and the audit is clean.
func TestReleaseToANewMasterBalances(t *testing.T) {
	for _, from := range []uint64{0, uint64(time.Now().Add(24 * time.Hour).Unix())} {
		f := newForked(t, from)

		s := f.deposit(f.native, chain.Pow10(18))
		f.Until("it is released", 2, func() bool {
			var err error

			s, err = f.Engine.Settlements.Get(t.Context(), f.Owner, s.ID)
			f.must(err)

			return s.Status == settlement.Released
		})

		if got := f.Balance(f.Master); s.NetReleased == nil || got != *s.NetReleased {
			t.Errorf("%s arrived, net_released is %v", got, s.NetReleased)
		}

		f.Clean()
	}
}
