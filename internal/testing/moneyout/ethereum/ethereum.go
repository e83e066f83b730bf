// Package ethereum is an engine over a real Ethereum node, for tests of money out: on anvil, on
// go-ethereum's node, and by several processes over one node.
//
// The node makes blocks on demand, and the engine's clock can be put forward, so that
// nothing waits for time.
package ethereum

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// Config says what a Harness is made over. URL and ChainID are required.
type Config struct {
	// URL is the node's JSON-RPC endpoint, ChainID its chain.
	URL     string
	ChainID uint64
	// Tokens are enabled beside ether.
	Tokens []chain.Asset
	// Store defaults to one in memory.
	Store payments.Store
	// HTTP carries the engine's calls of the node. Defaults to the driver's own.
	HTTP *http.Client
	// Process is the engine's name among those over one store. Defaults to a random one.
	Process string
	// Now is the engine's clock. Defaults to the real time, which Harness.Forward puts forward.
	Now func() time.Time
	// AccountID is the merchant, who is there already. Defaults to a new one with Settings.
	AccountID string
	Settings  account.Settings
	// Mine makes blocks, and Fund gives an address coins out of nothing. Default to anvil's.
	Mine func(blocks int)
	Fund func(to chain.Address, amount chain.Amount)
}

// Harness is an engine over a node with one merchant.
type Harness struct {
	Engine *payments.Engine
	// Node calls the node beside the engine.
	Node    *rpc.Client
	Network string // slug
	Account account.Account
	Owner   event.Owner
	// Master is the merchant's wallet.
	Master chain.Address

	t      testing.TB
	config Config
	ahead  atomic.Int64
	funded chain.Amount
}

// New returns an engine over a node. The platform fee goes to FeeAddress.
func New(t testing.TB, c Config) *Harness {
	t.Helper()
	w := &Harness{t: t, config: c}
	node, err := rpc.DialContext(t.Context(), c.URL)
	w.Must(err)
	w.Node = node
	t.Cleanup(node.Close)

	driver, err := evm.New(
		evm.Config{Network: evm.Local(c.ChainID, c.Tokens...), RPC: c.URL, HTTPClient: c.HTTP},
	)
	w.Must(err)
	w.Network = driver.Network().Slug
	keys, err := hdkey.New(testenv.WellKnownDevMnemonic, "")
	w.Must(err)

	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}

	if c.Store == nil {
		c.Store = memory.New()
	}

	if c.Now == nil {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	}

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2000", "USDC/USD": "1"}, time.Minute, c.Now)
	w.Must(err)
	w.Engine, err = payments.New(payments.Config{
		Store:        c.Store,
		Drivers:      []payments.ChainDriver{driver},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		Log:          log,
		Now:          c.Now,
		Process:      c.Process,
		FeeAddresses: map[string]string{w.Network: string(FeeAddress)},
	})
	w.Must(err)

	if c.AccountID == "" {
		c.Settings.Name = "Corner Shop"
		w.Account, err = w.Engine.Accounts.CreateAccount(t.Context(), c.Settings)
	} else {
		w.Account, err = w.Engine.Accounts.Get(t.Context(), c.AccountID)
	}

	w.Must(err)
	w.Owner = event.Owner{AccountID: w.Account.ID}
	master, err := internal.Of(w.Engine).Transactions.MasterWallet(t.Context(), w.Network, w.Account.Index)
	w.Must(err)
	w.Master = master.Address

	return w
}

// FeeAddress receives the platform fee. Nobody has its key.
var FeeAddress = chain.Address(common.BytesToAddress([]byte("platform fee")).Hex())

// Must ends the test when there is an error.
func (w *Harness) Must(err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatal(err)
	}
}

// Call makes one call of the node and stores what it answers in result, unless that is nil.
func (w *Harness) Call(result any, method string, args ...any) {
	w.t.Helper()

	if err := w.Node.CallContext(w.t.Context(), result, method, args...); err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
}

// Mine makes blocks.
func (w *Harness) Mine(blocks int) {
	w.t.Helper()

	if w.config.Mine != nil {
		w.config.Mine(blocks)
		return
	}

	w.Call(nil, "anvil_mine", hexutil.Uint64(blocks))
}

// Fund gives the master wallet coins from elsewhere, and buries them.
func (w *Harness) Fund(amount chain.Amount) {
	w.t.Helper()

	w.funded = w.funded.Add(amount)
	if w.config.Fund != nil {
		w.config.Fund(w.Master, amount)
	} else {
		w.Call(nil, "anvil_setBalance", w.Master, hexutil.EncodeBig(w.Balance(w.Master).Add(amount).Big()))
	}

	w.Mine(8)
}

// Forward puts the engine's clock forward.
func (w *Harness) Forward(d time.Duration) { w.ahead.Add(int64(d)) }

// Balance is what an address holds of ether.
func (w *Harness) Balance(of chain.Address) chain.Amount {
	w.t.Helper()

	var v hexutil.Big
	w.Call(&v, "eth_getBalance", of, "latest")
	held, err := chain.AmountFromBig((*big.Int)(&v))
	w.Must(err)

	return held
}

// Nonce is how many transactions an address has in blocks.
func (w *Harness) Nonce(of chain.Address) uint64 {
	w.t.Helper()

	var n hexutil.Uint64
	w.Call(&n, "eth_getTransactionCount", of, "latest")

	return uint64(n)
}

// Params are those of a payout of ether to a new address.
func (w *Harness) Params(amount chain.Amount) payout.Params {
	return payout.Params{
		Owner:       w.Owner,
		Network:     w.Network,
		Asset:       "ETH",
		Amount:      amount,
		Destination: string(w.Stranger()),
	}
}

