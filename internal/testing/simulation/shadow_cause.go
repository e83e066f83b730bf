package simulation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	places "github.com/seed-8ee7f392/payments/internal/ledger"
	"github.com/seed-8ee7f392/payments/settlement"
)

// unexplained is the cause of a difference that no known one explains.
const unexplained = "unexplained"

// cause returns what makes a settlement's figures differ.
func (s *shadow) cause(
	at walletOf,
	facts places.Facts,
	row settlement.Settlement,
	now places.Settlement,
) string {
	switch {
	case s.marks[at]["left a release"]:
		return "one left a release: the rows lack who"
	case s.marks[at]["claim"]:
		return "a claim was taken back or is back"
	case row.Status == settlement.Releasing && now.Status == settlement.Reverted:
		return "its payment was gone when its sweep left the chain"
	}

	if s.marks[at]["left its fee"] {
		return "the fee of one whose sweep left the chain was left to a later release"
	}

	plans := slices.Clone(facts.Plans)
	slices.SortFunc(plans, func(a, b places.Plan) int { return a.Number - b.Number })

	for i, p := range plans {
		if !slices.Contains(p.Members, row.ID) {
			continue
		}

		if isAnyGone(facts, p) {
			return "a member of its release is gone"
		}

		before, after := facts, facts
		before.Plans, after.Plans = plans[:i], plans[:i+1]

		if isForwarded(places.Fold(before), p.AssetID) {
			return "something was brought forward to its release"
		}

		if isForwarded(places.Fold(after), p.AssetID) {
			return "its release brings something forward"
		}
	}

	return unexplained
}

// isAnyGone reports whether the payment of a member of a plan is gone.
func isAnyGone(facts places.Facts, p places.Plan) bool {
	return slices.ContainsFunc(facts.Deposits, func(d places.Deposit) bool {
		return !d.Canonical && slices.Contains(p.Members, d.ID)
	})
}

// isForwarded reports whether anything is brought forward to a plan of an asset beside free residue.
func isForwarded(out places.Outcome, assetID string) bool {
	of := out.Asset(assetID)

	return !out.FeeAhead.IsZero() || !of.Owed.IsZero() || !of.Unclaimed.IsZero()
}

// causeOfBalances is cause for the balances of a place.
func (s *shadow) causeOfBalances(at walletOf, facts places.Facts) string {
	if s.marks[at]["left a release"] {
		return "one left a release: the rows lack who"
	}

	for _, p := range facts.Plans {
		if isAnyGone(facts, p) {
			return "a member of a release is gone"
		}

		if isForwarded(places.Fold(facts), p.AssetID) {
			return "a release brings something forward"
		}
	}

	return unexplained
}

// printedDifferences are the kinds of differences of which one was printed.
var printedDifferences sync.Map

// differ counts a difference, and shows the first of its kind.
func (s *shadow) differ(at walletOf, rows places.Rows, cause, figure, id string, today, folded any) {
	key := fmt.Sprintf("shadow differs: %s (%s)", figure, cause)
	s.oracle.harness.account.Counts[key]++

	if _, printed := printedDifferences.LoadOrStore(key, true); printed {
		return
	}

	if only := os.Getenv("SHADOW_ONLY"); only != "" && !strings.Contains(key, only) {
		return
	}

	fmt.Fprintf(
		os.Stderr, "seed %d operation %d at %s %s: %s of %s is %v, and the fold has %v\n",
		s.oracle.harness.plan.Seed, s.oracle.step, at.network, at.address, key, id, today, folded,
	)

	if os.Getenv("SHADOW") == "rows" {
		s.list(rows)
	}
}

// list prints the rows of a place.
func (s *shadow) list(rows places.Rows) {
	for _, of := range rows.Settlements {
		p := rows.Payments[of.PaymentID]
		fmt.Fprintf(
			os.Stderr,
			"  settlement %s %s %s %s gross %s fee %s paid %s carried %s in %s out %s",
			of.ID,
			of.Asset,
			of.Status,
			of.Reason,
			of.Gross,
			of.FeeNative,
			of.FeePaid,
			of.FeeCarried,
			of.CarriedIn,
			of.CarriedOut,
		)
		fmt.Fprintf(
			os.Stderr, " costs %s net %s sweep %s, its payment %s canonical %t\n",
			of.NetworkFees, amountOf(of.NetReleased), of.SweepID, p.Amount, p.Canonical,
		)
	}

	for _, r := range rows.Sweeps {
		fmt.Fprintf(
			os.Stderr, "  sweep %s of %v amount %s fee %s carry %s owed %s claims %v done %t\n",
			r.ID, r.SettlementIDs, r.Amount, r.Fee, r.CarryIn, r.Owed, r.Claims, r.Done,
		)

		for _, step := range r.Steps {
			t := rows.Transactions[step.TransactionID]
			fmt.Fprintf(
				os.Stderr,
				"    %s pays %s parts %v displaced %v residue %s %s; transaction %s %s %s fee %s\n",
				step.Kind,
				step.PaysFee,
				step.Parts,
				step.Displaced,
				step.ResidueAdded,
				step.ResidueTaken,
				t.ID,
				t.State,
				t.Failure,
				t.Fee,
			)
		}
	}

	for _, o := range rows.Outgoing {
		fmt.Fprintf(os.Stderr, "  outgoing %s %q fee %s %v\n", o.TxHash, o.Acknowledged, o.Fee, o.Transfers)
	}
}
