package auditor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// ledger sums the credits and debits that the records of one network make at each address of ours. It does no
// I/O.
//
// Payments credit deposit addresses. Our own transactions credit the amount that measurably arrived (by log
// and balance difference) at any address of ours, and debit their outputs and fees. A payout to a deposit
// address is a payment there, so only the payment counts.
type ledger struct {
	network  chain.Network
	native   string // asset id
	masters  map[chain.Address]bool
	balances map[chain.Holding]*ledgerBalance
	// arrivals are the transfers of our own transactions to any address, until close selects those to ours.
	arrivals map[chain.Holding][]audit.Record
	// nonces are the nonces that we signed, by sender; true when a transaction of ours used one or still may.
	nonces map[chain.Address]map[uint64]bool
	// payouts are the transactions of payouts, by payout id, without their raw bytes. batches are those of
	// them that pay several payouts, by their own id.
	payouts, batches map[string]wallet.Transaction
	duplicates       []audit.Difference
	// brought are the amounts that unrecorded transactions of ours brought to addresses. They explain a
	// balance there, up to the amount.
	brought map[chain.Holding]chain.Amount
	// others are the amounts that foreign transactions took from master wallets, and left there. They explain
	// missing amounts.
	others map[chain.Holding]ledgerBalance
}

// ledgerBalance is the sum for one asset at one address, in base units.
type ledgerBalance struct {
	in, out chain.Amount
	records []audit.Record
}

func newLedger(n chain.Network, masters map[chain.Address]bool) *ledger {
	native, _ := n.Native()

	return &ledger{
		network:  n,
		native:   native.ID,
		masters:  masters,
		balances: map[chain.Holding]*ledgerBalance{},
		arrivals: map[chain.Holding][]audit.Record{},
		nonces:   map[chain.Address]map[uint64]bool{},
		payouts:  map[string]wallet.Transaction{},
		batches:  map[string]wallet.Transaction{},
		brought:  map[chain.Holding]chain.Amount{},
		others:   map[chain.Holding]ledgerBalance{},
	}
}

func (l *ledger) balanceOf(address chain.Address, assetID string) *ledgerBalance {
	h := chain.Holding{Address: address, AssetID: assetID}

	b := l.balances[h]
	if b == nil {
		b = &ledgerBalance{}
		l.balances[h] = b
	}

	return b
}

// add adds a record's amounts and keeps the newest records.
func (b *ledgerBalance) add(r audit.Record) {
	b.in, b.out = b.in.Add(r.In), b.out.Add(r.Out)

	b.records = append(b.records, r)
	if len(b.records) >= 4*maxRecords {
		b.records = b.newest()
	}
}

func (b *ledgerBalance) newest() []audit.Record {
	slices.SortStableFunc(
		b.records,
		func(x, y audit.Record) int { return cmp.Or(cmp.Compare(y.Height, x.Height), cmp.Compare(y.ID, x.ID)) },
	)

	return slices.Clone(b.records[:min(len(b.records), maxRecords)])
}

// payment credits a payment that is in a block at or below a height, confirmed or not.
func (l *ledger) payment(p invoice.Payment, height uint64) {
	b := l.balanceOf(p.Address, p.AssetID) // the balance is compared even if the payment does not count
	if p.Simulated || p.Block.IsZero() || p.Block.Height > height ||
		(p.Status != invoice.Detected && p.Status != invoice.Confirmed) {
		return
	}

	b.add(audit.Record{Object: "payment", ID: p.ID, TxHash: p.TxHash, Height: p.Block.Height, In: p.Amount})
}

