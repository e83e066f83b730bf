package simulation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
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

		if of.Status != settlement.Released && !of.CarriedOut.IsZero() {
			s.mark(of.Network, of.Deposit.Address, "left its fee")
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

	hashes := []struct{ figure, today, folded string }{
		{"fee_tx", row.FeeTx, now.FeeTx},
		{"topup_tx", row.TopUpTx, now.TopUpTx},
		{"sweep_tx", row.SweepTx, now.SweepTx},
	}

	for _, of := range hashes {
		switch {
		case of.today == "" && of.folded != "":
			s.differ(at, rows, "its latest was never signed", of.figure, row.ID, of.today, of.folded)
		case of.today != "" && of.folded != "" && of.today != of.folded:
			s.differ(
				at,
				rows,
				"that of an earlier release moved last",
				of.figure,
				row.ID,
				of.today,
				of.folded,
			)
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
