package simulation

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Violation is something that the library got wrong.
type Violation struct {
	// Rule names the rule: one of those in docs/proof/testing.md.
	Rule string
	// Text says what was seen.
	Text string
	// Step is the number of operations that had been played.
	Step int
}

// String returns rule and text.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (operation %d)", v.Rule, v.Text, v.Step)
}

// place is a holding on one network.
type place struct {
	network string
	chain.Holding
}

// records are what the service has stored, as its commits showed.
type records struct {
	invoices    map[string]invoice.Invoice
	payments    map[string]invoice.Payment
	payouts     map[string]payout.Payout
	refunds     map[string]payout.Refund
	settlements map[string]settlement.Settlement
	// sweeps and transactions are those that the shadow folds, and others the ids of cancels and undelegations by
	// their objects.
	sweeps       map[string]settlement.Sweep
	transactions map[string]wallet.Transaction
	others       map[string][]string
	balances     map[place]wallet.Balance
	cursors      map[string]scan.Cursor
	// knownAt are the heights of networks when a wallet of theirs was first on record: what it had done up to there,
	// read or not, was done before it was ours to watch.
	knownAt map[walletOf]uint64
	// sequences are the last ones published, by object.
	sequences map[string]int64
	// confirmed are the sums of confirmed payments.
	confirmed map[place]chain.Amount
	// lastShown are settlements as the last event about each shows them, by id.
	lastShown map[string]string
	// events are the ids of all public events, with the owner's receiver.
	events map[string]string
	// addresses are those that were ever shown to payers.
	addresses map[chain.Address]bool
	// before is what had arrived at an address before it was shown, top-ups included: restored records know neither
	// all of it nor what left since, and their next address may be the same.
	before map[place]chain.Amount
	// shownFor are the invoices and deposit addresses that addresses were shown for.
	shownFor map[chain.Address]string
	// numbers are the ids of invoices by owner and number.
	numbers map[string]string
	// acknowledged are the transactions of which a person has said what they were, by hash.
	acknowledged map[string]bool
}

// walletOf is an address of a network.
type walletOf struct {
	network string
	address chain.Address
}

func newRecords() *records {
	return &records{
		invoices:    map[string]invoice.Invoice{},
		payments:    map[string]invoice.Payment{},
		payouts:     map[string]payout.Payout{},
		refunds:     map[string]payout.Refund{},
		settlements: map[string]settlement.Settlement{},

		sweeps:       map[string]settlement.Sweep{},
		transactions: map[string]wallet.Transaction{},
		others:       map[string][]string{},

		balances:  map[place]wallet.Balance{},
		cursors:   map[string]scan.Cursor{},
		knownAt:   map[walletOf]uint64{},
		sequences: map[string]int64{},
		confirmed: map[place]chain.Amount{},
		lastShown: map[string]string{},
		events:    map[string]string{},
		addresses: map[chain.Address]bool{},
		before:    map[place]chain.Amount{},
		shownFor:  map[chain.Address]string{},

		numbers:      map[string]string{},
		acknowledged: map[string]bool{},
	}
}

func (r *records) clone() *records {
	return &records{
		invoices:    maps.Clone(r.invoices),
		payments:    maps.Clone(r.payments),
		payouts:     maps.Clone(r.payouts),
		refunds:     maps.Clone(r.refunds),
		settlements: maps.Clone(r.settlements),

		sweeps:       maps.Clone(r.sweeps),
		transactions: maps.Clone(r.transactions),
		others:       maps.Clone(r.others),

		balances:  maps.Clone(r.balances),
		cursors:   maps.Clone(r.cursors),
		knownAt:   maps.Clone(r.knownAt),
		sequences: maps.Clone(r.sequences),
		confirmed: maps.Clone(r.confirmed),
		lastShown: maps.Clone(r.lastShown),
		events:    maps.Clone(r.events),
		addresses: maps.Clone(r.addresses),
		before:    maps.Clone(r.before),
		shownFor:  maps.Clone(r.shownFor),

		numbers:      maps.Clone(r.numbers),
		acknowledged: maps.Clone(r.acknowledged),
	}
}

