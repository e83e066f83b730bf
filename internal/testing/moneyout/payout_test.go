package moneyout_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

func TestPayoutIsConfirmed(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		t.Run(symbol, func(t *testing.T) {
			inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
				w.fund(10, 100)

				p := w.pay(symbol, dollars(30))
				if p.Status != payout.Pending || p.MaxNetworkFee.IsZero() || p.NetworkFee != nil ||
					p.TxHash != "" ||
					w.countEvents(event.PayoutCreated, p.ID) != 1 {
					t.Errorf("created as %+v", p)
				}

				w.work()

				if p = w.get(
					p.ID,
				); p.Status != payout.Processing || p.TxHash == "" ||
					w.countEvents(event.PayoutBroadcast, p.ID) != 1 {
					t.Errorf("sent as %+v", p)
				}

				p = w.becomes(p.ID, payout.Included)
				if p.NetworkFee == nil || p.NetworkFee.IsZero() || !p.ConfirmedAt.IsZero() {
					t.Errorf("included as %+v", p)
				}

				p = w.becomes(p.ID, payout.Confirmed)
				if p.NetworkFee == nil || p.ConfirmedAt.IsZero() ||
					w.countEvents(event.PayoutConfirmed, p.ID) != 1 ||
					w.countEvents(event.PayoutBroadcast, p.ID) != 1 {
					t.Errorf("confirmed as %+v", p)
				}

				w.arrived(p)
				w.clean(10, 100)
			})
		})
	}
}

// What is accepted is reserved, and what is reserved is not available.
func TestBalancesAreReserved(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)

		balance := func(symbol string) (onChain, reserved, available chain.Amount) {
			rows, err := w.engine.Payouts.Balances(t.Context(), w.owner)
			w.must(err)

			a, _ := chaindata.Asset(w.engine.Networks, network, symbol)
			for _, b := range rows {
				if b.AssetID == a.ID {
					return b.OnChain, b.Reserved, b.Available()
				}
			}

			t.Fatalf("no balance of %s among %+v", symbol, rows)

			return
		}
		// Nobody asked for this wallet before.
		if onChain, _, available := balance("USDX"); onChain != dollars(100) || available != dollars(100) {
			t.Errorf("%s USDX, %s available", onChain, available)
		}

		p := w.pay("USDX", dollars(70))
		if _, reserved, available := balance("USDX"); reserved != dollars(70) || available != dollars(30) {
			t.Errorf("%s USDX reserved, %s available", reserved, available)
		}

		if onChain, reserved, available := balance(
			"SIM",
		); reserved != p.MaxNetworkFee ||
			available != onChain.Sub(p.MaxNetworkFee) {
			t.Errorf("%s SIM reserved, %s available", reserved, available)
		}

		_, err := w.engine.Payouts.Create(t.Context(), w.params("USDX", dollars(31)))
		wantFault(t, err, fault.State, "insufficient_balance")
		w.arrived(w.becomes(p.ID, payout.Confirmed))

		if onChain, reserved, available := balance(
			"USDX",
		); onChain != dollars(30) || !reserved.IsZero() ||
			available != dollars(30) {
			t.Errorf("%s USDX, %s reserved, %s available", onChain, reserved, available)
		}

		w.clean(1, 100)
	})
}

