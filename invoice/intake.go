package invoice

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/send"
	"github.com/seed-8ee7f392/payments/chain/watch"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// PreparedBatch is a batch of the follower with the prices that taking it in may need. It can be split by
// transfer (Keys, Only, Without), so that one transfer whose storing fails for its own sake does not keep the
// others back.
type PreparedBatch struct {
	batch  watch.Batch
	prices prices
	// replaced are waiting transactions whose coins another transaction took.
	replaced map[string]bool
	// only, when not nil, are the keys to take in; without those to leave out.
	only, without map[TransferKey]bool
	// known are the keys of payments that the batch may confirm or take back.
	known []TransferKey
	// detectedBy is how what is new was found.
	detectedBy Detection
	// retry is the row that is being tried again.
	retry string
}

// sighting is one transfer with the block it is in; the zero block is the pool.
type sighting struct {
	chain.Transfer
	at chain.Ref
}

func (t sighting) key() TransferKey { return TransferKey{TxHash: t.TxHash, Index: t.Index} }

// sightings lists the transfers of the batch, blocks before pool, each key once: a block outranks the pool.
func (p PreparedBatch) sightings() []sighting {
	var out []sighting
	seen := map[TransferKey]bool{}
	add := func(t chain.Transfer, at chain.Ref) {
		s := sighting{t, at}
		if !seen[s.key()] && p.takes(s.key()) {
			seen[s.key()] = true
			out = append(out, s)
		}
	}
	for _, b := range p.batch.Blocks {
		for _, t := range b.Transfers {
			add(t, b.Ref)
		}
	}
	for _, tx := range p.batch.Pool {
		for _, t := range tx.Transfers {
			add(t, chain.Ref{})
		}
	}
	return out
}

func (p PreparedBatch) takes(k TransferKey) bool {
	return (p.only == nil || p.only[k]) && !p.without[k]
}

// Keys returns what the batch can be split into: the transfers in it that were ours when it was prepared, and
// the payments that it may confirm or take back.
func (p PreparedBatch) Keys() []TransferKey {
	return slices.DeleteFunc(slices.Clone(p.known), func(k TransferKey) bool { return !p.takes(k) })
}

// Only returns the batch with nothing but these transfers.
func (p PreparedBatch) Only(keys ...TransferKey) PreparedBatch {
	p.only = map[TransferKey]bool{}
	for _, k := range keys {
		p.only[k] = true
	}
	return p
}

// Without returns the batch without these transfers.
func (p PreparedBatch) Without(keys ...TransferKey) PreparedBatch {
	p.without = maps.Clone(p.without)
	if p.without == nil {
		p.without = map[TransferKey]bool{}
	}
	for _, k := range keys {
		p.without[k] = true
	}
	return p
}

// PrepareBatch reads what taking in a batch will need, outside of any transaction: which of its recipients are
// ours as far as can be told now, and the prices of what they got and of what may confirm. ApplyTx matches again.
func (s *Service) PrepareBatch(ctx context.Context, b watch.Batch) (PreparedBatch, error) {
	p := PreparedBatch{batch: b, prices: prices{}, detectedBy: ByPoll}
	s.recall(b.Network.Slug, p.prices)
	matched, addresses, err := s.match(ctx, s.db, b.Network, p.sightings())
	if err != nil {
		return PreparedBatch{}, err
	}
	known := map[TransferKey]bool{}
	for _, m := range matched {
		known[m.key()] = true
	}
	if err := s.wantForNew(ctx, p.prices, b.Network, matched, addresses); err != nil {
		return PreparedBatch{}, err
	}
	waiting, err := s.unconfirmed(ctx, s.db, b.Network.Slug, top(b))
	if err != nil {
		return PreparedBatch{}, err
	}
	if b.Rewound {
		above, err := s.db.PaymentsAbove(ctx, b.Network.Slug, b.ForkedFrom.Height)
		if err != nil {
			return PreparedBatch{}, err
		}
		waiting = append(waiting, above...)
	}
	for _, w := range waiting {
		if a, ok := b.Network.AssetByID(w.AssetID); ok {
			p.prices.wantUSD(a, b.Network)
		}
		known[TransferKey{w.TxHash, w.TxIndex}] = true
	}
	p.known = slices.SortedFunc(maps.Keys(known), func(a, b TransferKey) int {
		return cmp.Or(cmp.Compare(a.TxHash, b.TxHash), cmp.Compare(a.Index, b.Index))
	})
	p.replaced = s.replaced(b, matched)
	return p, s.fill(ctx, p.prices)
}

