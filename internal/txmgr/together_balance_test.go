package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Each payout reserves for itself: its promise ends with the block, and is made again when that
// leaves the chain.
func TestReservationsTogether(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, together)
			update := func(f func(ctx context.Context, tx wallet.Tx) error) {
				t.Helper()

				if err := w.update(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			update(func(ctx context.Context, tx wallet.Tx) error {
				return w.outbox.TrackTx(ctx, tx, owner, network, w.master())
			})

			if err := w.outbox.RefreshBalances(t.Context(), network); err != nil {
				t.Fatal(err)
			}

			reserved := func(asset string) map[string]chain.Amount {
				b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset(asset).ID)
				if err != nil {
					t.Fatal(err)
				}

				out := map[string]chain.Amount{}
				for _, r := range b.Reservations {
					out[r.ObjectID] = r.Amount
				}

				return out
			}

			var rows []wallet.Transaction

			for i := range uint64(3) {
				p := w.payout(symbol, dollars(1+i))
				rows = append(rows, p)

				update(func(ctx context.Context, tx wallet.Tx) error {
					for asset, amount := range map[string]chain.Amount{symbol: dollars(1 + i), "SIM": milli(10)} {
						if symbol == "SIM" {
							amount = dollars(1 + i).Add(milli(10))
						}

						if err := w.outbox.ReserveTx(
							ctx, tx, owner, network, w.master().Address, w.asset(asset).ID,
							p.ObjectID, amount,
						); err != nil {
							return err
						}
					}

					return nil
				})
			}

			for range 2 {
				for _, p := range rows {
					w.confirmed(p.ID)
				}

				if a, b := reserved("SIM"), reserved(symbol); len(a)+len(b) != 0 {
					t.Fatalf("after the confirmation %v %v are reserved", a, b)
				}

				w.chain.Fork(sim.Fork{Depth: 8, Fate: sim.DropOrphan})
				w.wait(2 * time.Minute)
				carrier := w.get(rows[0].ID)

				var fees chain.Amount

				for _, p := range rows {
					out, fee := walletstate.BatchShare(carrier, carrier.Attempts[0], p.ID)
					want := map[string]chain.Amount{symbol: out[0].Amount}

					want["SIM"] = want["SIM"].Add(fee)
					for asset, amount := range want {
						if got := reserved(asset)[p.ObjectID]; got != amount {
							t.Errorf(
								"its block left the chain, and %s %s are reserved for %s, want %s",
								got, asset, p.ObjectID, amount,
							)
						}
					}

					fees = fees.Add(fee)
				}

				if fees != carrier.Attempts[0].Signed.MaxFee {
					t.Errorf(
						"fees of %s are reserved, the bytes may cost %s",
						fees, carrier.Attempts[0].Signed.MaxFee,
					)
				}
			}
		})
	}
}