func wantFault(t *testing.T, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || fault.Code(err) != code {
		t.Errorf("got %v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}

func TestPayoutIsRefused(t *testing.T) {
	inTime(t, account.Settings{PayoutsPerHour: 2}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)

		there := w.params("SIM", milli(1)).Destination
		for name, test := range map[string]struct {
			change func(*payout.Params)
			word   error
			code   string
		}{
			"unknown network": {
				func(p *payout.Params) { p.Network = "nowhere" },
				fault.Invalid,
				"asset_not_enabled",
			},
			"network of the live mode": {
				func(p *payout.Params) { p.Owner.Livemode = true },
				fault.Invalid,
				"asset_not_enabled",
			},
			"unknown asset": {
				func(p *payout.Params) { p.Asset = "GOLD" },
				fault.Invalid,
				"asset_not_enabled",
			},
			"nothing": {
				func(p *payout.Params) { p.Amount = chain.Amount{} },
				fault.Invalid,
				"amount_too_small",
			},
			"no address": {
				func(p *payout.Params) { p.Destination = "there" },
				fault.Invalid,
				"destination_invalid",
			},
			"the master wallet": {
				func(p *payout.Params) { p.Destination = string(w.master()) },
				fault.Invalid,
				"destination_invalid",
			},
			"another destination": {
				func(p *payout.Params) {
					p.Destinations = []chain.Destination{{Network: p.Network, Address: chain.Address(there)}}
				},
				fault.Forbidden,
				"destination_not_allowed",
			},
			"no destination allowed": {
				func(p *payout.Params) { p.Destinations = []chain.Destination{} },
				fault.Forbidden,
				"destination_not_allowed",
			},
			"more than there is": {
				func(p *payout.Params) { p.Amount = coin(1) },
				fault.State,
				"insufficient_balance",
			},
			"more tokens than there are": {
				func(p *payout.Params) { p.Asset, p.Amount = "USDX", dollars(101) },
				fault.State,
				"insufficient_balance",
			},
			"more than there can be": {
				func(p *payout.Params) {
					p.Amount = chain.MustAmount(
						"115792089237316195423570985008687907853269984665640564039457584007913129639935",
					)
				},
				fault.State,
				"insufficient_balance",
			},
			"a long memo": {
				func(p *payout.Params) { p.Memo = strings.Repeat("é", 201) },
				fault.Invalid,
				"parameter_invalid",
			},
			"a broken memo": {func(p *payout.Params) { p.Memo = "a\xff" }, fault.Invalid, "parameter_invalid"},
		} {
			p := w.params("SIM", milli(1))
			test.change(&p)

			if _, err := w.engine.Payouts.Create(
				t.Context(), p,
			); !errors.Is(err, test.word) ||
				fault.Code(err) != test.code {
				t.Errorf("%s: %v (code %q), want %q", name, err, fault.Code(err), test.code)
			}
		}

		ok := w.params("SIM", milli(1))

		ok.Memo = strings.Repeat("é", 200)
		for _, address := range []string{there, ok.Destination} {
			ok.Destinations = append(
				ok.Destinations, chain.Destination{Network: ok.Network, Address: chain.Address(address)},
			)
		}

		for range 2 {
			_, err := w.engine.Payouts.Create(t.Context(), ok)
			w.must(err)
		}

		_, err := w.engine.Payouts.Create(t.Context(), ok)
		wantFault(t, err, fault.Limited, "payout_limit_exceeded")
		time.Sleep(time.Hour + time.Second)

		_, err = w.engine.Payouts.Create(t.Context(), ok)
		w.must(err)
	})
}

func TestPayoutIsCanceledBeforeItIsSigned(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)

		p := w.pay("SIM", milli(1))
		for range 2 { // canceling again is nothing new
			canceled, err := w.engine.Payouts.Cancel(t.Context(), w.owner, p.ID)
			w.must(err)

			if canceled.Status != payout.Failed || canceled.FailureCode != "canceled" ||
				canceled.FailureMessage != "" ||
				canceled.FailedAt.IsZero() {
				t.Errorf("canceled as %+v", canceled)
			}
		}

		if w.countEvents(event.PayoutFailed, p.ID) != 1 || w.countEvents(event.PayoutBroadcast, p.ID) != 0 {
			t.Error("not told once")
		}

		_, err := w.engine.Payouts.Cancel(
			t.Context(), event.Owner{AccountID: w.owner.AccountID, Livemode: true}, p.ID,
		)
		wantFault(t, err, fault.NotFound, "resource_missing")

		second := w.pay("SIM", milli(1))
		w.work()
		_, err = w.engine.Payouts.Cancel(t.Context(), w.owner, second.ID)
		wantFault(t, err, fault.State, "payout_not_pending")
		w.arrived(w.becomes(second.ID, payout.Confirmed))
		w.arrived(w.get(p.ID))
		w.clean(1, 0)
	})
}

