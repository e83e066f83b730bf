package moneyout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// hasRecord checks that a difference names a record.
func hasRecord(t *testing.T, d audit.Difference, object, id string) {
	t.Helper()

	if !slices.ContainsFunc(
		d.Records, func(r audit.Record) bool { return r.Object == object && r.ID == id },
	) {
		t.Errorf("%s does not name %s %s: %+v", d.Kind, object, id, d.Records)
	}
}

func TestAuditFindsMoneyThatIsMissing(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		s := w.deposited("SIM", milli(500))
		w.clean(1, 0)
		w.steal(s.Deposit, milli(200))
		w.follow()
		d := w.among(audit.MoneyMissing, audit.ForeignTransaction)
		hasRecord(t, d, "payment", s.PaymentID)
		w.check("expected", d.Expected, milli(500))

		if !d.Found.Less(milli(300)) || d.Network != network {
			t.Errorf("found as %+v", d)
		}
	})
}

// What was taken by hand from a master wallet that holds only what releases brought is not missing once that is
// acknowledged.
func TestAuditIsCleanOnceAWithdrawalIsAcknowledged(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.deposited("SIM", milli(500))
		w.until("it is released", func() bool { return w.settlements()[0].Status == settlement.Released })

		hash := w.spend(
			w.party(), chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: milli(200)},
		)

		w.follow()
		w.among(audit.MoneyMissing, audit.ForeignTransaction)
		w.must(w.engine.Acknowledge(t.Context(), network, hash, payments.Foreign))
		w.clean(0, 0)
	})
}

func TestAuditFindsMoneyThatNothingExplains(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		s := w.deposited("SIM", milli(500))
		w.chain.Fund(s.Deposit.Address, "SIM", milli(1))
		d := w.found(audit.MoneyUnexplained, s.Deposit.Address)
		hasRecord(t, d, "payment", s.PaymentID)
		w.check("expected", d.Expected, milli(500))
		w.check("found", d.Found, milli(501))
	})
}

// A master wallet's money from elsewhere is stated, and is no difference.
func TestAuditReportsMoneyFromElsewhere(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 5)
		p := w.becomes(w.pay("SIM", milli(100)).ID, payout.Confirmed)
		w.chain.Pay(w.master(), "SIM", coin(2))
		w.chain.Mine(1)
		w.clean(3, 5)
		a, err := w.engine.Audit(t.Context())
		w.must(err)

		for _, m := range a.Networks[0].Wallets {
			if m.Asset == "SIM" {
				w.check("out", m.Out, p.Amount.Add(*p.NetworkFee))
				w.check("on chain", m.OnChain, w.chain.Balance(w.master(), "SIM"))

				if m.Owner != w.owner || m.Address != w.master() {
					t.Errorf("the wallet is %+v", m)
				}
			}
		}
	})
}

func TestAuditFindsRecordsThatDisagree(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		tamper func(ctx context.Context, tx store.Tx, w *harness, p payout.Payout) (id string, err error)
	}{
		"a payout's amount": {
			"payout",
			func(ctx context.Context, tx store.Tx, _ *harness, p payout.Payout) (string, error) {
				p.Amount = p.Amount.Add(chain.Units(1))
				return p.ID, tx.PutPayout(ctx, &p)
			},
		},
		"a payout's destination": {
			"payout",
			func(ctx context.Context, tx store.Tx, w *harness, p payout.Payout) (string, error) {
				p.Destination = w.chain.NewAddress()
				return p.ID, tx.PutPayout(ctx, &p)
			},
		},
		"a payout's status": {
			"payout",
			func(ctx context.Context, tx store.Tx, _ *harness, p payout.Payout) (string, error) {
				p.Status, p.FailureCode = payout.Failed, "canceled"
				return p.ID, tx.PutPayout(ctx, &p)
			},
		},
		"a payout's highest fee": {
			"payout",
			func(ctx context.Context, tx store.Tx, _ *harness, p payout.Payout) (string, error) {
				p.MaxNetworkFee = chain.Units(1)
				return p.ID, tx.PutPayout(ctx, &p)
			},
		},
		"a settlement's gross": {
			"settlement",
			func(ctx context.Context, tx store.Tx, w *harness, _ payout.Payout) (string, error) {
				s := w.settlements()[0]
				s.Gross = s.Gross.Add(chain.Units(1))

				return s.ID, tx.PutSettlements(ctx, &s)
			},
		},
		"a settlement's fee": {
			"settlement",
			func(ctx context.Context, tx store.Tx, w *harness, _ payout.Payout) (string, error) {
				s := w.settlements()[0]
				s.FeePaid = s.FeePaid.Add(chain.Units(1))

				return s.ID, tx.PutSettlements(ctx, &s)
			},
		},
		"what a settlement brought": {
			"settlement",
			func(ctx context.Context, tx store.Tx, w *harness, _ payout.Payout) (string, error) {
				s := w.settlements()[0]
				more := s.NetReleased.Add(chain.Units(1))
				s.NetReleased = &more

				return s.ID, tx.PutSettlements(ctx, &s)
			},
		},
		"what a release claimed": {
			"settlement",
			func(ctx context.Context, tx store.Tx, w *harness, _ payout.Payout) (string, error) {
				s := w.settlements()[0]

				r, err := tx.Sweep(ctx, s.SweepID)
				if err != nil {
					return "", err
				}

				r.Claims = []settlement.Brought{{SweepID: "none", Amount: chain.Units(1)}}

				return s.ID, tx.PutSweep(ctx, &r)
			},
		},
		"a settlement's network fees": {
			"account",
			func(ctx context.Context, tx store.Tx, w *harness, _ payout.Payout) (string, error) {
				s := w.settlements()[0]
				s.NetworkFees = s.NetworkFees.Add(chain.Units(1))

				return s.Owner.AccountID, tx.PutSettlements(ctx, &s)
			},
		},
		"a second transaction of a payout": {
			"payout",
			func(ctx context.Context, tx store.Tx, w *harness, p payout.Payout) (string, error) {
				t, err := tx.Transaction(ctx, p.TransactionID)
				if err != nil {
					return "", err
				}

				t.ID, t.Version, t.Attempts = internal.Of(w.engine).NewID(), 0, nil

				return p.ID, tx.PutTransaction(ctx, &t)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
				w.fund(1, 0)
				w.deposited("SIM", milli(500))
				w.until(
					"it is released",
					func() bool { return w.settlements()[0].Status == settlement.Released },
				)
				p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed)
				w.clean(1, 0)

				var id string

				w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
					id, err = test.tamper(ctx, tx, w, p)
					return err
				}))
				hasRecord(t, w.found(audit.RecordsDisagree, ""), test.object, id)
			})
		})
	}
}