// oracle decides what is true: it follows the canonical chains and the merchants' acts by itself, compares
// every commit with them, and keeps what was wrong.
type oracle struct {
	harness    *harness
	ledgers    map[string]*ledger
	violations []Violation
	records    *records
	backup     *records
	// lost is set once a backup was restored: what was signed since it was made may take nonces.
	lost bool
	// asked are the payouts that merchants asked for, by destination; none is ever forgotten.
	asked map[place]map[string]chain.Amount
	// watch is the watch over progress, by process.
	watches map[int]*watch
	// published are the last sequences that were ever published, by object: receivers remember what a restore forgets.
	published map[string]int64
	step      int
	// paymentsOf are the ids of all payments that an invoice ever had; refundsSeen the refunds that were checked.
	paymentsOf  map[string]map[string]bool
	refundsSeen map[string]bool
	// moved are the settlements that were taken back, or were part of two releases.
	moved map[string]bool
	// thefts are the transactions of thieves, by hash.
	thefts map[string]theft
	// shadow is nil unless places are folded.
	shadow *shadow
}

func newOracle(w *harness) *oracle {
	o := &oracle{
		harness:   w,
		ledgers:   map[string]*ledger{},
		records:   newRecords(),
		asked:     map[place]map[string]chain.Amount{},
		watches:   map[int]*watch{},
		published: map[string]int64{},

		paymentsOf:  map[string]map[string]bool{},
		refundsSeen: map[string]bool{},
		moved:       map[string]bool{},
		thefts:      map[string]theft{},
	}
	for _, n := range w.networks {
		o.ledgers[n.slug()] = newLedger(o, n)
	}

	if shadowing {
		o.shadow = newShadow(o)
	}

	return o
}

// violate records that a rule was broken.
func (o *oracle) violate(rule, format string, args ...any) {
	if len(o.violations) < maxViolations && !o.harness.plan.Tolerates[rule] {
		o.violations = append(
			o.violations,
			Violation{Rule: rule, Text: fmt.Sprintf(format, args...), Step: o.step},
		)
	}
}

// maxViolations is how many violations of one run are kept.
const maxViolations = 100

// ownWallet says that a wallet of a network is the service's.
func (o *oracle) ownWallet(n network, address chain.Address) {
	o.ledgers[n.slug()].ours[address] = true
}

// committed compares one commit with the truth.
func (o *oracle) committed(_ *process, c *commit) {
	for _, l := range o.ledgers {
		if l.sync() {
			o.checkSent(l)
		}
	}

	for _, a := range c.addresses {
		o.show(a.Address)
		o.checkShownFor(a)
	}

	o.checkStates(c)
	o.checkCreations(c)
	o.checkEvents(c)
	o.checkLast(c)

	before, payments := o.before(c)
	o.remember(c)
	o.checkInvoices(c, before)

	for _, p := range c.payments {
		o.checkCredited(payments, p)
		o.checkWorth(payments[p.ID], p)
	}

	for _, s := range c.settlements {
		o.checkFee(s)
	}

	for id, inv := range c.invoices {
		o.checkNumber(inv)

		if inv.Status == invoice.Refunded && before[id].Status != invoice.Refunded {
			o.checkRefunded(inv)
		}
	}

	o.checkConfirmed(c)
	o.checkSpendable(c)
	o.checkReservedFor(c)
	o.checkFrozen(c)
	o.traceCommit(c)

	if o.shadow != nil {
		o.shadow.compare(c)
	}
}

// before returns the invoices and payments of a commit as they were.
func (o *oracle) before(c *commit) (map[string]invoice.Invoice, map[string]invoice.Payment) {
	invoices, payments := map[string]invoice.Invoice{}, map[string]invoice.Payment{}

	for id := range c.payments {
		if p, known := o.records.payments[id]; known {
			payments[id] = p
			invoices[p.InvoiceID] = o.records.invoices[p.InvoiceID]
		}
	}

	for id := range c.invoices {
		invoices[id] = o.records.invoices[id]
	}

	return invoices, payments
}

// show notes that an address is shown to payers from now on.
func (o *oracle) show(address chain.Address) {
	if o.records.addresses[address] {
		return
	}

	o.records.addresses[address] = true

	for slug, l := range o.ledgers {
		l.ours[address] = true

		for holding, arrived := range l.tip().arrived {
			if holding.Address == address && !arrived.all.IsZero() {
				o.records.before[place{slug, holding}] = arrived.all
			}
		}
	}
}