// top is the height up to which payments may confirm with the batch.
func top(b watch.Batch) uint64 {
	height := b.Head.Tip.Height
	if n := len(b.Blocks); n > 0 {
		height = max(height, b.Blocks[n-1].Height)
	}
	return height
}

// wantForNew asks for the prices at which new payments are credited and valued.
func (s *Service) wantForNew(ctx context.Context, p prices, n chain.Network, matched []sighting, addresses map[chain.Address]Address) error {
	var ids []string
	for _, m := range matched {
		if id := addresses[m.To].InvoiceID; id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	invoices := map[string]Invoice{}
	if ids = slices.Compact(ids); len(ids) > 0 {
		list, err := s.db.InvoicesByID(ctx, ids)
		if err != nil {
			return err
		}
		for _, inv := range list {
			invoices[inv.ID] = inv
		}
	}
	for _, m := range matched {
		asset, ok := n.AssetByID(m.AssetID)
		if !ok {
			continue
		}
		p.wantUSD(asset, n)
		a := addresses[m.To]
		inv, ok := invoices[a.InvoiceID]
		if !ok || inv.Kind != Fiat {
			continue
		}
		if o := inv.Option(a.OptionID); o != nil && madeAt(s.now(), m.at).After(o.QuoteExpiresAt) {
			p.want(priceOf(asset), inv.Currency)
		}
	}
	return nil
}

// madeAt is when a payment counts as made: min(first seen, block time).
func madeAt(firstSeen time.Time, at chain.Ref) time.Time {
	if !at.IsZero() && !at.Time.IsZero() && at.Time.Before(firstSeen) {
		return at.Time
	}
	return firstSeen
}

// match returns the sightings that could be payments to us, with our addresses: one indexed query. What moved
// nothing, or more than is taken in, is left out here.
func (s *Service) match(ctx context.Context, r Reader, n chain.Network, all []sighting) ([]sighting, map[chain.Address]Address, error) {
	if len(all) == 0 {
		return nil, nil, nil
	}
	recipients := make(map[chain.Address]bool, len(all))
	for _, t := range all {
		if !t.Amount.IsZero() {
			recipients[t.To] = true
		}
	}
	list, err := r.MatchAddresses(ctx, n.Space(), slices.Sorted(maps.Keys(recipients)))
	if err != nil {
		return nil, nil, err
	}
	ours := make(map[chain.Address]Address, len(list))
	for _, a := range list {
		if a.Kind != ForWallet {
			ours[a.Address] = a
		}
	}
	var out []sighting
	for _, t := range all {
		if _, ok := ours[t.To]; !ok || t.Amount.IsZero() {
			continue
		}
		if chain.MaxTransfer.Less(t.Amount) {
			s.log.LogAttrs(ctx, slog.LevelError, "a transfer to an address of ours is larger than any is taken in; it was ignored",
				slog.String("network", n.Slug), slog.String("tx", t.TxHash), slog.Any("index", t.Index), slog.String("amount", t.Amount.String()))
			continue
		}
		out = append(out, t)
	}
	return out, ours, nil
}

// unconfirmed returns every payment in a block up to height that waits for its confirmation.
func (s *Service) unconfirmed(ctx context.Context, r Reader, network string, height uint64) ([]Payment, error) {
	for limit := 1000; ; limit *= 4 {
		page, err := r.UnconfirmedPayments(ctx, network, height, limit)
		if err != nil || len(page) < limit {
			return page, err
		}
	}
}

// replaced returns the waiting transactions of ours whose coins the batch shows spent by another. It also keeps
// what the pool shows of their inputs for later batches. A process that did not see the inputs learns of a
// replacement when the transaction has been out of sight for a day.
func (s *Service) replaced(b watch.Batch, matched []sighting) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := s.inputs[b.Network.Slug]
	if ours == nil {
		ours = map[string][]chain.Outpoint{}
		s.inputs[b.Network.Slug] = ours
	}
	for _, m := range matched {
		if m.at.IsZero() {
			for _, tx := range b.Pool {
				if tx.TxHash == m.TxHash && ours[tx.TxHash] == nil {
					for _, spend := range tx.Spent {
						ours[tx.TxHash] = append(ours[tx.TxHash], spend.Outpoint)
					}
				}
			}
		} else {
			delete(ours, m.TxHash)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	by := map[chain.Outpoint]string{}
	for _, tx := range b.Pool {
		for _, spend := range tx.Spent {
			by[spend.Outpoint] = tx.TxHash
		}
	}
	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			by[spend.Outpoint] = spend.By
		}
	}
	out := map[string]bool{}
	for hash, inputs := range ours {
		for _, in := range inputs {
			if other := by[in]; other != "" && other != hash {
				out[hash] = true
			}
		}
	}
	return out
}