// A confirmed payment that lost its settlement, and a payment that lost its record.
func TestAuditFindsAPaymentWithoutASettlement(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		s := w.deposited("SIM", milli(500))
		w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			p, err := tx.PaymentByID(ctx, s.PaymentID)
			if err != nil {
				return err
			}

			p.ID, p.Version, p.TxIndex = internal.Of(w.engine).
				NewID(),
				0, 7 // a second record of the same money

			return tx.PutPayments(ctx, &p)
		}))
		a, err := w.engine.Audit(t.Context())
		w.must(err)

		kinds := []audit.Kind{}
		for _, d := range a.Differences() {
			kinds = append(kinds, d.Kind)
		}

		slices.Sort(kinds)

		if !slices.Equal(kinds, []audit.Kind{audit.MoneyMissing, audit.RecordsDisagree}) {
			t.Errorf("found %v", kinds)
		}
	})
}

func TestAuditFindsAReservationThatWasLeft(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed)
		w.clean(1, 0)
		w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return internal.Of(
				w.engine,
			).Transactions.ReserveTx(
				ctx, tx, w.owner, network, w.master(), p.AssetID, p.ID, milli(3),
			)
		}))
		d := w.found(audit.ReservationLeft, w.master())
		w.check("reserved", d.Found, milli(3))
		hasRecord(t, d, "payout", p.ID)
	})
}

// An audit without all its answers is none.
func TestAuditNeedsItsNode(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed)

		for _, m := range []sim.Method{sim.MethodBalances, sim.MethodNonce} {
			w.chain.FailNext(m, sim.Unavailable(), 1)

			if a, err := w.engine.Audit(
				t.Context(),
			); !errors.Is(err, fault.Unavailable) ||
				len(a.Networks) != 0 {
				t.Errorf("without %s: %+v, %v", m, a, err)
			}
		}

		w.clean(1, 0)
	})
}

// blind is a network whose driver only reads blocks.
type blind struct {
	chain.Driver
	chain.BlockScanner
}

func TestAuditSaysWhatItCouldNotCheck(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.change = func(c *payments.Config) { c.Drivers = []payments.ChainDriver{blind{w.chain, w.chain}} }
		a, err := w.boot().Audit(t.Context())
		w.must(err)

		if a.Clean() || a.Networks[0].Unchecked == "" || len(a.Differences()) != 0 {
			t.Errorf("found %+v", a)
		}
	})
}

