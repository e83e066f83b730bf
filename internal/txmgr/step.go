package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/together"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// Step works on one batch of due transactions of a network, one wallet after the other: it signs, broadcasts, looks up
// or replaces each. did is false when nothing was done. An error of one transaction is logged and delays that one;
// the error returned is the store's or the context's.
func (o *Manager) Step(ctx context.Context, network string) (did bool, err error) {
	return o.StepTogether(ctx, network, 1)
}

// StepTogether does what Step does, with up to limit wallets at a time, and in any order if that is more than one.
func (o *Manager) StepTogether(ctx context.Context, network string, limit int) (did bool, err error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false, err
	}

	sender, ok := driver.(chain.Sender)
	if !ok {
		return false, nil
	}

	// The first look is made when the process begins, not when somebody first asks: by then it is read.
	if _, err := o.IsRead(ctx, network, ""); err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}

	read := o.config.Batch
	if limit > 1 {
		read *= ahead
	}

	due, err := o.db.DueTransactions(ctx, network, o.now(), read)
	if err != nil {
		return false, err
	}

	due, err = o.postponeUnread(ctx, driver.Network(), due)
	if err != nil {
		return false, err
	}

	groups := byWallet(due)
	if limit > 1 {
		together.Shuffle(groups)
	}

	workers, err := o.takeWallets(ctx, driver, sender, groups[:min(len(groups), o.config.Batch)])
	if err != nil {
		return false, err
	}

	defer func() { // also while a panic passes through
		if releaseErr := o.releaseWallets(ctx, workers); err == nil {
			err = releaseErr
		}
	}()

	return len(workers) > 0, together.Each(
		ctx, limit, workers, func(ctx context.Context, d *walletWorker) error { return d.turn(ctx) },
	)
}

// takeWallets takes the leases of the wallets with due transactions, in one update, and returns a worker for each that
// no other turn has.
func (o *Manager) takeWallets(
	ctx context.Context,
	driver chain.Driver,
	sender chain.Sender,
	groups [][]wallet.Transaction,
) (workers []*walletWorker, err error) {
	if len(groups) == 0 {
		return nil, nil
	}

	var names []string

	n := driver.Network()

	for _, mine := range groups {
		names = append(names, walletLease(n, mine[0].Order.From))
	}

	taken, err := o.config.Heartbeat.Take(ctx, names...)
	if err != nil {
		return nil, err
	}

	for i, mine := range groups {
		for _, held := range taken {
			if held.Name == names[i] {
				workers = append(workers, &walletWorker{
					Manager: o,
					network: n,
					driver:  driver,
					sender:  sender,
					party:   mine[0].Order.From,
					due:     mine,
					lease:   held,
				})
			}
		}
	}

	return workers, nil
}

// walletLease returns the name of a wallet's lease.
func walletLease(n chain.Network, at chain.Party) string {
	return "wallet/" + n.Slug + "/" + string(at.Address)
}

func (o *Manager) releaseWallets(ctx context.Context, workers []*walletWorker) error {
	held := make([]lease.Lease, len(workers))
	for i, d := range workers {
		held[i] = d.lease
	}

	return o.config.Heartbeat.Release(ctx, held...)
}

// byWallet groups transactions by the wallet that sends them, those of the first first.
func byWallet(due []wallet.Transaction) (groups [][]wallet.Transaction) {
	at := map[chain.Address]int{}

	for _, t := range due {
		from := t.Order.From.Address

		i, found := at[from]
		if !found {
			i = len(groups)
			at[from] = i

			groups = append(groups, nil)
		}

		groups[i] = append(groups[i], t)
	}

	return groups
}
