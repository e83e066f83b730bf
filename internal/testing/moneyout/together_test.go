package moneyout_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
)

// Several payouts in one transaction, through the whole engine.

var together = sim.Config{MaxOutputs: 8}

// three asks for three payouts of an asset, 1, 2 and 3 dollars or as many millionths of a millionth
// of the coin.
func (w *harness) three(symbol string) (all []payout.Payout) {
	w.t.Helper()

	for i := range uint64(3) {
		all = append(all, w.pay(symbol, dollars(1+i)))
	}

	return all
}

// row is a payout's transaction.
func (w *harness) row(p payout.Payout) wallet.Transaction {
	w.t.Helper()
	txs, err := internal.Of(w.engine).Store().TransactionsOf(w.t.Context(), p.ID)
	w.must(err)

	if len(txs) != 1 {
		w.t.Fatalf("payout %s has %d transactions", p.ID, len(txs))
	}

	return txs[0]
}

// inOne checks that payouts stand where one transaction does that pays them all, and that their
// shares add up to its fee. It returns them as they are now, and the transaction.
func (w *harness) inOne(all []payout.Payout) (now []payout.Payout, carrier wallet.Transaction) {
	w.t.Helper()

	for _, p := range all {
		if row := w.row(p); row.BatchedBy == "" {
			carrier = row
		}
	}

	if len(carrier.BatchMembers) != len(all)-1 {
		w.t.Fatalf("%d payouts are paid by %+v", len(all), carrier)
	}

	var shares chain.Amount

	for i, p := range all {
		p = w.get(p.ID)

		now = append(now, p)
		if row := w.row(
			p,
		); row.ID != carrier.ID && row.BatchedBy != carrier.ID ||
			row.State != carrier.State {
			w.t.Errorf("payout %d is paid by %s (%s), carried by %q", i, row.ID, row.State, row.BatchedBy)
		}

		if p.Status != now[0].Status || p.TxHash != now[0].TxHash || p.FailureCode != now[0].FailureCode ||
			(p.NetworkFee == nil) != (now[0].NetworkFee == nil) {
			w.t.Errorf("payout %d is %+v, the first %+v", i, p, now[0])
		}

		if p.NetworkFee != nil {
			shares = shares.Add(*p.NetworkFee)
		}

		if p.Status == payout.Confirmed || p.Status == payout.Failed {
			w.arrived(p)
		}
	}

	if now[0].NetworkFee != nil {
		w.check("the sum of the shares", shares, carrier.Fee)
	}

	return now, carrier
}

func TestPayoutsLeaveTogether(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		t.Run(symbol, func(t *testing.T) {
			inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
				w.fund(1, 100)
				all := w.three(symbol)
				w.work()

				if now, _ := w.inOne(all); now[0].Status != payout.Processing || now[0].TxHash == "" {
					t.Fatalf("sent as %+v", now[0])
				}

				w.becomes(all[0].ID, payout.Included)
				w.inOne(all)
				w.becomes(all[2].ID, payout.Confirmed)

				now, _ := w.inOne(all)
				for _, p := range now {
					w.once(p)

					for _, typ := range []event.Type{
						event.PayoutCreated,
						event.PayoutBroadcast,
						event.PayoutConfirmed,
					} {
						if n := w.countEvents(typ, p.ID); n != 1 {
							t.Errorf("%s was told %d times", typ, n)
						}
					}

					if p.NetworkFee == nil || p.MaxNetworkFee.Less(*p.NetworkFee) || p.ConfirmedAt.IsZero() {
						t.Errorf("confirmed as %+v", p)
					}
				}

				if n := w.chain.Calls(sim.MethodBroadcast); n != 1 {
					t.Errorf("%d broadcasts", n)
				}

				w.clean(1, 100)
			})
		})
	}
}