// ApplyTx takes a batch in: what it shows of our addresses becomes payments, payments follow their transactions
// through the chain, and invoices follow their payments. cursor is the network's as the batch leaves it
// (Batch.Advance). The same batch twice changes nothing. A price that was not prepared is Unprepared.
func (s *Service) ApplyTx(ctx context.Context, tx Tx, p PreparedBatch, cursor watch.Cursor) error {
	in := &intake{
		ledger: s.newLedger(tx, p.batch.Network.Slug, p.prices), p: p, n: p.batch.Network, cursor: cursor,
		trusted: map[uint64]string{}, seen: map[string]bool{},
	}
	return in.run(ctx)
}

// intake is one run of ApplyTx.
type intake struct {
	*ledger
	p      PreparedBatch
	n      chain.Network
	cursor watch.Cursor
	// trusted are the hashes of canonical blocks by height, as far as cursor and batch tell.
	trusted map[uint64]string
	// seen are the ids of payments that the batch shows.
	seen map[string]bool
}

func (in *intake) run(ctx context.Context) error {
	for _, ref := range append([]chain.Ref{in.cursor.At}, in.cursor.Recent...) {
		in.trusted[ref.Height] = ref.Hash
	}
	for _, b := range in.p.batch.Blocks {
		in.trusted[b.Height] = b.Hash
	}
	lost, err := in.lost(ctx)
	if err != nil {
		return err
	}
	if err := in.sight(ctx, lost); err != nil {
		return err
	}
	for _, p := range lost {
		if err := in.orphan(ctx, p); err != nil {
			return err
		}
	}
	if err := in.pool(ctx); err != nil {
		return err
	}
	if err := in.confirmations(ctx); err != nil {
		return err
	}
	return in.flush(ctx)
}

// lost returns the payments whose blocks a fork took out of the chain, by id.
func (in *intake) lost(ctx context.Context) (map[string]Payment, error) {
	if !in.p.batch.Rewound {
		return nil, nil
	}
	above, err := in.tx.PaymentsAbove(ctx, in.n.Slug, in.p.batch.ForkedFrom.Height)
	if err != nil {
		return nil, err
	}
	lost := map[string]Payment{}
	for _, p := range above {
		canonical := false
		for _, b := range in.p.batch.Blocks {
			canonical = canonical || b.Hash == p.Block.Hash
		}
		if !canonical && !p.Simulated && in.p.takes(TransferKey{p.TxHash, p.TxIndex}) {
			lost[p.ID] = p
		}
	}
	return lost, nil
}

