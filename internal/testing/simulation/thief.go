package simulation

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/payout"
)

// ruleThief is what must follow when somebody else has a copy of a key.
const ruleThief = "a thief freezes a wallet, and the audit names it"

// theft is a transaction that a thief signed with a copy of a wallet's key.
type theft struct {
	network string
	wallet  chain.Address
}

// steal has a thief send coin from a master wallet to an address of his own, with the nonce that is next, or in place
// of one of ours that waits for a block.
func (w *harness) steal(op Op) {
	i := op.A % uint64(len(w.networks))

	m := w.merchant(op.B)
	if len(m.parties) <= int(i) {
		return
	}

	switch n := w.networks[i].(type) {
	case *accountNetwork:
		w.stealByNonce(op, n, m.parties[i])
	case *windowNetwork:
		w.stealByAccount(op, n, m.parties[i])
	case *utxoNetwork:
		w.stealCoins(op, n, m.parties[i].Address)
	}
}

// stealCoins has a thief spend the coins of a transaction of the wallet that waits for a block, and pay a miner more.
// As these may be all that the wallet has, its merchant puts others there.
func (w *harness) stealCoins(op Op, n *utxoNetwork, from chain.Address) {
	waiting := slices.DeleteFunc(n.pool(), func(tx chain.PoolTx) bool {
		return !slices.ContainsFunc(tx.Transfers, func(t chain.Transfer) bool { return t.From == from })
	})

	if ours, ok := pick(waiting, op.C); ok {
		w.oracle.thefts[n.DoubleSpend(ours.TxHash)] = theft{network: n.slug(), wallet: from}
		w.account.count("theft")
		n.Fund(from, chain.Pow10(n.assets()[0].Decimals))
	}
}

// stealByNonce steals on a network whose accounts have nonces.
func (w *harness) stealByNonce(op Op, accounts *accountNetwork, from chain.Party) {
	nonce, err := accounts.Nonce(w.ctx, from.Address)
	must(err)

	if op.C%2 == 0 { // he pays a miner more
		for _, tx := range accounts.pool() {
			for _, spend := range tx.Spent {
				if spend.Sender == from.Address && spend.Nonce == nonce {
					accounts.Drop(tx.TxHash)
				}
			}
		}
	}

	native, _ := accounts.described.Asset("SIM")
	order := chain.Order{
		From:   from,
		Nonce:  nonce,
		MaxFee: chain.Pow10(17),
		Outputs: []chain.Output{{
			To:      accounts.newAddress(),
			AssetID: native.ID,
			Amount:  chain.Pow10(15).Mul(1 + op.C>>8%20),
		}},
	}

	w.sendStolen(accounts, accounts, order)
}

// stealByAccount steals on a network of Solana's family, with what one of the wallet's nonce accounts holds, or with
// bytes that run out.
func (w *harness) stealByAccount(op Op, n *windowNetwork, from chain.Party) {
	native, _ := n.Network().Asset("SIM")
	order := chain.Order{
		From:   from,
		MaxFee: chain.Pow10(17),
		Outputs: []chain.Output{{
			To:      n.newAddress(),
			AssetID: native.ID,
			Amount:  chain.Pow10(15).Mul(1 + op.C>>8%20),
		}},
	}

	w.aside(func() {
		if accounts := n.NonceAccounts(from.Address); op.C%2 == 0 && len(accounts) > 0 {
			read, err := n.ReadNonces(w.ctx, from.Address, accounts[op.C>>16%uint64(len(accounts)):][:1])
			must(err)

			order.DurableNonce = &read[0].DurableNonce
		}

		w.sendStolen(n, n, order)
	})
}

// sendStolen signs and sends a thief's transaction, and notes it.
func (w *harness) sendStolen(n network, sender chain.Sender, order chain.Order) {
	signed, err := w.signAs(n, sender, order)
	if err != nil {
		w.account.count("theft that was impossible")
		return
	}

	w.oracle.thefts[signed.TxHash] = theft{network: n.slug(), wallet: order.From.Address}

	if err := sender.Broadcast(w.ctx, signed); err != nil {
		w.account.count("theft that the pool refused")
		return
	}

	w.account.count("theft")
}

// signAs signs an order with a copy of its sender's key, behind the library's back.
func (w *harness) signAs(n network, sender chain.Sender, order chain.Order) (signed chain.Signed, err error) {
	unsigned, err := sender.Build(w.ctx, order)
	if err != nil {
		return signed, err
	}

	signatures, err := w.signer.Sign(w.ctx, chain.SignRequest{
		Network:  n.slug(),
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
	})
	if err != nil {
		return signed, err
	}

	key, err := w.signer.PublicKey(w.ctx, order.From.Key)
	if err != nil {
		return signed, err
	}

	return sender.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)
}

// robbed returns the wallets of a network that a thief used since they are on record and up to the block at, and whose
// theft nobody has acknowledged. It returns none when that block is not in the chain.
func (o *oracle) robbed(network string, at chain.Ref) map[chain.Address]string {
	wallets := map[chain.Address]string{}
	l := o.ledgers[network]

	for hash, t := range o.thefts {
		if t.network != network || o.records.acknowledged[hash] {
			continue
		}

		height, included := l.heights[hash]
		knownAt, known := o.records.knownAt[walletOf{network, t.wallet}]

		if included && known && knownAt < height && height <= at.Height && l.isCanonical(hash) && l.has(at) {
			wallets[t.wallet] = hash
		}
	}

	return wallets
}

// hasStolen reports whether a thief's transaction was ever in a block of a network: it took a nonce.
func (o *oracle) hasStolen(network string) bool {
	for hash, t := range o.thefts {
		if _, included := o.ledgers[network].heights[hash]; included && t.network == network {
			return true
		}
	}

	return false
}

// checkFrozen checks that every wallet that a thief used is frozen once the block is read.
func (o *oracle) checkFrozen(c *commit) {
	if len(o.thefts) == 0 {
		return
	}

	for _, cursor := range c.cursors {
		robbed := o.robbed(cursor.Network, o.records.cursors[cursor.Network].At)
		if len(robbed) == 0 {
			continue
		}

		frozen, err := o.harness.store.FrozenWallets(o.harness.ctx, cursor.Network, 0)
		must(err)

		for _, f := range frozen {
			delete(robbed, f.Party.Address)
		}

		for address, hash := range robbed {
			o.violate(ruleThief, "a thief used wallet %s (%s), and it is not frozen", address, hash)
		}
	}
}

// checkSigned checks that a payout is not signed while a thief has its wallet.
func (o *oracle) checkSigned(before, now payout.Payout) {
	if len(o.thefts) == 0 || before.Status != payout.Pending || o.harness.acknowledging {
		return
	}

	robbed := o.robbed(now.Network, o.records.cursors[now.Network].At)

	for i, n := range o.harness.networks {
		for _, m := range o.harness.merchants {
			if n.slug() != now.Network || m.owner.AccountID != now.Owner.AccountID || len(m.wallets) <= i {
				continue
			}

			if hash := robbed[m.wallets[i]]; hash != "" {
				o.violate(ruleThief, "payout %s is signed, and a thief uses its wallet (%s)", now.ID, hash)
			}
		}
	}
}

// acknowledged notes that a person has said what a transaction was.
func (o *oracle) acknowledged(row wallet.Outgoing) { o.records.acknowledged[row.TxHash] = true }