// Pitfall 13 for a batch of which one is a refund. Whatever the moment of crash, each is paid once,
// and all by one transaction.
func TestBatchSurvivesCrashAtEveryStep(t *testing.T) {
	var inv invoice.Invoice

	begin := func(w *harness) {
		w.fund(2, 0)

		var at map[string]chain.Address

		inv, at = w.invoiced()
		w.chain.Pay(at["SIM"], "SIM", coin(1))
		w.live("the invoice is paid", func() bool { return w.invoice(inv.ID).Status == invoice.Paid })
	}
	crashEverywhereOn(
		t,
		together,
		account.Settings{ManualRelease: true},
		begin,
		func(t *testing.T, w *harness) {
			for i := range 2 {
				params := w.params("SIM", milli(uint64(1+i)))
				w.retry(
					func() error { _, err := w.engine.Payouts.Create(t.Context(), params); return err },
					func() bool { return len(w.payouts()) > i },
				)
			}

			refund := w.refundTo(payout.RefundParams{InvoiceID: inv.ID})
			w.retry(
				func() error { _, err := w.engine.Payouts.CreateRefund(t.Context(), refund); return err },
				func() bool { return len(w.payouts()) > 2 },
			)

			all := w.payouts()
			if len(all) != 3 {
				t.Fatalf("%d payouts were created", len(all))
			}

			for _, p := range all {
				w.becomes(p.ID, payout.Confirmed)
			}

			w.process.Aside(func() {
				now, _ := w.inOne(all)
				refunded := ""

				for _, p := range now {
					w.once(p)
					refunded += p.RefundID
				}

				r := w.refund(refunded)
				if r.Status != payout.RefundSucceeded || w.invoice(inv.ID).Status != invoice.Refunded ||
					w.countEvents(event.RefundSucceeded, r.ID) != 1 {
					t.Errorf("the refund is %s, its invoice %s", r.Status, w.invoice(inv.ID).Status)
				}

				w.outgoing(3)
				w.clean(2, 0)
			})
		},
	)
}

// The block of a batch leaves the chain.
func TestReorganisationOfABatch(t *testing.T) {
	for state, depth := range map[payout.Status]uint64{payout.Included: 1, payout.Confirmed: 4} {
		for _, fate := range []sim.OrphanFate{sim.Reinclude, sim.ReturnToPool, sim.DropOrphan} {
			t.Run(string(state)+" and "+fateName[fate], func(t *testing.T) {
				inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
					w.fund(1, 0)
					all := w.three("SIM")
					w.becomes(all[0].ID, state)
					w.chain.Fork(sim.Fork{Depth: depth, Fate: fate})
					w.readAll(
						w.engine,
					) // the audit reads balances at the cursor, which has to be in the chain
					w.auditMeanwhile(w.engine)

					saw := map[payout.Status]bool{}

					for range 20 {
						time.Sleep(10 * time.Second)
						w.work()

						p := w.get(all[2].ID)
						if saw[p.Status] = true; p.Status == payout.Processing &&
							(p.NetworkFee != nil || !p.ConfirmedAt.IsZero()) {
							t.Fatalf("out of its block it still has a fee or a confirmation: %+v", p)
						}
					}

					if saw[payout.Failed] || fate != sim.Reinclude && !saw[payout.Processing] {
						t.Errorf("it was seen as %v", saw)
					}

					w.becomes(all[0].ID, payout.Confirmed)

					now, _ := w.inOne(all)
					for _, p := range now {
						w.once(p)
					}

					w.clean(1, 0)
				})
			})
		}
	}
}

// What ends a batch ends each of its payouts, and gives back what each had reserved.
func TestBatchThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		config sim.Config
		spoil  func(w *harness, all []payout.Payout)
		code   string
		fee    bool
	}{
		"displaced": {
			together,
			func(w *harness, _ []payout.Payout) {
				w.work()
				w.chain.SetFee(1000*sim.DefaultBaseFee, sim.DefaultPriority)

				for range 7 * 60 {
					w.pass(time.Minute)
					w.work()
				}
			},
			wallet.FailConflict,
			true,
		},
		"reverted": {
			together,
			func(w *harness, all []payout.Payout) {
				w.work()
				w.chain.Freeze(all[1].Destination, "USDX", true)
			},
			wallet.FailReverted,
			true,
		},
		"run out": {
			sim.Config{MaxOutputs: 8, ValidBlocks: 5},
			func(w *harness, _ []payout.Payout) {
				w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 10_000)
			},
			wallet.FailExpired,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, account.Settings{}, c.config, func(t *testing.T, w *harness) {
				w.fund(1, 100)
				all := w.three("USDX")
				c.spoil(w, all)
				w.becomes(all[0].ID, payout.Failed)

				now, _ := w.inOne(all)
				for _, p := range now {
					if p.FailureCode != c.code || (p.NetworkFee != nil) != c.fee ||
						w.countEvents(event.PayoutFailed, p.ID) != 1 {
						t.Errorf("failed as %+v", p)
					}
				}

				w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 0)
				w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
				w.clean(1, 100)
			})
		})
	}
}