// transaction debits and credits a transaction of ours that is in a block at or below a height.
//
// A batch counts once: at the transaction that has the signed bytes, not at its members. A reverted
// transaction costs its fee. On UTXO networks its inputs are debited whole (coins has them) and its change is
// credited.
func (l *ledger) transaction(t wallet.Transaction, coins map[chain.Outpoint]chain.Coin, height uint64) {
	i := slices.IndexFunc(t.Attempts, func(a wallet.Attempt) bool { return a.Signed.TxHash == t.TxHash })

	included := i >= 0 && !t.Block.IsZero()
	if len(t.Attempts) > 0 {
		l.markNonce(t, included)
	}

	if t.Kind == wallet.Payout {
		l.payout(t)
	}

	if !included || t.Block.Height > height {
		return
	}

	record := audit.Record{Object: "transaction", ID: t.ID, TxHash: t.TxHash, Height: t.Block.Height}

	payer := t.Order.From.Address
	if t.Order.FeePayer != nil {
		payer = t.Order.FeePayer.Address
	}

	signed := t.Attempts[i].Signed
	for _, in := range signed.Inputs {
		spent := record
		spent.Out = coins[in].Amount // an unindexed coin counts 0 and shows as a difference
		l.balanceOf(coins[in].Owner.Address, l.native).add(spent)
	}

	if len(signed.Inputs) == 0 {
		fee := record
		fee.Out = t.Fee
		l.balanceOf(payer, l.native).add(fee)
	}

	if t.Failure == wallet.FailReverted {
		return
	}

	if t.Kind == wallet.Recovery {
		l.recovery(record, signed.Outputs)
		return
	}

	if len(signed.Inputs) == 0 {
		l.debitOutputs(t, record, signed.Outputs)
	}

	l.creditArrivals(t, record)
}

// creditArrivals credits the amounts that a transaction of ours brought to addresses of ours. It debits the
// fee that a token took from a receiving wallet.
func (l *ledger) creditArrivals(t wallet.Transaction, record audit.Record) {
	for _, m := range t.Transfers {
		h := chain.Holding{Address: m.To, AssetID: m.AssetID}
		if t.Kind == wallet.Payout && !l.masters[m.To] {
			continue // to a stranger, or to a deposit address, where the payment counts
		}

		arrived := record
		arrived.In = m.Amount
		l.arrivals[h] = append(l.arrivals[h], arrived)

		if t.Kind == wallet.Sweep && m.From != t.Order.From.Address &&
			l.masters[m.From] { // a token takes its fee from the receiver
			taken := record
			taken.Out = m.Amount
			l.balanceOf(m.From, m.AssetID).add(taken)
		}
	}
}

// debitOutputs debits the amounts that outputs took from the sender. A delegation of stake takes nothing.
func (l *ledger) debitOutputs(t wallet.Transaction, record audit.Record, outputs []chain.Output) {
	for i, o := range outputs {
		if !chaindata.MovesCoin(o) || l.tookNothing(t, i, o) {
			continue
		}

		paid := record
		paid.Out = l.sent(t, o)
		l.balanceOf(t.Order.From.Address, o.AssetID).add(paid)
	}
}

// tookNothing reports whether a token refused to pay one output of a payout without a revert. Then nothing
// came to the destination, and the sender's logs fall short of the sum of the outputs by at least the
// output's amount.
func (l *ledger) tookNothing(t wallet.Transaction, index int, o chain.Output) bool {
	if t.Kind != wallet.Payout || o.AssetID == l.native || !walletstate.DeliveredTo(t, index).IsZero() {
		return false
	}

	var ordered, logged chain.Amount

	for _, other := range t.Order.Outputs {
		if other.AssetID == o.AssetID {
			ordered, _ = ordered.AddOK(other.Amount)
		}
	}

	for _, m := range t.Transfers {
		if m.AssetID == o.AssetID && m.From == t.Order.From.Address {
			logged, _ = logged.AddOK(m.Amount)
		}
	}

	return logged.Cmp(ordered.SubFloor(o.Amount)) <= 0
}

// recovery credits the amounts that a recovery brought to the master wallet, if its balances show the asset.
// Nothing is debited, because no balance showed the amount before.
func (l *ledger) recovery(record audit.Record, outputs []chain.Output) {
	for _, o := range outputs {
		if _, enabled := l.network.AssetByID(o.AssetID); enabled {
			arrived := record
			arrived.In = o.Amount
			l.balanceOf(o.To, o.AssetID).add(arrived)
		}
	}
}