// sight books every transfer of the batch that is a payment to us.
func (in *intake) sight(ctx context.Context, lost map[string]Payment) error {
	matched, addresses, err := in.s.match(ctx, in.tx, in.n, in.p.sightings())
	if err != nil || len(matched) == 0 {
		return err
	}
	var hashes []string
	var keys []TransferKey
	for _, m := range matched {
		hashes, keys = append(hashes, m.TxHash), append(keys, m.key())
	}
	slices.Sort(hashes)
	own, err := in.tx.OwnTransactions(ctx, in.n.Slug, slices.Compact(hashes))
	if err != nil {
		return err
	}
	stored, err := in.tx.PaymentsByTransfer(ctx, in.n.Slug, keys)
	if err != nil {
		return err
	}
	known := map[TransferKey]Payment{}
	for _, p := range stored {
		known[TransferKey{p.TxHash, p.TxIndex}] = p
	}
	for _, m := range matched {
		asset, enabled := in.n.AssetByID(m.AssetID)
		kind, ours := own[m.TxHash]
		if !enabled || ours && kind != send.Payout {
			continue // no asset of ours, or our own top-up, fee, sweep or cancellation
		}
		if p, ok := known[m.key()]; ok {
			if err := in.again(ctx, p, m, lost); err != nil {
				return err
			}
			continue
		}
		if err := in.first(ctx, m, addresses[m.To], asset); err != nil {
			return err
		}
	}
	return nil
}

// again follows a known payment to where its transaction is now. One that a fork took out of its block and that
// is in another now keeps its id and tells nothing, unless it had been confirmed and is not deep enough there.
func (in *intake) again(ctx context.Context, stored Payment, m sighting, lost map[string]Payment) error {
	a, p, err := in.of(ctx, stored)
	if err != nil {
		return err
	}
	in.seen[p.ID] = true
	if _, gone := lost[p.ID]; gone {
		delete(lost, p.ID)
		switch {
		case p.Status == Confirmed && !m.at.IsZero() && in.holds(p.Required, m.at):
			return in.move(a, p, func(p *Payment) ([]event.Type, error) { return nil, p.Move(m.at) })
		case p.Status == Confirmed:
			if err := in.move(a, p, func(p *Payment) ([]event.Type, error) { return p.Orphan(in.now) }); err != nil {
				return err
			}
		case m.at.IsZero(): // detected in a block that is gone, and back in the pool
			return in.move(a, p, func(p *Payment) ([]event.Type, error) {
				p.Block = chain.Ref{}
				return p.See(m.at)
			})
		}
	}
	if p.Status == Confirmed {
		return nil // in its block, or read again in a back-fill
	}
	return in.move(a, p, func(p *Payment) ([]event.Type, error) { return p.See(m.at) })
}

// first takes in a payment that was not known.
func (in *intake) first(ctx context.Context, m sighting, to Address, asset chain.Asset) error {
	attached, err := in.attach(ctx, m, to, asset)
	if err != nil || attached {
		return err
	}
	p := Payment{
		ID: in.s.ids.Next(), Owner: to.Owner, Status: Detected, InvoiceID: to.InvoiceID, DepositAddressID: to.DepositAddressID,
		Network: in.n.Slug, Asset: asset.Symbol, AssetID: asset.ID, Contract: asset.Contract, Decimals: asset.Decimals,
		Address: to.Address, Key: to.Key, FromAddress: m.From, TxHash: m.TxHash, TxIndex: m.Index, Amount: m.Amount,
		Block: m.at, Required: in.n.Confirmations, DetectedBy: in.p.detectedBy, DetectedAt: in.now,
	}
	if p.DetectedBy == ByHint && p.Block.IsZero() {
		p.DueAt = in.now.Add(postponed) // no scan may ever show it: Step looks for its block
	}
	_, _, err = in.enter(ctx, p, to.OptionID, asset)
	return err
}

// enter credits a new payment and adds it to what it pays.
func (l *ledger) enter(ctx context.Context, p Payment, optionID string, asset chain.Asset) (*account, *Payment, error) {
	var a *account
	var err error
	if p.InvoiceID != "" {
		if a, err = l.invoiceAccount(ctx, p.InvoiceID); err != nil {
			return nil, nil, err
		}
		p.InvoiceNumber = a.invoice.Number
		if err := l.credit(a.invoice, &p, optionID, asset); err != nil {
			return nil, nil, err
		}
	} else {
		if a, err = l.depositAccount(ctx, p.Owner, p.DepositAddressID); err != nil {
			return nil, nil, err
		}
		p.DepositAddressName = a.deposit.Name
	}
	return a, l.add(a, p), nil
}

