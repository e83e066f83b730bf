package simulation

import (
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	places "github.com/seed-8ee7f392/payments/internal/ledger"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// shadowing is set where every place is folded at every commit and compared with its records.
var shadowing = os.Getenv("SHADOW") != ""

// shadow folds each place that a commit touches, and counts where its records show something else.
type shadow struct {
	oracle *oracle
	// settlements and sweeps are the ids of those of a place.
	settlements, sweeps map[walletOf][]string
	// marks are what ever happened at a place.
	marks map[walletOf]map[string]bool
}

func newShadow(o *oracle) *shadow {
	s := &shadow{oracle: o, marks: map[walletOf]map[string]bool{}, sweeps: map[walletOf][]string{}}
	s.index()

	return s
}

// index indexes the records anew. Sweeps that are known stay in the order in which they were made.
func (s *shadow) index() {
	for at, ids := range s.sweeps {
		s.sweeps[at] = slices.DeleteFunc(ids, func(id string) bool {
			_, known := s.oracle.records.sweeps[id]

			return !known
		})
	}

	s.settlements = map[walletOf][]string{}

	for id, of := range s.oracle.records.settlements {
		at := s.at(of.Network, of.Deposit.Address)
		s.settlements[at] = append(s.settlements[at], id)
	}
}

// at returns the place of an address: where outputs are spent, all addresses of the network.
func (s *shadow) at(network string, address chain.Address) walletOf {
	if _, outputs := s.network(network).(*utxoNetwork); outputs {
		address = ""
	}

	return walletOf{network, address}
}

func (s *shadow) network(slug string) network {
	return s.oracle.ledgers[slug].network
}

// remember takes a commit into the index, before it is in the records.
func (s *shadow) remember(c *commit) {
	r := s.oracle.records

	for id, of := range c.settlements {
		if _, known := r.settlements[id]; !known {
			at := s.at(of.Network, of.Deposit.Address)
			s.settlements[at] = append(s.settlements[at], id)
		}

		if of.Reason == settlement.PaymentOrphaned || of.Status == settlement.Reverted {
			s.mark(of.Network, of.Deposit.Address, "fork")
		}
	}

	for id, of := range c.sweeps {
		before, known := r.sweeps[id]
		if !known {
			at := s.at(of.Network, of.Deposit.Address)
			s.sweeps[at] = append(s.sweeps[at], id)
		}

		for _, member := range before.SettlementIDs {
			if !slices.Contains(of.SettlementIDs, member) {
				s.mark(of.Network, of.Deposit.Address, "left a release")
			}
		}

		if len(of.Steps) == 0 {
			s.mark(of.Network, of.Deposit.Address, "claim")
		}
	}

	for id, t := range c.transactions {
		if before := r.transactions[id]; before.State == wallet.Confirmed && t.State != wallet.Confirmed {
			s.markTransaction(t, "fork")
		}
	}
}

func (s *shadow) mark(network string, address chain.Address, what string) {
	at := s.at(network, address)
	if s.marks[at] == nil {
		s.marks[at] = map[string]bool{}
	}

	s.marks[at][what] = true
}

func (s *shadow) markTransaction(t wallet.Transaction, what string) {
	if at, known := s.placeOf(t); known {
		s.mark(at.network, at.address, what)
	}
}

// placeOf returns the place that a transaction of a release, or one that displaced or ended such, belongs to.
func (s *shadow) placeOf(t wallet.Transaction) (at walletOf, known bool) {
	r := s.oracle.records

	if t.Kind == wallet.Cancel || t.Kind == wallet.Undelegate {
		t = r.transactions[t.ObjectID]
	}

	sweep, known := r.sweeps[t.ObjectID]

	return s.at(t.Network, sweep.Deposit.Address), known
}

// compare folds the places that a commit touched.
func (s *shadow) compare(c *commit) {
	touched := map[walletOf]bool{}

	for _, of := range c.settlements {
		touched[s.at(of.Network, of.Deposit.Address)] = true
	}

	for _, of := range c.payments {
		touched[s.at(of.Network, of.Address)] = true
	}

	for _, of := range c.sweeps {
		touched[s.at(of.Network, of.Deposit.Address)] = true
	}

	for _, t := range c.transactions {
		if at, known := s.placeOf(t); known {
			touched[at] = true
		}
	}

	counted := false

	for at := range touched {
		if len(s.settlements[at]) == 0 {
			continue
		}

		counted = true
		s.oracle.harness.account.Counts["shadow: places compared"]++
		s.comparePlace(at)
	}

	if counted {
		s.oracle.harness.account.Counts["shadow: commits compared"]++
	}
}

// rowsOf returns the records of a place.
func (s *shadow) rowsOf(at walletOf) places.Rows {
	r := s.oracle.records
	rows := places.Rows{
		SpendsOutputs: at.address == "",
		Payments:      map[string]places.Payment{},
		Transactions:  map[string]wallet.Transaction{},
	}

	for _, a := range s.network(at.network).assets() {
		if a.Kind == chain.Native {
			rows.Native = a.ID
		}
	}

	for _, id := range s.settlements[at] {
		of := r.settlements[id]
		p := r.payments[of.PaymentID]
		rows.Settlements = append(rows.Settlements, of)
		rows.Payments[p.ID] = places.Payment{
			Amount:    p.Amount,
			Canonical: p.Status == invoice.Confirmed && p.USDValue.Valid && p.NativeUSD.Valid,
		}
	}

	for _, id := range s.sweeps[at] {
		sweep := r.sweeps[id]
		rows.Sweeps = append(rows.Sweeps, sweep)

		for _, step := range sweep.Steps {
			rows.Transactions[step.TransactionID] = r.transactions[step.TransactionID]

			for _, other := range r.others[step.TransactionID] {
				rows.Others = append(rows.Others, r.transactions[other])
			}
		}
	}

	var err error

	rows.Outgoing, err = s.oracle.harness.store.UnrecordedOutgoing(
		s.oracle.harness.ctx,
		at.network,
		at.address,
		time.Time{},
	)
	must(err)

	return rows
}

// comparePlace folds a place and compares what its records show.
func (s *shadow) comparePlace(at walletOf) {
	rows := s.rowsOf(at)
	facts := places.FactsOf(rows)
	out := places.Fold(facts)

	for i, id := range sortedIDs(rows.Settlements) {
		s.compareSettlement(at, rows, facts, s.oracle.records.settlements[id], out.Settlements[i])
	}

	if at.address != "" {
		s.compareBalances(at, rows, facts, out)
		s.compareSums(at, rows, out)
	}
}

func sortedIDs(all []settlement.Settlement) (ids []string) {
	for _, of := range all {
		ids = append(ids, of.ID)
	}

	slices.Sort(ids)

	return ids
}

// compareSettlement compares what a settlement shows with what its place's facts come to.
func (s *shadow) compareSettlement(
	at walletOf,
	rows places.Rows,
	facts places.Facts,
	row settlement.Settlement,
	now places.Settlement,
) {
	shown := row.Resource()

	see := func(figure string, today, folded any) {
		if fmt.Sprint(today) != fmt.Sprint(folded) {
			s.differ(at, rows, s.cause(at, facts, row, now), figure, row.ID, today, folded)
		}
	}

	reason := now.Reason
	if now.Status != settlement.Held && now.Status != settlement.Failed {
		reason = ""
	}

	see("status", string(shown.Status)+" "+string(shown.Reason), string(now.Status)+" "+string(reason))

	if row.Reason == settlement.PaymentOrphaned {
		return // by the rule it bears and gets nothing
	}

	see("fee_paid", row.FeePaid, now.FeePaid)
	see("fee_carried", row.FeeCarried, now.FeeCarried)
	see("network_fees", row.NetworkFees, now.NetworkFees)
	see("net_released", amountOf(row.NetReleased), amountOf(now.NetReleased))
	for _, of := range []struct{ figure, today, folded string }{
		{"fee_tx", row.FeeTx, now.FeeTx}, {"topup_tx", row.TopUpTx, now.TopUpTx}, {"sweep_tx", row.SweepTx, now.SweepTx},
	} {
		switch {
		case of.today == "" && of.folded != "":
			s.differ(at, rows, "its latest was never signed", of.figure, row.ID, of.today, of.folded)
		case of.today != "" && of.folded != "" && of.today != of.folded:
			s.differ(at, rows, "that of an earlier release moved last", of.figure, row.ID, of.today, of.folded)
		default:
			see(of.figure, of.today, of.folded)
		}
	}

	if row.Status != settlement.Pending ||
		row.SweepID != "" { // else it shows that of a plan that came to nothing
		if row.RequiredNative == nil && now.RequiredNative != nil {
			s.differ(
				at,
				rows,
				"it was cleared as its payment was gone",
				"required_native",
				row.ID,
				"",
				*now.RequiredNative,
			)
		} else {
			see("required_native", amountOf(row.RequiredNative), amountOf(now.RequiredNative))
		}
	}

	if row.ResidueIn != now.ResidueIn || row.ResidueOut != now.ResidueOut {
		s.differ(
			at,
			rows,
			"as it was when it was planned",
			"residue_in, residue_out",
			row.ID,
			row.ResidueIn.String()+" "+row.ResidueOut.String(),
			now.ResidueIn.String()+" "+now.ResidueOut.String(),
		)
	}

	see("held_since", row.HeldSince.UTC(), now.HeldSince.UTC())
}

func amountOf(a *chain.Amount) string {
	if a == nil {
		return ""
	}

	return a.String()
}

// compareBalances compares what is on record at an address with what its facts come to.
func (s *shadow) compareBalances(at walletOf, rows places.Rows, facts places.Facts, out places.Outcome) {
	row, _, err := s.oracle.harness.store.Residue(s.oracle.harness.ctx, at.network, at.address)
	must(err)

	for _, a := range s.network(at.network).assets() {
		free, owed, unclaimed := row.Amount, row.Owed, row.Unclaimed
		if a.ID != rows.Native {
			free, owed, unclaimed = chain.Amount{}, chain.Amount{}, nil

			for _, t := range row.Tokens {
				if t.AssetID == a.ID {
					free, owed, unclaimed = t.Amount, t.Owed, t.Unclaimed
				}
			}
		}

		claimed := standing(rows, unclaimed)

		for _, r := range rows.Sweeps { // what a release bears that has not swept yet
			if r.AssetID == a.ID && !r.Done {
				owed, claimed = owed.Add(r.Owed), claimed.Add(standing(rows, r.Claims))
			}
		}

		for _, o := range rows.Outgoing {
			if !walletstate.IsForeign(o) {
				continue
			}

			if a.ID == rows.Native {
				owed = owed.Add(o.Fee)
			}

			for _, m := range o.Transfers {
				if !o.Failed && m.From == at.address && m.AssetID == a.ID {
					owed = owed.Add(m.Amount)
				}
			}
		}

		free, owed = free.SubFloor(owed), owed.SubFloor(free)
		now := out.Asset(a.ID)

		kind := string(a.Kind)
		if free != now.Free || owed != now.Owed {
			s.differ(
				at, rows, s.causeOfBalances(at, facts), kind+" residue", string(at.address),
				free.String()+" −"+owed.String(), now.Free.String()+" −"+now.Owed.String(),
			)
		}

		if claimed != now.Unclaimed {
			s.differ(
				at,
				rows,
				s.causeOfBalances(at, facts),
				kind+" unclaimed",
				string(at.address),
				claimed,
				now.Unclaimed,
			)
		}
	}
}

// standing returns what sweeps brought that are in final blocks. The records keep it of others too, until those are
// proven never to be.
func standing(rows places.Rows, brought []settlement.Brought) (sum chain.Amount) {
	for _, b := range brought {
		for _, other := range rows.Sweeps {
			stands := slices.ContainsFunc(other.Steps, func(step settlement.Step) bool {
				return step.Kind == chain.StepSweep && step.State == wallet.Confirmed
			})
			if other.ID == b.SweepID && stands {
				sum = sum.Add(b.Amount)
			}
		}
	}

	return sum
}

// checkRest compares, at rest, the balances that the facts of each place come to with those of the chain.
func (s *shadow) checkRest() {
	for at := range s.settlements {
		if at.address == "" || s.oracle.lost || s.oracle.hasStolen(at.network) {
			continue
		}

		rows := s.rowsOf(at)
		facts := places.FactsOf(rows)
		out := places.Fold(facts)
		held := map[string]chain.Amount{}

		live := slices.ContainsFunc(facts.Plans, func(p places.Plan) bool {
			return slices.ContainsFunc(
				p.Steps,
				func(step places.Step) bool { return step.Live && step.TxHash != "" },
			)
		})
		if live || s.marks[at]["left a release"] {
			continue
		}

		shown := map[string]places.Settlement{}
		for _, of := range out.Settlements {
			shown[of.ID] = of
		}

		for _, d := range facts.Deposits {
			of := shown[d.ID]
			if !d.Canonical || of.NetReleased != nil {
				continue
			}

			left := d.Gross
			if d.Source == settlement.FromDeposit {
				left = left.SubFloor(of.FeePaid).SubFloor(of.NetworkFees)
			}

			held[d.AssetID] = held[d.AssetID].Add(left)
		}

		n := s.network(at.network)
		for _, a := range n.assets() {
			of := out.Asset(a.ID)
			want := held[a.ID].Add(of.Free).SubFloor(of.Owed)
			got := n.balances(n.tip().Height, []chain.Holding{{Address: at.address, AssetID: a.ID}})[0]
			s.oracle.harness.account.Counts["shadow: balances compared with the chain"]++

			if want != got {
				s.differ(
					at,
					rows,
					s.marksOf(at),
					string(a.Kind)+" balance at rest",
					string(at.address),
					got,
					want,
				)
			}
		}
	}
}

// checkCarry compares, at rest, the platform fee that each account carries with what the facts of its places come to.
func (s *shadow) checkCarry() {
	type account struct {
		owner   event.Owner
		network string
	}

	sums, marks := map[account]*big.Int{}, map[account]map[string]bool{}

	for at := range s.settlements {
		byOwner := map[event.Owner]bool{}
		for _, id := range s.settlements[at] {
			byOwner[s.oracle.records.settlements[id].Owner] = true
		}

		for owner := range byOwner {
			rows := s.rowsOf(at)
			rows.Settlements = slices.DeleteFunc(
				rows.Settlements,
				func(of settlement.Settlement) bool { return of.Owner != owner },
			)
			rows.Sweeps = slices.DeleteFunc(
				rows.Sweeps,
				func(r settlement.Sweep) bool { return r.Owner != owner },
			)
			out := places.Fold(places.FactsOf(rows))

			of := account{owner, at.network}
			if sums[of] == nil {
				sums[of], marks[of] = new(big.Int), map[string]bool{}
			}

			sums[of].Add(sums[of], out.CarriedOut.Big()).Sub(sums[of], out.CarriedIn.Big())
			maps.Copy(marks[of], s.marks[at])
		}
	}

	for of, sum := range sums {
		row, _, err := s.oracle.harness.store.Carry(s.oracle.harness.ctx, of.owner, of.network)
		must(err)

		s.oracle.harness.account.Counts["shadow: carries compared"]++

		if s.oracle.lost {
			marks[of]["restored"] = true
		}

		if row.Amount.Big().Cmp(sum) != 0 {
			cause := strings.Join(slices.Sorted(maps.Keys(marks[of])), ", ")
			s.differ(
				walletOf{network: of.network},
				places.Rows{},
				cause,
				"carry at rest",
				of.owner.AccountID,
				row.Amount,
				sum,
			)
		}
	}
}

// compareSums compares what neither depends on who bears it: the platform fee that was paid, and what was brought to
// the master wallet.
func (s *shadow) compareSums(at walletOf, rows places.Rows, out places.Outcome) {
	var paid, brought, foldedPaid, foldedBrought chain.Amount

	assets := map[string]string{}

	for _, of := range rows.Settlements {
		assets[of.ID] = of.AssetID
		paid = paid.Add(of.FeePaid)

		if of.AssetID == rows.Native && of.NetReleased != nil {
			brought = brought.Add(*of.NetReleased)
		}
	}

	foldedPaid = out.FeeAhead

	for _, of := range out.Settlements {
		foldedPaid = foldedPaid.Add(of.FeePaid)

		if assets[of.ID] == rows.Native && of.NetReleased != nil {
			foldedBrought = foldedBrought.Add(*of.NetReleased)
		}
	}

	row, _, err := s.oracle.harness.store.Residue(s.oracle.harness.ctx, at.network, at.address)
	must(err)

	brought = brought.Add(standing(rows, row.Unclaimed))

	for _, r := range rows.Sweeps {
		if r.AssetID == rows.Native && !r.Done {
			brought = brought.Add(standing(rows, r.Claims))
		}
	}

	foldedBrought = foldedBrought.Add(out.Asset(rows.Native).Unclaimed)

	if paid != foldedPaid {
		s.differ(at, rows, s.marksOf(at), "sum of fee_paid", string(at.address), paid, foldedPaid)
	}

	if brought != foldedBrought {
		s.differ(at, rows, s.marksOf(at), "sum of net_released", string(at.address), brought, foldedBrought)
	}
}

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

	if s.isLeftToOthers(at) {
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

// isLeftToOthers reports whether a settlement of a place that is not released any more has left its fee to others.
func (s *shadow) isLeftToOthers(at walletOf) bool {
	return slices.ContainsFunc(s.settlements[at], func(id string) bool {
		of := s.oracle.records.settlements[id]

		return of.Status != settlement.Released && !of.CarriedOut.IsZero()
	})
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

func (s *shadow) marksOf(at walletOf) string {
	var marks []string
	for what := range s.marks[at] {
		marks = append(marks, what)
	}

	if s.oracle.lost {
		marks = append(marks, "restored")
	}

	slices.Sort(marks)

	if len(marks) == 0 {
		return "no fork"
	}

	return strings.Join(marks, ", ")
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
		fmt.Fprintf(
			os.Stderr,
			"  settlement %s %s %s %s gross %s fee %s paid %s carried %s in %s out %s costs %s net %s sweep %s canonical %t of %s\n",
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
			of.NetworkFees,
			amountOf(of.NetReleased),
			of.SweepID,
			rows.Payments[of.PaymentID].Canonical,
			rows.Payments[of.PaymentID].Amount,
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
				"    %s %s %s fee %s pays %s parts %v displaced %v left %s took %s; transaction %s %s %s\n",
				step.Kind,
				step.TransactionID,
				step.State,
				step.NetworkFee,
				step.PaysFee,
				step.Parts,
				step.Displaced,
				step.ResidueAdded,
				step.ResidueTaken,
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