// Each payout of a batch is what the block brought its own destination: a token that returns false to one of them fails
// that one alone, as reverted, and one that takes a fee shows what arrived, whatever it logs.
func TestBatchIsWhatEachGot(t *testing.T) {
	for at := range 3 {
		inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
			w.fund(1, 100)
			all := w.three("USDX")
			w.chain.SetToken("USDX", sim.TokenRules{Refused: []chain.Address{all[at].Destination}})

			for i, p := range all {
				want := payout.Confirmed
				if i == at {
					want = payout.Failed
				}

				p = w.becomes(p.ID, want)
				w.arrived(p)

				if (want == payout.Failed) != (p.FailureCode == wallet.FailReverted) ||
					p.NetworkFee == nil || p.AmountDelivered != nil && want == payout.Confirmed {
					t.Errorf("payout %d of which %d was refused is %+v", i, at, p)
				}
			}

			w.clean(1, 100)
		})
	}

	for name, rules := range map[string]sim.TokenRules{
		"a fee that is logged":     {FeeBPS: 100},
		"a fee that is not logged": {FeeBPS: 100, Log: sim.LogGross},
		"a fee that is taken back": {FeeBPS: 100, Log: sim.LogGrossThenFee},
		"a log and no money":       {FeeBPS: 10_000, Log: sim.LogGross},
	} {
		inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
			w.fund(1, 100)
			w.chain.SetToken("USDX", rules)

			for i, p := range w.three("USDX") {
				status := payout.Confirmed
				if rules.FeeBPS == 10_000 {
					status = payout.Failed
				}

				p = w.becomes(p.ID, status)

				if got := p.AmountDelivered; got == nil || *got != w.chain.Balance(p.Destination, "USDX") {
					t.Errorf(
						"%s: payout %d delivered %v, %s arrived",
						name, i, got, w.chain.Balance(p.Destination, "USDX"),
					)
				}
			}

			w.clean(1, 100)
		})
	}
}

// Payouts of a batch to one destination share what came to it in the order of the batch.
func TestBatchToOneDestination(t *testing.T) {
	inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
		w.fund(1, 100)

		params := w.params("USDX", dollars(10))

		var all []payout.Payout

		for range 3 {
			p, err := w.engine.Payouts.Create(t.Context(), params)
			w.must(err)

			all = append(all, p)
		}

		w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 4_000})

		for i, want := range []uint64{10, 8, 0} { // 18 of 30 arrive
			status := payout.Confirmed
			if want == 0 {
				status = payout.Failed
			}

			p := w.becomes(all[i].ID, status)
			if delivered := p.AmountDelivered; want < 10 &&
				(delivered == nil || *delivered != dollars(want)) ||
				want == 10 && delivered != nil {
				t.Errorf("payout %d delivered %v, want %d", i, delivered, want)
			}
		}
	})
}

// A fee that rises after the signature: all are replaced together, and no share exceeds what its
// payout may cost.
func TestFeeSpikeOfABatch(t *testing.T) {
	inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		frugal := w.pay("SIM", milli(1))
		w.chain.SetFee(2*sim.DefaultBaseFee, sim.DefaultPriority) // the later ones may cost more
		all := append([]payout.Payout{frugal}, w.three("SIM")...)
		w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
		w.work()
		w.chain.SetFee(3*sim.DefaultBaseFee, sim.DefaultPriority)
		w.becomes(frugal.ID, payout.Confirmed)

		now, carrier := w.inOne(all)
		if len(carrier.Attempts) < 2 {
			t.Errorf("it was not replaced")
		}

		for _, p := range now {
			w.once(p)

			if p.MaxNetworkFee.Less(*p.NetworkFee) {
				t.Errorf("it cost %s and may cost %s", p.NetworkFee, p.MaxNetworkFee)
			}
		}

		w.clean(1, 0)
	})
}

