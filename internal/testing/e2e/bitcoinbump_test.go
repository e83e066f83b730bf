//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// bumpStage is a service on a node whose miner leaves out what pays less than 5 satoshi per vB;
// ours are 10 at least.
type bumpStage struct {
	*bitcoinStage
	node   bitcoindHarness
	looked atomic.Int64 // how often the service asked what a waiting transaction pays
}

func stageBump(t *testing.T, config bitcoin.Config) *bumpStage {
	t.Helper()

	if testing.Short() {
		t.Skip("needs bitcoind; run without -short")
	}

	n := bitcoindHarness{
		testenv.Bitcoind(
			t,
			testenv.BitcoindOptions{
				Args: []string{"-keypool=10", "-blockmintxfee=0.00005", "-spendzeroconfchange=0"},
			},
		),
	}
	n.call(t, nil, "createwallet", "payers")
	n.mine(t, 120)
	s := &bumpStage{node: n}
	config.Network, config.RPC, config.CPFPAfter, config.MinFeeRate = bitcoin.Regtest, n.url(), time.Millisecond, 10_000
	config.HTTPClient = &http.Client{Transport: s}
	driver, err := bitcoin.New(config)
	must(t, err)
	feeTo := n.address(t)
	s.bitcoinStage = &bitcoinStage{
		service: start(t, driver, feeTo),
		node:    n,
		feeTo:   chain.Address(feeTo),
		slug:    bitcoin.Regtest.Slug,
	}
	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), s.slug, s.account.Index)
	must(t, err)

	s.master = master.Address
	for range 2 {
		n.pay(t, s.master, chain.Units(20_000_000))
	}

	s.mineUntil("the master wallet's balance", func() (bool, string) {
		v := s.balance()
		return v == chain.Units(40_000_000), v.String()
	})

	return s
}

// RoundTrip counts what the service asks.
func (s *bumpStage) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	if bytes.Contains(body, []byte("getmempoolancestors")) {
		s.looked.Add(1)
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	return http.DefaultTransport.RoundTrip(r)
}

func (s *bumpStage) in(t *testing.T) *bumpStage {
	return &bumpStage{bitcoinStage: s.bitcoinStage.at(t), node: s.node}
}

// cheap makes an invoice and pays it at a satoshi per vB; the miner leaves that out.
func (s *bumpStage) cheap() (inv invoiceView, parent string) {
	s.t.Helper()
	inv = s.order("500", "BTC", s.slug)
	s.node.call(
		s.t, &parent, "sendtoaddress", inv.Options[0].Address,
		json.Number(amount(s.t, inv.Options[0].AmountDue).Decimal(8).String()), "", "", false, true,
		nil, "unset", nil, 1,
	)
	s.await(inv.ID, "seen in the pool", func(v invoiceView) bool { return v.Status == "pending" })

	return inv, parent
}

// spendAgain has the wallet spend what a transaction of its own spends, to itself and at a fee. Its
// bumpfee refuses to when there are children.
func (n bitcoindHarness) spendAgain(t *testing.T, hash string, fee chain.Amount) {
	t.Helper()

	type output struct {
		Txid string `json:"txid"`
		Vout int    `json:"vout"`
	}

	var tx struct{ Vin []output }
	n.call(t, &tx, "getrawtransaction", hash, 1)

	var sum chain.Amount

	for _, in := range tx.Vin {
		var made struct {
			Vout []struct{ Value json.Number }
		}
		n.call(t, &made, "getrawtransaction", in.Txid, 1)
		v, err := chaindata.AmountFromDecimalFloor(
			decimal.RequireFromString(made.Vout[in.Vout].Value.String()), 8,
		)
		must(t, err)

		sum = sum.Add(v)
	}

	var raw string
	n.call(
		t, &raw, "createrawtransaction", tx.Vin,
		[]map[string]json.Number{{n.address(t): json.Number(sum.Sub(fee).Decimal(8).String())}},
	)

	var signed struct{ Hex string }
	n.call(t, &signed, "signrawtransactionwithwallet", raw)
	n.call(t, nil, "sendrawtransaction", signed.Hex, 0)
}

// without returns the one transaction in the pool beside those named.
func (n bitcoindHarness) without(t *testing.T, known ...string) string {
	t.Helper()

	pool := slices.DeleteFunc(n.pool(t), func(hash string) bool { return slices.Contains(known, hash) })
	if len(pool) != 1 {
		t.Fatalf("in the pool are also %v", pool)
	}

	return pool[0]
}

// child waits until the payment is bumped, and returns the row of the transaction that does.
func (s *bumpStage) child(inv invoiceView, parent string) (row wallet.Transaction) {
	s.t.Helper()
	payment := s.payments(inv.ID)[0].ID
	eventually(s.t, "a child of "+parent+" in the pool", func() (bool, string) {
		pool, rows := s.node.pool(s.t), s.bumps(payment)
		if len(rows) == 1 {
			row = rows[0]
		}

		return len(rows) == 1 && row.TxHash != "" &&
				slices.Contains(pool, row.TxHash), fmt.Sprintf(
				"%v %+v", pool, rows,
			)
	})

	if row.Kind != wallet.Bump || row.Order.From.Address != s.master ||
		!slices.Contains(
			row.Attempts[0].Signed.Inputs,
			chain.Outpoint{TxHash: parent, Vout: row.Order.Bumps.Outpoint.Vout},
		) {
		s.t.Errorf("it is bumped by %+v", row)
	}

	return row
}