// What is on its way (detected, signed, waiting for a block, in a block that the records do not
// know of yet, out of one that they still name) is no difference, and the money from elsewhere is
// the same all along.
func TestAuditInTheMiddle(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)

		audits := 0
		check := func() {
			a, err := w.engine.Audit(t.Context())
			w.must(err)

			audits++
			for _, d := range a.Differences() {
				t.Fatalf("audit %d: %s: %s %+v", audits, d.Kind, d.Message, d.Records)
			}

			outside := map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(100)}
			for _, m := range a.Networks[0].Wallets {
				w.check("money from elsewhere in "+m.Asset, m.Outside, outside[m.Asset])
			}

			if t.Failed() {
				t.Fatalf("in audit %d", audits)
			}
		}
		p := w.pay("SIM", milli(1))

		for range 10 {
			check()
			w.readAll(w.engine)
			check()

			_, err := internal.Of(w.engine).Transactions.Step(t.Context(), network)
			w.must(err)
			check()
			w.chain.Mine(1)
			check() // the chain is ahead of the records
			w.pass(3 * time.Second)
		}

		w.becomes(p.ID, payout.Confirmed)
		p = w.becomes(w.pay("SIM", milli(1)).ID, payout.Included)
		w.chain.Fork(sim.Fork{Depth: 1, Fate: sim.DropOrphan})

		if _, err := w.engine.Audit(t.Context()); !errors.Is(err, fault.Unavailable) ||
			w.get(p.ID).Status != payout.Included {
			t.Fatalf("the records know of the reorganisation already: %v", err)
		}

		w.readAll(w.engine)

		if check(); w.get(p.ID).Status != payout.Processing {
			t.Fatal("the reorganisation was read, and the records do not know of it")
		}

		w.becomes(p.ID, payout.Confirmed)
		w.deposited("USDX", dollars(400))
		w.live(
			"the release ended",
			func() bool { check(); return w.settlements()[0].Status == settlement.Released },
		)

		if audits < 40 {
			t.Errorf("only %d audits", audits)
		}

		w.clean(1, 100)
	})
}

// steal moves native coin away from an address of ours with its own key, behind the engine's back.
func (w *harness) steal(from chain.Party, amount chain.Amount) {
	w.t.Helper()
	w.spend(from, chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: amount})
}

// asset returns an asset of the network.
func (w *harness) asset(symbol string) chain.Asset {
	w.t.Helper()

	asset, ok := w.chain.Network().Asset(symbol)
	if !ok {
		w.t.Fatalf("no asset %s", symbol)
	}

	return asset
}

// spend pays from an address of ours with its own key, behind the engine's back, and returns the hash.
func (w *harness) spend(from chain.Party, to chain.Output) string {
	w.t.Helper()
	ctx := w.t.Context()
	nonce, err := w.chain.Nonce(ctx, from.Address)
	w.must(err)

	order := chain.Order{From: from, Outputs: []chain.Output{to}, MaxFee: milli(10), Nonce: nonce}
	u, err := w.chain.Build(ctx, order)
	w.must(err)
	policy := w.policy
	w.policy = nil
	signatures, err := w.signer.Sign(
		ctx, chain.SignRequest{Network: network, Unsigned: u.Raw, Payloads: u.Payloads},
	)
	w.must(err)
	w.policy = policy
	key, err := w.signer.PublicKey(ctx, from.Key)
	w.must(err)
	signed, err := w.chain.Assemble(order, u, []chain.PublicKey{key}, signatures)
	w.must(err)
	w.must(w.chain.Broadcast(ctx, signed))
	w.chain.Mine(5)

	return signed.TxHash
}

// A payment that a fork took away shows what the pool says of it. Its settlement, which moved nothing, keeps
// what was confirmed: the audit finds no difference in that.
func TestAuditOfAPaymentThatLeftTheChain(t *testing.T) {
	inTime(
		t,
		account.Settings{ManualRelease: true},
		sim.Config{NoFinality: true},
		func(t *testing.T, w *harness) {
			d, err := w.engine.Invoices.CreateDeposit(
				t.Context(), invoice.DepositParams{Owner: w.owner, Network: network},
			)
			w.must(err)
			w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

			output := func(n uint64) chain.Output {
				return chain.Output{To: d.Address, AssetID: w.chain.Network().Assets[0].ID, Amount: coin(n)}
			}
			w.chain.PayVariable(output(2), func(uint64, uint64) sim.Result {
				return sim.Result{Outputs: []chain.Output{output(1)}}
			})
			w.live("its settlement is open", func() bool { return len(w.settlements()) == 1 })

			payment := func() invoice.Payment {
				p, err := internal.Of(w.engine).Store().PaymentByID(t.Context(), w.settlements()[0].PaymentID)
				w.must(err)

				return p
			}
			head, err := w.chain.Head(t.Context())
			w.must(err)
			w.chain.Fork(sim.Fork{
				Depth: head.Tip.Height - payment().Block.Height + 1,
				Fate:  sim.ReturnToPool,
			})

			for range 20 {
				time.Sleep(5 * time.Second)
				w.work()
			}

			if p := payment(); p.Status != invoice.Detected || p.Amount != coin(2) {
				t.Fatalf("the payment is %s with %s", p.Status, p.Amount)
			}

			report, err := w.engine.Audit(t.Context())
			w.must(err)

			if found := report.Differences(); len(found) != 0 {
				t.Errorf("the audit finds %+v", found)
			}
		},
	)
}