// What is on its way is no difference, at whatever moment an audit looks.
func TestAuditInTheMiddleOfABatch(t *testing.T) {
	inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
		w.fund(1, 100)

		check := func() {
			t.Helper()
			w.auditMeanwhile(w.engine)
			a, err := w.engine.Audit(t.Context())
			w.must(err)

			for _, m := range a.Networks[0].Wallets {
				w.check(
					"money from elsewhere in "+m.Asset,
					m.Outside,
					map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(100)}[m.Asset],
				)
			}
		}

		all := append(w.three("USDX"), w.three("SIM")...)

		for range 10 {
			check()
			w.readAll(w.engine)
			check()

			_, err := internal.Of(w.engine).Transactions.Step(t.Context(), network)
			w.must(err)
			check()
			w.chain.Mine(1)
			check()
			w.pass(3 * time.Second)
		}

		for _, part := range [][]payout.Payout{all[:3], all[3:]} {
			w.becomes(part[0].ID, payout.Confirmed)
			w.inOne(part)
		}

		w.clean(1, 100)
	})
}

func TestAuditFindsABatchThatDisagrees(t *testing.T) {
	for name, tamper := range map[string]func(carrier, carried *wallet.Transaction){
		"it is carried by nobody": func(carrier, _ *wallet.Transaction) {
			carrier.BatchMembers = carrier.BatchMembers[1:]
		},
		"it is carried by another": func(_, carried *wallet.Transaction) { carried.BatchedBy = carried.ID },
		"it stands elsewhere":      func(_, carried *wallet.Transaction) { carried.TxHash = "other" },
		"its share is another": func(_, carried *wallet.Transaction) {
			carried.Fee = carried.Fee.Add(chain.Units(1))
		},
		"it has bytes of its own": func(carrier, carried *wallet.Transaction) {
			carried.Attempts = carrier.Attempts
		},
		"its order is another": func(_, carried *wallet.Transaction) {
			carried.Order.Outputs[0].Amount = chain.Units(1)
		},
		"the bytes pay it something else": func(carrier, _ *wallet.Transaction) {
			carrier.Attempts[0].Signed.Outputs[1].Amount = chain.Units(1)
		},
		"the bytes pay somebody else, too": func(carrier, _ *wallet.Transaction) {
			o := &carrier.Attempts[0].Signed.Outputs
			*o = append(*o, (*o)[0])
		},
		"the bytes may cost it too much": func(carrier, _ *wallet.Transaction) {
			carrier.Attempts[0].Signed.MaxFee = coin(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) {
				w.fund(1, 0)
				all := w.three("SIM")
				w.becomes(all[0].ID, payout.Confirmed)
				w.clean(1, 0)
				w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
					var rows []wallet.Transaction

					for _, p := range all[:2] {
						row, err := tx.Transaction(ctx, w.get(p.ID).TransactionID)
						if err != nil {
							return err
						}

						rows = append(rows, row)
					}

					tamper(&rows[0], &rows[1])

					for i := range rows {
						if err := tx.PutTransaction(ctx, &rows[i]); err != nil {
							return err
						}
					}

					return nil
				}))
				a, err := w.engine.Audit(t.Context())
				w.must(err)

				found := slices.ContainsFunc(a.Differences(), func(d audit.Difference) bool {
					return d.Kind == audit.RecordsDisagree &&
						slices.ContainsFunc(
							d.Records, func(r audit.Record) bool { return r.ID == all[1].ID },
						)
				})
				if !found {
					t.Errorf("the audit found %+v", a.Differences())
				}
			})
		})
	}
}

// Pitfall 14 with batches: four processes over one store, every payout once.
func TestManyPayoutsTogetherByFourProcesses(t *testing.T) {
	inTime(t, account.Settings{}, together, func(t *testing.T, w *harness) { w.payTogetherByFour(300) })
}

// payTogetherByFour has four processes pay so many times, eight payouts to a transaction.
func (w *harness) payTogetherByFour(n int) {
	w.t.Helper()
	created, audits, _ := w.payByFour(n, 10*time.Second)

	times := w.timesPaid()
	for _, p := range created {
		if p = w.get(p.ID); times[p.Destination] != 1 {
			w.t.Errorf("payout %s was paid %d times", p.ID, times[p.Destination])
		}

		w.arrived(p)
	}

	used, err := w.chain.Nonce(w.t.Context(), w.master())
	w.must(err)

	if used > uint64(n/5) {
		w.t.Errorf("%d payouts took %d transactions, 8 fit into one", n, used)
	}

	w.clean(10_000, 0)
	w.t.Logf("%d payouts in %d transactions; %d audits meanwhile, all without a difference", n, used, audits)
}