func (s *bumpStage) bumps(payment string) []wallet.Transaction {
	s.t.Helper()
	rows, err := s.store.TransactionsOf(s.t.Context(), payment)
	must(s.t, err)

	return rows
}

// unreserved fails unless nothing of the wallet is promised or held any more.
func (s *bumpStage) unreserved() {
	s.t.Helper()
	eventually(s.t, "the wallet's coins and balance are free", func() (bool, string) {
		rows, err := s.store.BalancesOf(s.t.Context(), s.slug)
		must(s.t, err)
		coins, err := s.store.Coins(s.t.Context(), s.slug, s.master)
		must(s.t, err)

		free := !slices.ContainsFunc(coins, func(c wallet.Coin) bool { return c.ReservedBy != "" })
		for _, b := range rows {
			free = free && len(b.Reservations) == 0
		}

		return free, fmt.Sprintf("%+v %+v", rows, coins)
	})
}

// A payer pays the miner too little. The merchant's wallet pays for it, the deposit stays whole,
// and everything goes its way.
func TestBitcoinBump(t *testing.T) {
	t.Parallel()

	s := stageBump(t, bitcoin.Config{CPFPMaxFee: 50_000})
	t.Run("both in the next block", func(t *testing.T) {
		s := s.in(t)
		before := s.node.holds(t, s.master)
		inv, parent := s.cheap()
		row := s.child(inv, parent)
		s.audited()
		s.node.mine(t, 1)

		if left := s.node.pool(t); len(left) != 0 {
			t.Fatalf("%v are left in the pool", left)
		}

		s.mineUntil("the invoice paid", func() (bool, string) {
			v := s.await(inv.ID, "read", func(invoiceView) bool { return true })
			return v.Status == "paid" && len(v.Flags) == 0, fmt.Sprintf("%+v", v)
		})

		p := s.settled(inv.ID, 1)[0]
		if p.TxHash != parent {
			t.Errorf("the payment is %s, not the payer's %s", p.TxHash, parent)
		}

		rows := s.bumps(p.ID)

		fee := rows[0].Fee
		if len(rows) != 1 || rows[0].ID != row.ID || rows[0].State != wallet.Confirmed || fee.IsZero() ||
			chain.Units(50_000).Less(fee) {
			t.Errorf("bumped by %+v", rows)
		}

		set := p.Settlement
		if gross := amount(
			t, set.Gross,
		); gross != amount(t, inv.Options[0].AmountDue) ||
			gross != amount(t, set.NetReleased).Add(amount(t, set.FeePaid)).Add(amount(t, set.NetworkFees)) {
			t.Errorf("the settlement does not balance: %+v", set)
		}

		if got := s.node.holds(t, s.master).Add(fee).Sub(before); got != amount(t, set.NetReleased) {
			t.Errorf(
				"the wallet got %s beside the bump's fee of %s, the settlement says %s",
				got, fee, set.NetReleased,
			)
		}

		if left := s.node.holds(t, inv.Options[0].Address); !left.IsZero() {
			t.Errorf("%s is left at the deposit address", left)
		}

		s.unreserved()
		s.audited()
	})
	t.Run("replaced by the payer", func(t *testing.T) {
		s := s.in(t)
		before := s.node.holds(t, s.master)
		inv, parent := s.cheap()
		row := s.child(inv, parent)
		s.node.spendAgain(t, parent, chain.Units(100_000))
		eventually(t, "the payment dropped", func() (bool, string) {
			p := s.payments(inv.ID)
			return len(p) == 1 && p[0].Status == "dropped", fmt.Sprintf("%+v", p)
		})
		s.await(inv.ID, "open again", func(v invoiceView) bool { return v.Status == "open" })
		s.mineUntil("the bump dead", func() (bool, string) {
			now, err := s.store.Transaction(t.Context(), row.ID)
			must(t, err)

			return now.Failure == wallet.FailConflict, fmt.Sprintf("%+v", now)
		})
		s.unreserved()

		if now := s.node.holds(t, s.master); now != before {
			t.Errorf("the wallet had %s and has %s", before, now)
		}

		s.audited()
	})
	t.Run("the payment alone in a block", func(t *testing.T) {
		s := s.in(t)
		inv, parent := s.cheap()
		other := s.order("300", "BTC", s.slug)
		row := s.child(inv, parent)
		s.node.pay(t, other.Options[0].Address, amount(t, other.Options[0].AmountDue))
		s.await(other.ID, "seen in the pool", func(v invoiceView) bool { return v.Status == "pending" })
		s.node.call(
			t, nil, "generateblock", s.node.address(t),
			[]string{parent, s.node.without(t, parent, row.TxHash)},
		)
		s.node.mineEmpty(t, 2)
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })
		// The other payment does not wait for the one whose bump is on its way.
		eventually(t, "a sweep of the other payment", func() (bool, string) {
			p := s.payments(other.ID)

			return len(p) == 1 && p[0].Settlement != nil &&
					p[0].Settlement.SweepTx != "", fmt.Sprintf(
					"%+v", p,
				)
		})

		if p := s.payments(
			inv.ID,
		); p[0].Settlement == nil || p[0].Settlement.Status != "pending" ||
			p[0].Settlement.SweepTx != "" {
			t.Errorf("while its bump waits the payment is %+v, settled by %+v", p[0], p[0].Settlement)
		}

		s.audited()
		s.settled(other.ID, 1)
		s.settled(inv.ID, 1)
		s.unreserved()
		s.audited()
	})
	t.Run("a reorganisation takes both away", func(t *testing.T) {
		s := s.in(t)
		inv, parent := s.cheap()
		row := s.child(inv, parent)
		paidIn := s.node.height(t) + 1
		s.node.mine(t, 1)
		s.node.rewind(t, 1)

		if pool := s.node.pool(t); len(pool) != 2 {
			t.Fatalf("back in the pool are %v", pool)
		}

		s.node.mine(t, 2)
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })
		eventually(t, "a sweep in the pool", func() (bool, string) {
			pool := s.node.pool(t)
			return len(pool) == 1, strings.Join(pool, " ")
		})

		first := s.settled(inv.ID, 1)[0]
		s.audited()

		s.node.rewind(t, int(s.node.height(t)-paidIn+1))
		s.await(
			inv.ID, "not paid any more",
			func(v invoiceView) bool { return v.Status == "open" || v.Status == "pending" },
		)
		s.mineUntil("released again", func() (bool, string) {
			p := s.payments(inv.ID)

			return len(p) == 1 && p[0].Status == "confirmed" && p[0].Settlement != nil &&
					p[0].Settlement.Status == "released", fmt.Sprintf(
					"%+v", p,
				)
		})

		again := s.settled(inv.ID, 1)[0]
		if again.ID != first.ID || again.Settlement.SweepTx != first.Settlement.SweepTx {
			t.Errorf(
				"payment %s swept by %s became %s swept by %s",
				first.ID, first.Settlement.SweepTx, again.ID, again.Settlement.SweepTx,
			)
		}

		eventually(t, "the child that bumped is confirmed again", func() (bool, string) {
			rows := s.bumps(first.ID)
			done := len(rows) == 1 && rows[0].ID == row.ID && rows[0].State == wallet.Confirmed

			return done, fmt.Sprintf("%+v", rows)
		})
		s.unreserved()
		s.audited()
	})
}

