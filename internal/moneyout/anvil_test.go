//go:build unix

package moneyout_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/big"
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
	"github.com/seed-8ee7f392/payments/internal/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// ethereum is an engine over a real Ethereum node that mines when told to. The engine's clock can be put forward.
type ethereum struct {
	t      *testing.T
	node   *rpc.Client
	engine *payments.Engine
	owner  event.Owner
	slug   string
	master chain.Address
	ahead  atomic.Int64
}

func newEthereum(t *testing.T) *ethereum {
	t.Helper()
	anvil := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: 1, Args: []string{"--no-mining"}})
	client, err := rpc.DialContext(t.Context(), anvil.URL)
	e := &ethereum{t: t, node: client}
	e.must(err)
	t.Cleanup(client.Close)
	driver, err := evm.New(evm.Config{Network: evm.Local(testenv.DefaultChainID), RPC: anvil.URL})
	e.must(err)
	e.slug = driver.Network().Slug
	keys, err := hdkey.New(testenv.WellKnownDevMnemonic, "")
	e.must(err)
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2000"}, time.Minute, nil)
	e.must(err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	e.engine, err = payments.New(payments.Config{
		Store: memory.New(), Drivers: []payments.ChainDriver{driver}, Signer: keys, Rates: prices, BaseURL: "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32), Log: log, Now: func() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) },
	})
	e.must(err)
	a, err := e.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	e.must(err)
	e.owner = event.Owner{AccountID: a.ID}
	master, err := e.engine.Outbox.Master(t.Context(), e.slug, a.Index)
	e.must(err)
	e.master = master.Address
	e.call("anvil_setBalance", e.master, hexutil.EncodeBig(coin(10).Big()))
	e.mine(8)
	return e
}

func (e *ethereum) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *ethereum) call(method string, args ...any) {
	e.t.Helper()
	if err := e.node.CallContext(e.t.Context(), nil, method, args...); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *ethereum) mine(blocks int) { e.call("anvil_mine", hexutil.Uint64(blocks)) }

func (e *ethereum) forward(d time.Duration) { e.ahead.Add(int64(d)) }

func (e *ethereum) balance(of chain.Address) (held chain.Amount) {
	e.t.Helper()
	var v hexutil.Big
	e.must(e.node.CallContext(e.t.Context(), &v, "eth_getBalance", of, "latest"))
	held, err := chain.AmountFromBig((*big.Int)(&v))
	e.must(err)
	return held
}

func (e *ethereum) pay(amount chain.Amount) payout.Payout {
	e.t.Helper()
	// Nobody has the key of an address like this one.
	to := common.BytesToAddress(append([]byte("payee "), []byte(time.Now().String())...))
	p, err := e.engine.Payouts.Create(e.t.Context(), payout.Params{Owner: e.owner, Network: e.slug, Asset: "ETH", Amount: amount, Destination: to.Hex()})
	e.must(err)
	return p
}

func (e *ethereum) get(id string) payout.Payout {
	e.t.Helper()
	p, err := e.engine.Payouts.Get(e.t.Context(), e.owner, id)
	e.must(err)
	if p.NetworkFee != nil && p.MaxNetworkFee.Less(*p.NetworkFee) {
		e.t.Fatalf("it cost %s, more than its maximum %s", p.NetworkFee, p.MaxNetworkFee)
	}
	return p
}

// work does what is due now, and then puts the engine's clock forward to the next look.
func (e *ethereum) work() {
	e.t.Helper()
	for range 20 {
		did, err := e.engine.Outbox.Step(e.t.Context(), e.slug)
		e.must(err)
		if !did {
			break
		}
	}
	e.forward(5 * time.Second)
}

// becomes works until a payout has a status, mining as many blocks each time as told.
func (e *ethereum) becomes(id string, status payout.Status, blocks int) payout.Payout {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		e.work()
		if p := e.get(id); p.Status == status {
			return p
		}
		if blocks > 0 {
			e.mine(blocks)
		}
	}
	e.t.Fatalf("it never became %s: %+v", status, e.get(id))
	return payout.Payout{}
}

