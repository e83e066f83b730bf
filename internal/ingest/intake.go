package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// ApplyTx applies a batch: transfers to our addresses become payments, payments follow their
// transactions through the chain, and invoices follow their payments. cursor is the network's as
// Batch.Advance returned it. The same batch twice changes nothing. It fails with invoice.ErrUnprepared when
// a price was not prepared.
func (s *Ingester) ApplyTx(ctx context.Context, tx invoice.Tx, p PreparedBatch, cursor scan.Cursor) error {
	in := &intake{
		ledger: s.newLedger(tx, p.batch.Network.Slug, p.prices),
		p:      p,
		n:      p.batch.Network,
		cursor: cursor,
		seen:   map[string]bool{},
		stored: map[chain.Address][]invoice.Payment{},

		unmeasured: map[invoice.TransferKey]observedTransfer{},
		unsaid:     map[invoice.TransferKey]observedTransfer{},
	}

	return in.run(ctx)
}

// intake is one run of ApplyTx.
type intake struct {
	*ledger
	p      PreparedBatch
	n      chain.Network
	cursor scan.Cursor
	// trusted are the hashes of canonical blocks by height, as far as cursor and batch show.
	trusted map[uint64]string
	// lost are the payments whose blocks a fork took out of the chain and that are not seen again yet, by id.
	lost map[string]invoice.Payment
	// seen are the ids of payments that the batch shows.
	seen map[string]bool
	// unmined are the payments in no block, as they are stored; read once, since flush writes at the end.
	unmined []invoice.Payment
	// unmeasured are the transfers in blocks of which only the logs say what arrived.
	unmeasured map[invoice.TransferKey]observedTransfer
	// unsaid are the transfers that wait for a person to say what they were.
	unsaid map[invoice.TransferKey]observedTransfer
	// stored are the payments to addresses that are not dropped, as they are stored, where they were read.
	stored map[chain.Address][]invoice.Payment
	// paid are our addresses that transfers of the batch pay, dust the transfers that are too small.
	paid map[chain.Address]invoice.Address
	dust []observedTransfer
}

// run applies the batch and writes what changed.
func (in *intake) run(ctx context.Context) error {
	in.trusted = trustedBlocks(in.cursor, in.p.batch.Blocks)

	lost, err := in.lostPayments(ctx)
	if err != nil {
		return err
	}

	if in.unmined, err = in.unminedPayments(ctx); err != nil {
		return err
	}

	in.lost = lost

	if err := in.forgetRetries(ctx); err != nil {
		return err
	}

	if err := in.recordTransfers(ctx, lost); err != nil {
		return err
	}

	if err := in.recordDust(ctx); err != nil {
		return err
	}

	if err := in.displace(ctx, lost); err != nil {
		return err
	}

	if err := in.openAll(ctx, invoicesOf(slices.Collect(maps.Values(lost)))); err != nil {
		return err
	}

	for _, id := range slices.Sorted(maps.Keys(lost)) {
		if err := in.orphan(ctx, lost[id]); err != nil {
			return err
		}
	}

	if err := in.pool(ctx); err != nil {
		return err
	}

	if err := in.confirmations(ctx); err != nil {
		return err
	}

	// A payment whose balances could not be read confirms only once its row is done.
	if err := in.queue(ctx, in.unmeasured, errUnmeasured); err != nil {
		return err
	}

	if err := in.queue(ctx, in.unsaid, errUnsaid); err != nil {
		return err
	}

	return in.flush(ctx)
}

// trustedBlocks returns the hashes of canonical blocks by height, as far as a cursor and the blocks of a batch show.
func trustedBlocks(cursor scan.Cursor, blocks []chain.Block) map[uint64]string {
	trusted := make(map[uint64]string, 1+len(cursor.Recent)+len(blocks))
	trusted[cursor.At.Height] = cursor.At.Hash

	for _, ref := range cursor.Recent {
		trusted[ref.Height] = ref.Hash
	}

	for _, b := range blocks {
		trusted[b.Height] = b.Hash
	}

	return trusted
}

// invoicesOf returns the ids of the invoices of payments.
func invoicesOf(payments []invoice.Payment) []string {
	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.InvoiceID
	}

	return ids
}

// unminedPayments returns the payments in no block, where the batch may drop some or miss them in the pool.
func (in *intake) unminedPayments(ctx context.Context) ([]invoice.Payment, error) {
	if len(in.p.batch.Blocks) == 0 && !in.p.batch.PoolRead {
		return nil, nil
	}

	return in.tx.UnminedPayments(ctx, in.n.Slug)
}

