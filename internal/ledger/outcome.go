package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Outcome is what facts come to.
type Outcome struct {
	// Settlements are those of the deposits, oldest first.
	Settlements []Settlement
	// Assets are the balances of the place beside its deposits, by asset id.
	Assets []Asset
	// FeeAhead is platform fee that was paid and that no settlement owes: the payments that owed it are gone. The next
	// plan of the place has paid it.
	FeeAhead chain.Amount
	// CarriedOut is platform fee that released settlements leave to other releases, and CarriedIn what plans of this
	// place bear of others. What an account carries is the sum of CarriedOut less CarriedIn over all places.
	CarriedOut, CarriedIn chain.Amount
}

// Settlement is what a settlement shows; fees and costs in native base units.
type Settlement struct {
	ID     string
	Status settlement.Status
	Reason settlement.Reason
	// FeePaid + FeeCarried = the deposit's fee + CarriedIn.
	FeePaid, FeeCarried, CarriedIn chain.Amount
	NetworkFees                    chain.Amount
	RequiredNative                 *chain.Amount
	// ResidueIn and ResidueOut are its shares of the free native coin before and after its latest plan.
	ResidueIn, ResidueOut chain.Amount
	// NetReleased is in base units of the asset; nil unless it is released.
	NetReleased             *chain.Amount
	FeeTx, TopUpTx, SweepTx string
	// PlanID is the plan that released it, or the latest that has it.
	PlanID                          string
	HeldSince, ReleasedAt, FailedAt time.Time
}

// Asset is what is at a place of one asset beside its deposits, in base units.
type Asset struct {
	ID string
	// Free lies there and belongs to no deposit; Owed was taken out of the deposits that are there. One of them is 0.
	Free, Owed chain.Amount
	// Unclaimed reached the master wallet and no settlement shows it: the payments that it was swept for are gone. The
	// next plan of the asset claims it.
	Unclaimed chain.Amount
	// BroughtBy is the hash of the newest sweep that brought it; empty without one.
	BroughtBy string
	// Withheld was taken by transactions of which nobody has said yet what they were.
	Withheld chain.Amount
}

// Asset returns the balances of an asset; zero where it has none.
func (o Outcome) Asset(id string) Asset {
	for _, a := range o.Assets {
		if a.ID == id {
			return a
		}
	}

	return Asset{ID: id}
}

// Checkpoint returns what later facts are folded on.
func (o Outcome) Checkpoint() Checkpoint { return Checkpoint{Assets: o.Assets, FeeAhead: o.FeeAhead} }

// outcome returns what the fold came to.
func (w *fold) outcome() Outcome {
	out := Outcome{FeeAhead: w.ahead, CarriedIn: w.carryIn}

	for _, h := range w.holders {
		h.setStatus()

		if h.shown.Status == settlement.Released && h.Stored == nil {
			out.CarriedOut = out.CarriedOut.Add(h.shown.FeeCarried.SubFloor(h.waiting))
		}

		out.Settlements = append(out.Settlements, h.shown)
	}

	for _, id := range slices.Sorted(maps.Keys(w.assets)) {
		of := w.assets[id]
		if of.beyond != (balance{}) || !of.unclaimed.IsZero() || !of.withheld.IsZero() {
			out.Assets = append(out.Assets, Asset{
				ID:        id,
				Free:      of.beyond.free,
				Owed:      of.beyond.owed,
				Unclaimed: of.unclaimed,
				BroughtBy: of.broughtBy,
				Withheld:  of.withheld,
			})
		}
	}

	return out
}