// sent returns the amount that a transaction's output took from its sender. That is the ordered amount, the
// token's own fee, and amounts that its logs show as taken beyond that and given back.
func (l *ledger) sent(t wallet.Transaction, o chain.Output) chain.Amount {
	if len(t.Order.Outputs) != 1 {
		return o.Amount // an excess cannot be attributed to one output
	}

	var logged, beyond chain.Amount // beyond is what the token kept for itself or gave back

	from, fits := t.Order.From.Address, true
	asset, _ := l.network.AssetByID(o.AssetID)

	for _, m := range t.Transfers {
		ok := true

		switch {
		case m.AssetID != o.AssetID || m.From == m.To:
		case m.From == from:
			logged, ok = logged.AddOK(m.Amount)

			if ok && m.To == asset.Contract { // a transfer fee on top of the amount that arrives
				beyond, ok = beyond.AddOK(m.Amount)
			}
		case m.To == from:
			beyond, ok = beyond.AddOK(m.Amount)
		}

		fits = fits && ok
	}

	if more, ok := o.Amount.AddOK(beyond); ok && fits { // otherwise the logs cannot be added up
		return chaindata.Max(o.Amount, chaindata.Min(logged, more))
	}

	return o.Amount
}

// close credits the transfers of our own transactions to addresses of ours: master wallets, and addresses
// that received or sent. Transfers to others, such as platform fees, do not count. It returns every holding
// to compare, sorted by address and asset.
func (l *ledger) close() []chain.Holding {
	ours := maps.Clone(l.masters)
	for h := range l.balances {
		ours[h.Address] = true
	}

	for h, arrived := range l.arrivals {
		if !ours[h.Address] {
			continue
		}

		for _, r := range arrived {
			l.balanceOf(h.Address, h.AssetID).add(r)
		}
	}

	l.arrivals = nil
	for address := range l.masters {
		for _, asset := range l.network.Assets {
			l.balanceOf(address, asset.ID)
		}
	}

	return slices.SortedFunc(maps.Keys(l.balances), func(a, b chain.Holding) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.AssetID, b.AssetID))
	})
}

// markNonce records the nonce of a signed transaction. Two transactions of ours may have the same one: a
// cancel and the transaction that it replaces.
func (l *ledger) markNonce(t wallet.Transaction, included bool) {
	from := t.Order.From.Address
	if l.nonces[from] == nil {
		l.nonces[from] = map[uint64]bool{}
	}

	// Unless it is proven dead, this transaction may have used the nonce.
	l.nonces[from][t.Nonce] = l.nonces[from][t.Nonce] || included || walletstate.Live(t)
}

// senders returns the addresses that signed anything, in order.
func (l *ledger) senders() []chain.Address { return slices.Sorted(maps.Keys(l.nonces)) }

// foreignNonces returns the nonces, from our first one up to the network's count, that no transaction of ours
// can have used. next is the wallet's next nonce, read after the count. So nonces that were signed since the
// transactions were read are below next.
func (l *ledger) foreignNonces(from chain.Address, counted, next uint64) (nonces []uint64) {
	own := l.nonces[from]
	signed := slices.Sorted(maps.Keys(own))

	last := signed[len(signed)-1]
	for n := signed[0]; n < counted; n++ {
		ours, known := own[n]
		if known && ours || !known && n > last && n < next {
			continue
		}

		nonces = append(nonces, n)
	}

	return nonces
}

// recordsOf returns the newest records about the native coin of an address.
func (l *ledger) recordsOf(address chain.Address) []audit.Record {
	return l.balanceOf(address, l.native).newest()
}

// payout keeps the transaction of a payout for comparison, and reports a second transaction.
func (l *ledger) payout(t wallet.Transaction) {
	t.Attempts = slices.Clone(t.Attempts)
	for i := range t.Attempts {
		t.Attempts[i].Signed.Raw = nil
	}

	if other, known := l.payouts[t.ObjectID]; known {
		l.duplicates = append(l.duplicates, audit.Difference{
			Kind:    audit.RecordsDisagree,
			Network: l.network.Slug,
			Message: fmt.Sprintf("payout %s has two transactions", t.ObjectID),
			Records: []audit.Record{
				{Object: "payout", ID: t.ObjectID},
				{Object: "transaction", ID: other.ID, TxHash: other.TxHash},
				{Object: "transaction", ID: t.ID, TxHash: t.TxHash},
			},
		})
	}

	l.payouts[t.ObjectID] = t
	if len(t.BatchMembers) > 0 {
		l.batches[t.ID] = t
	}
}