// arrived checks that a payout arrived once, and that an audit finds nothing else in the wallet's books.
func (e *ethereum) arrived(p payout.Payout) {
	e.t.Helper()
	if got := e.balance(p.Destination); got != p.Amount {
		e.t.Errorf("%s arrived, want %s", got, p.Amount)
	}
	if got, want := e.balance(e.master), coin(10).Sub(p.Amount).Sub(*p.NetworkFee); got != want {
		e.t.Errorf("%s is left in the wallet, want %s", got, want)
	}
	a, err := e.engine.Audit(e.t.Context())
	e.must(err)
	if !a.Clean() {
		e.t.Errorf("the audit found %+v", a.Differences())
	}
	if w := a.Networks[0].Wallets; len(w) != 1 || w[0].Outside != coin(10) {
		e.t.Errorf("the wallet is %+v", w)
	}
}

// The base fee rises above what the bytes offer: they are replaced, and the replacement confirms.
func TestAnvilReplacesAStuckTransaction(t *testing.T) {
	e := newEthereum(t)
	gwei := big.NewInt(1e9)
	e.call("anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(new(big.Int).Mul(gwei, big.NewInt(10))))
	e.mine(1)
	p := e.pay(milli(100))
	e.work()
	p = e.get(p.ID)
	first := p.TxHash
	if p.Status != payout.Processing || first == "" {
		t.Fatalf("sent as %+v", p)
	}
	// The maximum is one and a half of what is offered first; a price in between can be paid by a replacement alone.
	const gas = 21_000
	base := new(big.Int).Div(new(big.Int).Mul(p.MaxNetworkFee.Big(), big.NewInt(3)), big.NewInt(4*gas))
	for range 3 {
		e.call("anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(base))
		e.mine(1)
		e.work()
		if got := e.get(p.ID); got.Status != payout.Processing || got.TxHash != first {
			t.Fatalf("at a higher base fee it became %+v", got)
		}
	}
	e.forward(4 * time.Minute)
	e.work()
	replaced := e.get(p.ID)
	if replaced.TxHash == first {
		t.Fatal("it was not replaced")
	}
	e.call("anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(base))
	e.mine(1)
	p = e.becomes(p.ID, payout.Included, 0)
	if p.TxHash != replaced.TxHash {
		t.Errorf("%s is in the block, want the replacement %s", p.TxHash, replaced.TxHash)
	}
	e.arrived(e.becomes(p.ID, payout.Confirmed, 4))
}

// A reorganisation takes the transaction out of its block, and the node forgets it: the same bytes are sent again.
func TestAnvilReorganisation(t *testing.T) {
	for _, test := range []struct {
		after payout.Status
		depth int
		mine  int
	}{{payout.Included, 1, 1}, {payout.Confirmed, 6, 4}} {
		t.Run("after "+string(test.after), func(t *testing.T) {
			e := newEthereum(t)
			p := e.pay(milli(100))
			p = e.becomes(p.ID, test.after, test.mine)
			hash := p.TxHash
			e.call("anvil_setCoinbase", common.BytesToAddress([]byte("another miner")))
			e.call("anvil_reorg", test.depth, []any{})
			if got := e.balance(p.Destination); !got.IsZero() {
				t.Fatalf("the reorganisation left %s at the destination", got)
			}
			e.forward(2 * time.Minute)
			p = e.becomes(p.ID, payout.Processing, 0)
			if p.NetworkFee != nil || !p.ConfirmedAt.IsZero() {
				t.Errorf("out of its block it is %+v", p)
			}
			p = e.becomes(p.ID, payout.Confirmed, 4)
			if p.TxHash != hash || p.NetworkFee == nil || p.ConfirmedAt.IsZero() {
				t.Errorf("confirmed as %+v, first as %s", p, hash)
			}
			e.arrived(p)
		})
	}
}