// traceCommit adds a commit to the trace, by which two runs are compared.
func (o *oracle) traceCommit(c *commit) {
	for _, e := range c.events {
		fmt.Fprintf(o.harness.trace, "%s %s %d\n", e.ID, e.Type, e.Sequence)
	}

	var sizes [8]byte
	binary.BigEndian.PutUint64(sizes[:], uint64(len(c.payments)<<16+len(c.payouts)<<8+len(c.cursors)))
	o.harness.trace.Write(sizes[:])
}

// remember takes a commit into the records.
func (o *oracle) remember(c *commit) {
	r := o.records

	if o.shadow != nil {
		o.shadow.remember(c)
		r.rememberSweeps(c)
	}

	maps.Copy(r.invoices, c.invoices)
	maps.Copy(r.refunds, c.refunds)

	for id, s := range c.settlements {
		o.noteMoved(r.settlements[id], s)
		r.settlements[id] = s
	}

	for id, p := range c.payments {
		o.countConfirmed(r.payments[id], p)
		r.payments[id] = p
	}

	for id, p := range c.payouts {
		r.payouts[id] = p

		at := place{p.Network, chain.Holding{Address: p.Destination, AssetID: p.AssetID}}
		if o.asked[at] == nil {
			o.asked[at] = map[string]chain.Amount{}
		}

		o.asked[at][id] = p.Amount
	}

	for _, w := range c.wallets {
		of := walletOf{w.Network, w.Party.Address}
		if _, known := r.knownAt[of]; !known {
			r.knownAt[of] = o.ledgers[w.Network].tip().ref.Height
		}
	}

	for _, b := range c.balances {
		r.balances[place{b.Network, chain.Holding{Address: b.Address, AssetID: b.AssetID}}] = b
	}

	for _, cursor := range c.cursors {
		o.checkStopped(r.cursors[cursor.Network], cursor)
		r.cursors[cursor.Network] = cursor
	}
}

// rememberSweeps takes releases and their transactions into the records.
func (r *records) rememberSweeps(c *commit) {
	maps.Copy(r.sweeps, c.sweeps)

	for id, t := range c.transactions {
		_, known := r.transactions[id]
		if !known && (t.Kind == wallet.Cancel || t.Kind == wallet.Undelegate) {
			r.others[t.ObjectID] = append(slices.Clip(r.others[t.ObjectID]), id)
		}

		r.transactions[id] = t
	}
}

func placeOf(p invoice.Payment) place {
	return place{p.Network, chain.Holding{Address: p.Address, AssetID: p.AssetID}}
}

// countConfirmed keeps the sums of confirmed payments.
func (o *oracle) countConfirmed(before, after invoice.Payment) {
	sums := o.records.confirmed

	if before.Status == invoice.Confirmed && !before.Simulated {
		sums[placeOf(before)] = sums[placeOf(before)].Sub(before.Amount)
	}

	if after.Status == invoice.Confirmed && !after.Simulated {
		sums[placeOf(after)] = sums[placeOf(after)].Add(after.Amount)
	}
}

// look compares what is stored with the truth after an operation.
func (o *oracle) look() {
	for _, l := range o.ledgers {
		if l.sync() {
			o.checkSent(l)
		}
	}
}

// backUp keeps the records as they are, and restored takes them back: what was stored in between, addresses and
// events included, is lost.
func (o *oracle) backUp() { o.backup = o.records.clone() }

// restored has the oracle know what the records know again, but what lost records showed to payers: with a new epoch
// none of it is shown for anything else.
func (o *oracle) restored() {
	shown := o.records.shownFor
	o.records = o.backup.clone()

	if o.harness.plan.Epochs {
		o.records.shownFor = shown
	}

	o.lost = true

	if o.shadow != nil {
		o.shadow.index()
	}

	o.watches = map[int]*watch{} // what is to be read again was made long ago
}

// watch is how long a process has been well, without a gap. read is the height that the records of each network had.
type watch struct {
	since, last time.Time
	read        map[string]uint64
}
