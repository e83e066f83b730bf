package solana

import (
	"context"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// No block proves what a node says of accounts and minimums. Where several nodes are configured, plans and transactions
// rest on what two of them say.

// sharedAnswer returns what a node said, where another one says the same, or none is configured; what two others say
// alike takes its place. Else it is fault.Unavailable: nodes_disagree, or node_unavailable while no other one answers.
// subject names what was asked for.
func sharedAnswer[V comparable](
	ctx context.Context,
	d *driver,
	by *endpoint,
	said V,
	subject string,
	read func(ctx context.Context, e *endpoint) (V, error),
) (V, error) {
	answers, agreed := []V{said}, false

	err := d.nodes.AskAllBeside(ctx, by, 0, func(ctx context.Context, e *endpoint) (bool, error) {
		answer, err := read(ctx, e)
		if err != nil {
			return false, err
		}

		if agreed = slices.Contains(answers, answer); agreed {
			said = answer
		}

		answers = append(answers, answer)

		return agreed, nil
	})
	if err == nil && !agreed {
		err = d.notShared(subject, len(answers))
	}

	return said, err
}

// notShared returns the error of something that no two nodes say alike, of as many as answered; nil of the only node
// that is configured.
func (d *driver) notShared(subject string, answered int) error {
	switch {
	case len(d.nodes.Nodes) == 1:
		return nil
	case answered == 1:
		return fault.New(
			fault.Unavailable, "node_unavailable", "network %s has no second node that says the same of %s",
			d.network.Slug, subject,
		)
	}

	return fault.New(
		fault.Unavailable, "nodes_disagree", "the nodes of network %s say different things of %s",
		d.network.Slug, subject,
	)
}

// sharedRead is sharedAnswer of what is read from a node, and from others.
func sharedRead[V comparable](
	ctx context.Context,
	d *driver,
	by *endpoint,
	subject string,
	read func(ctx context.Context, e *endpoint) (V, error),
) (V, error) {
	said, err := read(ctx, by)
	if err != nil {
		return said, err
	}

	return sharedAnswer(ctx, d, by, said, subject, read)
}

// rentMinimum returns the least lamports that an account of a data size in bytes must hold, as two nodes say it.
func (d *driver) rentMinimum(ctx context.Context, e *endpoint, size int) (uint64, error) {
	return sharedRead(
		ctx, d, e, "the rent minimum",
		func(ctx context.Context, e *endpoint) (lamports uint64, err error) {
			err = e.call(ctx, &lamports, "getMinimumBalanceForRentExemption", size, e.newest())

			return lamports, err
		},
	)
}

// exists reports whether there is an account at an address, as two nodes say it.
func (d *driver) exists(ctx context.Context, e *endpoint, address chain.Address) (bool, error) {
	key, err := parseKey(string(address))
	if err != nil {
		return false, err
	}

	return sharedRead(
		ctx, d, e, "the account "+string(address),
		func(ctx context.Context, e *endpoint) (bool, error) {
			accounts, _, err := e.accounts(ctx, []solanago.PublicKey{key}, 0)
			return err == nil && accounts[0] != nil, err
		},
	)
}

// currentFee returns the transfer fee of a mint in the current epoch, as two nodes say it; zero without one.
func (d *driver) currentFee(ctx context.Context, e *endpoint, m mint, s mintState) (feeRate, error) {
	if m.program != solanago.Token2022ProgramID {
		return feeRate{}, nil
	}

	rate, err := e.currentFee(ctx, s)
	if err != nil {
		return feeRate{}, err
	}

	return sharedAnswer(
		ctx, d, e, rate, "the transfer fee of "+m.key.String(),
		func(ctx context.Context, e *endpoint) (feeRate, error) {
			accounts, _, err := e.accounts(ctx, []solanago.PublicKey{m.key}, 0)
			if err != nil {
				return feeRate{}, err
			}

			s, err := parseMint(m, accounts[0])
			if err != nil {
				return feeRate{}, err
			}

			return e.currentFee(ctx, s)
		},
	)
}

// sharedOpened is isOpened as two nodes say. Where they differ it is false: opening an account once more does no harm,
// and a payment to one that is not there fails.
func (d *driver) sharedOpened(
	ctx context.Context,
	e *endpoint,
	key solanago.PublicKey,
	account *accountInfo,
) (bool, error) {
	if !isOpened(account) {
		return false, nil
	}

	opened, err := sharedAnswer(
		ctx, d, e, true, "the token account "+key.String(),
		func(ctx context.Context, e *endpoint) (bool, error) {
			accounts, _, err := e.accounts(ctx, []solanago.PublicKey{key}, 0)
			return err == nil && isOpened(accounts[0]), err
		},
	)
	if fault.Code(err) == "nodes_disagree" {
		return false, nil
	}

	return opened, err
}

// maxApart is how many slots the answers of two nodes may be apart to be compared.
const maxApart = 64

// heldAt is the balance of an account in a slot, in base units, as one node says.
type heldAt struct {
	node          *endpoint
	slot, balance uint64
}

// sharedBalance returns the newest balance of an account that two nodes say, in base units, or the only one that is
// configured. What nodes say of different slots is compared in the earlier one.
func (d *driver) sharedBalance(ctx context.Context, account holdingAccount) (uint64, error) {
	var first heldAt

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		first, err = e.heldAt(ctx, account)
		return err
	})
	if err != nil {
		return 0, err
	}

	answers, balance, agreed := []heldAt{first}, first.balance, false

	err = d.nodes.AskAllBeside(ctx, first.node, 0, func(ctx context.Context, e *endpoint) (bool, error) {
		answer, err := e.heldAt(ctx, account)
		if err != nil {
			return false, err
		}

		for _, earlier := range answers {
			if balance, agreed = d.sameBalance(ctx, account, earlier, answer); agreed {
				return true, nil
			}
		}

		answers = append(answers, answer)

		return false, nil
	})
	if err == nil && !agreed {
		err = d.notShared("the balance of "+account.key.String(), len(answers))
	}

	if err != nil {
		return 0, err
	}

	if !agreed {
		return first.balance, nil
	}

	return balance, nil
}

// heldAt reads the balance of an account from one node.
func (e *endpoint) heldAt(ctx context.Context, account holdingAccount) (heldAt, error) {
	infos, slot, err := e.accounts(ctx, []solanago.PublicKey{account.key}, 0)
	if err != nil {
		return heldAt{}, err
	}

	return heldAt{e, slot, account.balance(infos[0])}, nil
}

// sameBalance reports whether two nodes say the same of an account, and what, in base units.
func (d *driver) sameBalance(
	ctx context.Context,
	account holdingAccount,
	a, b heldAt,
) (balance uint64, same bool) {
	if a.slot > b.slot {
		a, b = b, a
	}

	if b.slot-a.slot > maxApart {
		return 0, false
	}

	if a.balance == b.balance {
		return a.balance, true
	}

	if a.slot == b.slot {
		return 0, false
	}

	before, err := d.balanceAfter(ctx, b.node, account, a.slot, balanceOf{b.balance, b.slot})

	return a.balance, err == nil && before == a.balance
}