// credit fixes what a payment pays and at which rate: the quote's, or a fresh one when the payment was made
// after the quote ran out (the quote's again when there is no fresh one). Money in another asset or on another
// network than the option's pays nothing.
func (l *ledger) credit(inv *Invoice, p *Payment, optionID string, asset chain.Asset) error {
	o := inv.Option(optionID)
	if o == nil || !o.takes(p.Network, p.AssetID) {
		return nil
	}
	p.OptionID = o.ID
	if inv.Kind != Fiat {
		return nil
	}
	p.Rate = o.Rate
	if madeAt(p.DetectedAt, p.Block).After(o.QuoteExpiresAt) {
		fresh, ok, err := l.price(priceOf(asset), inv.Currency)
		if err != nil {
			return err
		}
		if ok {
			p.Rate = fresh
		}
	}
	p.Credit = creditOf(p.Amount, p.Decimals, p.Rate)
	return nil
}

// orphan takes back a payment whose block left the chain.
func (in *intake) orphan(ctx context.Context, stored Payment) error {
	a, p, err := in.of(ctx, stored)
	if err != nil {
		return err
	}
	return in.move(a, p, func(p *Payment) ([]event.Type, error) { return p.Orphan(in.now) })
}

// pool follows the payments that wait in no block: whose transaction was replaced is dropped, whose transaction
// the pool does not have any more is lost.
func (in *intake) pool(ctx context.Context) error {
	if !in.p.batch.PoolRead && len(in.p.replaced) == 0 {
		return nil
	}
	waiting, err := in.tx.PoolPayments(ctx, in.n.Slug)
	if err != nil {
		return err
	}
	for _, stored := range waiting {
		if stored.Simulated || stored.TxHash == "" || in.seen[stored.ID] && !in.p.replaced[stored.TxHash] || !in.p.takes(TransferKey{stored.TxHash, stored.TxIndex}) {
			continue
		}
		a, p, err := in.of(ctx, stored)
		if err != nil {
			return err
		}
		if p.Status != Detected || !p.Block.IsZero() {
			continue // this batch found it
		}
		switch {
		case in.p.replaced[p.TxHash]:
			err = in.move(a, p, func(p *Payment) ([]event.Type, error) { return p.Drop() })
		case in.p.batch.PoolRead:
			err = in.move(a, p, func(p *Payment) ([]event.Type, error) { return nil, p.Lose(in.now) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// confirmations confirms what is deep enough. A payment whose block is known not to be canonical, because the
// fork was not taken in for it, is orphaned instead.
func (in *intake) confirmations(ctx context.Context) error {
	waiting, err := in.s.unconfirmed(ctx, in.tx, in.n.Slug, in.cursor.At.Height)
	if err != nil {
		return err
	}
	held, err := in.retries(ctx, len(waiting) > 0)
	if err != nil {
		return err
	}
	for _, stored := range waiting {
		key := TransferKey{stored.TxHash, stored.TxIndex}
		if !stored.Simulated && in.p.takes(key) && !held[key] && (in.near(stored.Block) || in.foreign(stored.Block)) {
			if _, _, err := in.of(ctx, stored); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(in.accounts)) {
		a := in.accounts[id]
		if err := in.require(a); err != nil {
			return err
		}
		for _, p := range a.payments {
			key := TransferKey{p.TxHash, p.TxIndex}
			if p.Network != in.n.Slug || p.Status != Detected || p.Block.IsZero() || p.Simulated || !in.p.takes(key) || held[key] {
				continue
			}
			switch {
			case in.foreign(p.Block):
				err = in.move(a, p, func(p *Payment) ([]event.Type, error) { return p.Orphan(in.now) })
			case in.holds(p.Required, p.Block):
				err = in.confirm(a, p)
			}
			if err != nil {
				return err
			}
		}
		in.tellNew(a)
	}
	return nil
}

// near reports whether a block could be deep enough under the least that the network ever asks for.
func (in *intake) near(block chain.Ref) bool {
	least := in.n.Confirmations
	for _, tier := range in.n.Tiers {
		least = min(least, tier.Confirmations)
	}
	return in.holds(least, block)
}

// foreign reports whether a block is known not to be in the chain.
func (in *intake) foreign(block chain.Ref) bool {
	hash, known := in.trusted[block.Height]
	return known && hash != block.Hash
}

// holds is the network's rule: N confirmations, counted up to the last block that was read so that every one of
// them was checked, or its safe or final block reached. Where finality cannot be read, N is the fall-back.
func (in *intake) holds(required uint64, block chain.Ref) bool {
	at := in.cursor.At.Height
	if at < block.Height {
		return false
	}
	reached := chain.Ref{}
	switch in.n.Rule {
	case chain.RuleSafe:
		reached = in.cursor.Safe
		if reached.IsZero() {
			reached = in.cursor.Final
		}
	case chain.RuleFinalized:
		reached = in.cursor.Final
	}
	if !reached.IsZero() {
		return reached.Height >= block.Height
	}
	return at-block.Height+1 >= required
}

// retries returns the transfers that wait in retry rows: they are not taken up again with every batch.
func (in *intake) retries(ctx context.Context, any bool) (map[TransferKey]bool, error) {
	if !any {
		return nil, nil
	}
	rows, err := in.tx.Retries(ctx, in.n.Slug, in.now.AddDate(100, 0, 0), 10000)
	if err != nil {
		return nil, err
	}
	held := map[TransferKey]bool{}
	for _, r := range rows {
		if r.ID != in.p.retry {
			held[TransferKey{r.Transfer.TxHash, r.Transfer.Index}] = true
		}
	}
	return held, nil
}

// tellNew tells of payments that this transaction saw first and did not confirm at once.
func (l *ledger) tellNew(a *account) {
	for _, p := range a.payments {
		if p.Status == Detected && slices.Contains(a.fresh, p.ID) {
			a.events = append(a.events, l.paymentEvent(p, p.detectedEvent(), ""))
		}
	}
	a.fresh = nil
}

// attach gives a transfer to the payment that was known from the balance alone which it explains: one read at
// its block or later. If it explains only a part, the rest stays a payment without a transaction.
func (in *intake) attach(ctx context.Context, m sighting, to Address, asset chain.Asset) (bool, error) {
	if m.at.IsZero() {
		return false, nil
	}
	candidates, err := in.tx.BalancePayments(ctx, in.n.Slug, to.Address, asset.ID)
	if err != nil {
		return false, err
	}
	var a *account
	for _, c := range candidates {
		if c.TxHash == "" {
			if a, _, err = in.of(ctx, c); err != nil {
				return false, err
			}
		}
	}
	if a == nil {
		return false, nil
	}
	for _, p := range a.payments { // with what this batch left of one
		if p.TxHash != "" || p.Network != in.n.Slug || p.Address != to.Address || p.AssetID != asset.ID || p.Block.IsZero() || p.Block.Height < m.at.Height {
			continue
		}
		if p.Status == Confirmed && p.Amount != m.Amount {
			in.s.log.LogAttrs(ctx, slog.LevelWarn, "a transfer explains a part of a confirmed payment that was known from the balance; it is counted already",
				slog.String("payment", p.ID), slog.String("tx", m.TxHash), slog.Any("index", m.Index))
			return true, nil
		}
		rest := *p
		err := in.move(a, p, func(p *Payment) ([]event.Type, error) {
			types, err := p.Attach(m.Transfer, m.at)
			if slices.Contains(a.fresh, p.ID) {
				types = nil // nobody heard of it yet
			}
			return types, err
		})
		if err != nil {
			return false, err
		}
		in.seen[p.ID] = true
		if !rest.Amount.Less(m.Amount) && rest.Amount != m.Amount {
			rest.ID, rest.Amount, rest.Version, rest.Sequence = in.s.ids.Next(), rest.Amount.Sub(m.Amount), 0, 0
			rest.Credit = decimal.Decimal{}
			if !rest.Rate.IsZero() {
				rest.Credit = creditOf(rest.Amount, rest.Decimals, rest.Rate)
			}
			in.add(a, rest)
		}
		return true, nil
	}
	return false, nil
}

// String names the batch in errors.
func (p PreparedBatch) String() string {
	return fmt.Sprintf("batch of %s up to block %d", p.batch.Network.Slug, top(p.batch))
}