// Unsigned for two hours: whatever the reason, it is given up rather than paid late.
func TestPayoutGoesStale(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		w.policy = func(chain.SignRequest) error { return errors.New("the vault is locked") }
		p := w.pay("SIM", milli(1))
		began := time.Now()

		p = w.becomes(p.ID, payout.Failed)
		if p.FailureCode != "stale" || p.FailureMessage == "" || w.chain.Calls(sim.MethodBroadcast) != 0 {
			t.Errorf("failed as %+v", p)
		}

		if after := time.Since(
			began,
		); after < payout.GiveUpAfter ||
			after > payout.GiveUpAfter+6*time.Minute {
			t.Errorf("it took %s", after)
		}

		w.policy = nil
		for range 30 {
			w.pass(time.Minute)
			w.work()
		}

		w.arrived(w.get(p.ID))
		w.clean(1, 0)
	})
}

func TestSigners(t *testing.T) {
	t.Run("refuses", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)

			var asked []chain.SignRequest

			w.policy = func(r chain.SignRequest) error { asked = append(asked, r); return chain.Refuse("daily_limit") }

			p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Failed)
			if p.FailureCode != "signer_refused:daily_limit" || p.FailureMessage == "" {
				t.Errorf("failed as %+v", p)
			}

			if len(asked) != 1 {
				t.Fatalf("the signer was asked %d times", len(asked))
			}

			i := asked[0].Intent
			if i.Kind != "payout" || i.ObjectID != p.ID || i.AccountID != w.owner.AccountID ||
				len(i.Outputs) != 1 ||
				i.Outputs[0].Amount != p.Amount ||
				p.MaxNetworkFee.Less(i.MaxFee) {
				t.Errorf("the signer's policy saw %+v", i)
			}

			w.arrived(p)
			w.clean(1, 0)
		})
	})
	t.Run("fails for a while", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)

			until := time.Now().Add(time.Hour)
			w.policy = func(chain.SignRequest) error {
				if time.Now().Before(until) {
					return errors.New("the vault is locked")
				}

				return nil
			}

			p := w.pay("SIM", milli(1))
			for time.Now().Before(until) {
				w.work()

				if got := w.get(p.ID); got.Status != payout.Pending {
					t.Fatalf("it is %s without a signature", got.Status)
				}

				w.pass(time.Minute)
			}

			w.arrived(w.becomes(p.ID, payout.Confirmed))
			w.clean(1, 0)
		})
	})
	t.Run("slow, and another process takes over", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)

			var asked atomic.Int64

			w.policy = func(chain.SignRequest) error {
				if asked.Add(1) == 1 {
					time.Sleep(10 * time.Minute)
				}

				return nil
			}
			other := w.boot()
			p := w.pay("SIM", milli(1))
			done := make(chan error)

			go func() {
				_, err := internal.Of(w.engine).Transactions.Step(context.WithoutCancel(t.Context()), network)
				done <- err
			}()

			time.Sleep(2 * time.Minute) // its lease ran out, its signature is still being made

			for range 5 {
				w.readAll(other)

				_, err := internal.Of(other).Transactions.Step(t.Context(), network)
				w.must(err)
				w.pass(10 * time.Second)
			}

			if got := w.get(p.ID); got.Status != payout.Included && got.Status != payout.Confirmed {
				t.Errorf("the other process brought it to %s", got.Status)
			}

			w.must(<-done)
			time.Sleep(10 * time.Minute) // the late signature is thrown away
			w.arrived(w.becomes(p.ID, payout.Confirmed))
			txs, err := internal.Of(w.engine).Store().TransactionsOf(t.Context(), p.ID)
			w.must(err)

			if len(txs) != 1 || len(txs[0].Attempts) != 1 {
				t.Errorf("%d transactions, %d attempts", len(txs), len(txs[0].Attempts))
			}

			w.clean(1, 0)
		})
	})
	t.Run("slow beyond the payout's time", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			w.policy = func(chain.SignRequest) error { time.Sleep(payout.GiveUpAfter + time.Minute); return nil }

			p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Failed)
			if p.FailureCode != "stale" || w.chain.Calls(sim.MethodBroadcast) != 0 {
				t.Errorf("failed as %+v", p)
			}

			time.Sleep(payout.GiveUpAfter) // the late signature is thrown away
			w.arrived(p)
			w.clean(1, 0)
		})
	})
}