// Stranger returns a new address. Nobody has its key.
func (w *Harness) Stranger() chain.Address {
	return chain.Address(common.BytesToAddress([]byte("stranger" + internal.Of(w.Engine).NewID())).Hex())
}

// Pay asks for a payout of ether to a new address.
func (w *Harness) Pay(amount chain.Amount) payout.Payout {
	w.t.Helper()
	p, err := w.Engine.Payouts.Create(w.t.Context(), w.Params(amount))
	w.Must(err)

	return p
}

// Get returns a payout, which must not have cost more than it may.
func (w *Harness) Get(id string) payout.Payout {
	w.t.Helper()
	p, err := w.Engine.Payouts.Get(w.t.Context(), w.Owner, id)
	w.Must(err)

	if p.NetworkFee != nil && p.Conflict.TxHash == "" && p.MaxNetworkFee.Less(*p.NetworkFee) {
		w.t.Fatalf("it cost %s, more than its maximum %s", p.NetworkFee, p.MaxNetworkFee)
	}

	return p
}

// Work does what is due now, and then puts the engine's clock forward to the next look.
func (w *Harness) Work() {
	w.t.Helper()

	for range 20 {
		read, err := internal.Of(w.Engine).Follow(w.t.Context(), w.Network)
		if errors.Is(err, fault.Stopped) { // deeper than final: a person has to look into it
			read, err = true, w.Engine.Resume(w.t.Context(), w.Network)
		}

		w.Must(err)
		planned, err := internal.Of(w.Engine).Sweeper.Step(w.t.Context(), w.Network)
		w.Must(err)
		sent, err := internal.Of(w.Engine).Transactions.Step(w.t.Context(), w.Network)
		w.Must(err)

		if !read && !planned && !sent {
			break
		}
	}

	w.Forward(5 * time.Second)
}

// Until works until the condition holds, making that many blocks each time.
func (w *Harness) Until(what string, blocks int, done func() bool) {
	w.t.Helper()

	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		w.Work()

		if done() {
			return
		}

		if blocks > 0 {
			w.Mine(blocks)
		}
	}

	w.t.Fatalf("never came true: %s", what)
}

// Live runs the engine as a service does, followers and all, with a block at each look, until the
// condition holds.
func (w *Harness) Live(what string, done func() bool) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), time.Minute)

	ended := make(chan error)
	go func() { ended <- w.Engine.Run(ctx) }()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()

	for !done() && ctx.Err() == nil {
		<-tick.C
		w.Mine(1)
	}

	late := ctx.Err() != nil

	stop()
	w.Must(<-ended)

	if late {
		w.t.Fatalf("never came true: %s", what)
	}
}

// Follow has the network read up to its newest block, as an audit compares what was read.
func (w *Harness) Follow() {
	w.t.Helper()

	var tip hexutil.Uint64
	w.Call(&tip, "eth_blockNumber")
	w.Live("the network is read", func() bool {
		c, followed, err := internal.Of(w.Engine).Store().Cursor(w.t.Context(), w.Network)
		w.Must(err)

		return followed && c.At.Height >= uint64(tip)
	})
}

// Becomes works until a payout has a status, making that many blocks each time.
func (w *Harness) Becomes(id string, status payout.Status, blocks int) (p payout.Payout) {
	w.t.Helper()
	w.Until("payout is "+string(status), blocks, func() bool { p = w.Get(id); return p.Status == status })

	return p
}

// Reorganised takes a payout that is in a block out of it: its status follows, the same bytes are
// sent again, and it confirms.
func (w *Harness) Reorganised(p payout.Payout, reorganise func()) {
	w.t.Helper()

	hash := p.TxHash

	reorganise()

	if got := w.Balance(p.Destination); !got.IsZero() {
		w.t.Fatalf("the reorganisation left %s at the destination", got)
	}

	w.Forward(2 * time.Minute)

	p = w.Becomes(p.ID, payout.Processing, 0)
	if p.NetworkFee != nil || !p.ConfirmedAt.IsZero() {
		w.t.Errorf("out of its block it is %+v", p)
	}

	p = w.Becomes(p.ID, payout.Confirmed, 4)
	if p.TxHash != hash || p.NetworkFee == nil || p.ConfirmedAt.IsZero() {
		w.t.Errorf("confirmed as %+v, first as %s", p, hash)
	}

	w.Arrived(p)
}

// Arrived checks that the only payout of the wallet arrived once, and that an audit finds nothing
// else in its records.
func (w *Harness) Arrived(p payout.Payout) {
	w.t.Helper()

	if got := w.Balance(p.Destination); got != p.Amount {
		w.t.Errorf("%s arrived, want %s", got, p.Amount)
	}

	if n := w.Nonce(w.Master); n != 1 {
		w.t.Errorf("the wallet made %d transactions, want 1", n)
	}

	if got, want := w.Balance(w.Master), w.funded.Sub(p.Amount).Sub(*p.NetworkFee); got != want {
		w.t.Errorf("%s is left in the wallet, want %s", got, want)
	}

	w.Clean()
}

// Clean checks that an audit finds no difference, and that what came from elsewhere into the wallet
// is what Fund gave it.
func (w *Harness) Clean() {
	w.t.Helper()
	a, err := w.Engine.Audit(w.t.Context())
	w.Must(err)

	for _, d := range a.Differences() {
		w.t.Errorf("audit: %s: %s %+v", d.Kind, d.Message, d.Records)
	}

	if !a.Clean() {
		w.t.Error("the audit is not clean")
	}

	for _, held := range a.Networks[0].Wallets {
		if held.Address == w.Master && held.Asset == "ETH" {
			if held.Outside != w.funded {
				w.t.Errorf("the audit finds %s from elsewhere, want %s", held.Outside, w.funded)
			}

			return
		}
	}

	w.t.Error("the wallet was not audited")
}