// lostPayments returns the payments whose blocks a fork took out of the chain, by id.
func (in *intake) lostPayments(ctx context.Context) (map[string]invoice.Payment, error) {
	if !in.p.batch.Rewound {
		return nil, nil
	}

	above, err := in.tx.PaymentsAbove(ctx, in.n.Slug, in.p.batch.ForkedFrom.Height)
	if err != nil {
		return nil, err
	}

	lost := map[string]invoice.Payment{}

	for _, p := range above {
		canonical := false
		for _, b := range in.p.batch.Blocks {
			canonical = canonical || b.Hash == p.Block.Hash
		}

		if !canonical && !p.Simulated && in.p.takes(invoicestate.PaymentKey(p)) {
			lost[p.ID] = p
		}
	}

	return lost, nil
}

// recordTransfers records every transfer of the batch that is a payment to us.
func (in *intake) recordTransfers(ctx context.Context, lost map[string]invoice.Payment) error {
	matched, addresses, err := in.s.match(ctx, in.tx, in.n, in.p.transfers())
	if err != nil || len(matched) == 0 {
		return err
	}

	in.paid = addresses
	for _, a := range addresses {
		in.noteRow(a)
	}

	if err := in.dropNothing(ctx, matched); err != nil {
		return err
	}

	if matched, err = in.p.arrived(matched); err != nil {
		return err
	}

	hashes := make([]string, len(matched))
	for i, m := range matched {
		hashes[i] = m.TxHash
	}

	slices.Sort(hashes)
	hashes = slices.Compact(hashes)

	own, err := in.ownTransactions(ctx, hashes)
	if err != nil {
		return err
	}

	known, err := in.tx.PaymentsByHash(ctx, in.n.Slug, hashes)
	if err != nil {
		return err
	}

	return in.recordMatched(ctx, matched, own, known, lost)
}

// recordMatched records the transfers to addresses of ours, but for those of our own transactions.
func (in *intake) recordMatched(
	ctx context.Context,
	matched []observedTransfer,
	own owned,
	known []invoice.Payment,
	lost map[string]invoice.Payment,
) error {
	if err := in.readAll(ctx, matched, own, known); err != nil {
		return err
	}

	for _, m := range matched {
		asset, enabled := in.n.AssetByID(m.AssetID)

		if !enabled {
			continue
		}

		switch own.of(m, in.paid[m.To], asset) {
		case isOurs:
			continue
		case isUnsaid:
			if err := in.withhold(m); err != nil {
				return err
			}

			continue
		case isPayment:
		}

		if in.p.unmeasured[arrivalKey{m.at.Hash, m.key()}] {
			in.unmeasured[m.key()] = m
		}

		if err := in.record(ctx, m, known, in.paid[m.To], asset, lost); err != nil {
			return err
		}
	}

	return nil
}

// readAll reads at once what recording the transfers of a batch asks for: their invoices, with the payments of those,
// and the payments to the addresses at which one may be known from the balance alone.
func (in *intake) readAll(
	ctx context.Context,
	matched []observedTransfer,
	own owned,
	known []invoice.Payment,
) error {
	mined := map[invoice.TransferKey]bool{}
	for _, p := range known {
		mined[invoicestate.PaymentKey(p)] = !p.Block.IsZero()
	}

	var (
		invoices  []string
		addresses []chain.Address
	)

	for _, m := range matched {
		asset, enabled := in.n.AssetByID(m.AssetID)
		if !enabled || m.Amount.Less(asset.Dust) || own.of(m, in.paid[m.To], asset) != isPayment {
			continue
		}

		invoices = append(invoices, in.paid[m.To].InvoiceID)

		if !m.at.IsZero() && !mined[m.key()] {
			addresses = append(addresses, m.To)
		}
	}

	if err := in.openAll(ctx, invoices); err != nil {
		return err
	}

	return in.readBalances(ctx, addresses)
}

// arrived returns the matched transfers with what arrived by each; those by which nothing did are left out.
// It fails with invoice.ErrUnprepared when one in a block was not measured: its address was not ours yet.
func (p PreparedBatch) arrived(matched []observedTransfer) ([]observedTransfer, error) {
	out := matched[:0]

	for _, m := range matched {
		if !m.at.IsZero() {
			amount, ok := p.measured[arrivalKey{m.at.Hash, m.key()}]
			if !ok {
				return nil, fmt.Errorf("transfer %s:%d: %w", m.TxHash, m.Index, invoice.ErrUnprepared)
			}

			m.Amount = amount
		}

		if !m.Amount.IsZero() {
			out = append(out, m)
		}
	}

	return out, nil
}