// Without Config.BumpMaxFee nothing is looked at, and below what it takes nothing is done.
func TestBitcoinBumpIsOffOrTooDear(t *testing.T) {
	t.Parallel()

	for name, most := range map[string]uint64{"off": 0, "too dear": 2_000} {
		t.Run(name, func(t *testing.T) {
			s := stageBump(t, bitcoin.Config{CPFPMaxFee: most})
			inv, parent := s.cheap()
			payment := s.payments(inv.ID)[0].ID
			s.mineUntil("three blocks read", func() (bool, string) {
				cursor, _, err := s.store.Cursor(t.Context(), s.slug)
				must(t, err)

				looked := s.looked.Load()

				return cursor.At.Height >= 125 &&
						(most == 0 || looked >= 2), fmt.Sprintf(
						"block %d, looked %d times", cursor.At.Height, looked,
					)
			})

			if pool := s.node.pool(t); len(pool) != 1 || pool[0] != parent {
				t.Errorf("in the pool are %s", strings.Join(pool, " "))
			}

			if rows := s.bumps(payment); len(rows) != 0 || most == 0 && s.looked.Load() != 0 {
				t.Errorf("looked %d times, bumped by %+v", s.looked.Load(), rows)
			}

			s.unreserved()
			s.audited()
		})
	}
}

// btcd does not say what waiting transactions pay, and the service says so.
func TestBitcoinBumpOnBtcd(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs btcd; run without -short")
	}

	n := startBtcd(t)
	driver, err := bitcoin.New(
		bitcoin.Config{
			Network:    bitcoin.Regtest,
			RPC:        n.url(),
			CPFPMaxFee: 50_000,
			CPFPAfter:  time.Millisecond,
		},
	)
	must(t, err)
	s := start(t, driver, n.address(t))
	inv := s.order("500", "BTC", bitcoin.Regtest.Slug)
	n.pay(t, inv.Options[0].Address, amount(t, inv.Options[0].AmountDue))
	eventually(t, "the log says that it cannot be done", func() (bool, string) {
		logs := s.logs.String()

		return strings.Contains(logs, "payments cannot be bumped") &&
			strings.Contains(logs, "getmempoolentry"), logs
	})
	n.mine(t, 2)
	s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })
}
