package solana

import (
	"context"
	"errors"
	"fmt"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Balances returns the balance of each holding after a block, in base units. Nodes serve balances of
// their newest block only, so later transactions are undone: the balance is what the first of them
// found in the account. Where several nodes are configured, it is what two of them say; a chain.UnreadableError
// names the others. While nodes_disagree, histories are read from another node.
func (d *driver) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	if _, err := d.holdingAccounts(holdings); err != nil {
		return nil, err
	}

	if len(holdings) == 0 && ctx.Err() == nil {
		return nil, nil
	}

	amounts, err := agree.Balances(ctx, d.nodes, d.config.Attempts, 0, holdings, d.readBalances(at))

	// fault.Stopped would stop the network, which needs no such old block otherwise.
	if errors.Is(err, fault.Stopped) && fault.Code(err) == "node_pruned" {
		err = fault.Wrap(
			err, fault.Unavailable, "node_pruned", "no node of network %s has block %d",
			d.network.Slug, at.Height,
		)
	}

	return amounts, err
}

// readBalances returns the reading of holdings after a block.
func (d *driver) readBalances(at chain.Ref) agree.ReadBalances[*endpoint] {
	return func(
		ctx context.Context,
		e *endpoint,
		holdings []chain.Holding,
	) ([]chain.Amount, []chain.UnreadableHolding, error) {
		accounts, err := d.holdingAccounts(holdings)
		if err != nil {
			return nil, nil, err
		}

		amounts, err := d.balancesAt(ctx, e, at, accounts)

		return amounts, nil, err
	}
}

// holdingAccounts returns the accounts of holdings, which are of this network.
func (d *driver) holdingAccounts(holdings []chain.Holding) ([]holdingAccount, error) {
	accounts := make([]holdingAccount, len(holdings))

	for i, holding := range holdings {
		var err error
		if accounts[i], err = d.holdingAccount(holding); err != nil {
			return nil, err
		}
	}

	return accounts, nil
}

// balancesAt reads the balances after a block from one node.
func (d *driver) balancesAt(
	ctx context.Context,
	e *endpoint,
	at chain.Ref,
	accounts []holdingAccount,
) ([]chain.Amount, error) {
	h, err := d.headerAt(ctx, e, at.Height)
	if err != nil {
		return nil, err
	}

	if h.Hash != at.Hash {
		return nil, e.Garbled("its block %d is %s, not %s", at.Height, h.Hash, at.Hash)
	}

	infos, slot, err := e.accounts(ctx, keysOf(accounts), h.slot)
	if err != nil {
		return nil, err
	}

	amounts := make([]chain.Amount, len(accounts))

	err = e.forEach(ctx, len(accounts), func(ctx context.Context, i int) error {
		amount, err := d.balanceAfter(
			ctx,
			e,
			accounts[i],
			h.slot,
			balanceOf{accounts[i].balance(infos[i]), slot},
		)
		amounts[i] = chain.Units(amount)

		return err
	})
	if err != nil {
		return nil, err
	}

	return amounts, nil
}

// balanceAfter returns an account's balance after a slot, given a later one: what the first transaction since has
// found, or the later one where nothing has moved since.
//
// That a history lists nothing since is no proof: it names no slot, and a backend may be behind the one that showed the
// balance. The newest transaction that it lists must have left the balance, else it is failover.ErrLagging. An account
// of which a node has no history any more must have shown the same balance at the slot.
func (d *driver) balanceAfter(
	ctx context.Context,
	e *endpoint,
	account holdingAccount,
	slot uint64,
	later balanceOf,
) (uint64, error) {
	since := d.seen.putBalance(account.key, later.units, later.slot)
	if later.slot == slot {
		return later.units, nil
	}

	list, older, err := e.signatures(ctx, account.key.String(), slot+1, later.slot)
	if err != nil {
		return 0, err
	}

	if len(list) > 0 {
		return d.foundBy(ctx, e, account, list[len(list)-1].Signature)
	}

	check := balanceCheck{account: account}
	if err := d.balanceBefore(ctx, e, &check, older); err != nil {
		return 0, err
	}

	err = check.final(later.units)
	if !check.known && later.units > 0 && since > slot {
		err = fmt.Errorf(
			"the node has no history of %s, and has not shown %d at slot %d", account.key, later.units, slot,
		)
	}

	if err != nil {
		return 0, fmt.Errorf("%w: %w", failover.ErrLagging, err)
	}

	return later.units, nil
}

// foundBy returns what a listed transaction found in an account, in base units.
func (d *driver) foundBy(
	ctx context.Context,
	e *endpoint,
	account holdingAccount,
	signature string,
) (uint64, error) {
	tx, err := d.fetchListed(ctx, e, signature)
	if err != nil {
		return 0, err
	}

	before, _, named := account.balanceChange(tx.executedTx)
	if !named {
		return 0, e.Garbled(
			"transaction %s is listed for account %s and does not name it",
			signature,
			account.key,
		)
	}

	return before, nil
}

// holdingAccount is the account of a holding: the owner's own, or its associated token account.
type holdingAccount struct {
	key  solanago.PublicKey
	mint *mint // nil for the native coin
}

func (d *driver) holdingAccount(holding chain.Holding) (holdingAccount, error) {
	owner, err := parseKey(string(holding.Address))
	if err != nil {
		return holdingAccount{}, err
	}

	if holding.AssetID == d.native.ID {
		return holdingAccount{key: owner}, nil
	}

	m, ok := d.mintOf(holding.AssetID)
	if !ok {
		return holdingAccount{}, d.unknownAsset(holding.AssetID)
	}

	key, err := m.accountOf(owner)

	return holdingAccount{key: key, mint: &m}, err
}

func keysOf[A interface{ publicKey() solanago.PublicKey }](accounts []A) []solanago.PublicKey {
	keys := make([]solanago.PublicKey, len(accounts))
	for i, account := range accounts {
		keys[i] = account.publicKey()
	}

	return keys
}

func (a holdingAccount) publicKey() solanago.PublicKey { return a.key }

// balance returns the balance of an account, in base units. It is 0 when the account does not exist or
// is no token account of the mint.
func (a holdingAccount) balance(info *accountInfo) uint64 {
	if info == nil {
		return 0
	}

	if a.mint == nil {
		return info.Lamports
	}

	t, err := parseTokenAccount(info, *a.mint)
	if err != nil {
		return 0
	}

	return t.amount
}

// balanceChange returns the balance before and after a transaction, in base units. named is false when
// the transaction does not name the account.
func (a holdingAccount) balanceChange(tx executedTx) (before, after uint64, named bool) {
	index := slices.Index(tx.keys, a.key)
	if index < 0 {
		return 0, 0, false
	}

	if a.mint == nil {
		return tx.meta.PreBalances[index], tx.meta.PostBalances[index], true
	}

	amountOf := func(balances []tokenBalance) uint64 {
		for _, balance := range balances {
			if balance.AccountIndex == index && balance.Mint == a.mint.key.String() {
				return balance.Amount.BaseUnits
			}
		}

		return 0
	}

	return amountOf(tx.meta.PreTokenBalances), amountOf(tx.meta.PostTokenBalances), true
}

// accountInfo is an account as nodes send it.
type accountInfo struct {
	Lamports   uint64      `json:"lamports"`
	Owner      string      `json:"owner"` // program
	Executable bool        `json:"executable"`
	Data       base64Bytes `json:"data"`
}

// lamportsOf returns the coin of an account, 0 for nil.
func lamportsOf(info *accountInfo) uint64 {
	if info == nil {
		return 0
	}

	return info.Lamports
}

// maxAccountsPerCall is the limit of getMultipleAccounts. Source:
// solana.com/docs/rpc/http/getmultipleaccounts.
const maxAccountsPerCall = 100

// accounts returns the accounts of the keys, nil for each that does not exist, and their slot. The slot
// is at least minSlot; of several calls it is the lowest.
func (e *endpoint) accounts(
	ctx context.Context,
	keys []solanago.PublicKey,
	minSlot uint64,
) ([]*accountInfo, uint64, error) {
	return e.accountsAt(ctx, newest{e}, keys, minSlot)
}

// accountsAt is accounts in the newest block of a commitment.
func (e *endpoint) accountsAt(
	ctx context.Context,
	commitment any,
	keys []solanago.PublicKey,
	minSlot uint64,
) ([]*accountInfo, uint64, error) {
	var (
		all        []*accountInfo
		lowestSlot uint64
	)

	for start := 0; start < len(keys); start += maxAccountsPerCall {
		part := keys[start:min(start+maxAccountsPerCall, len(keys))]

		var answer struct {
			Context struct {
				Slot uint64 `json:"slot"`
			} `json:"context"`
			Value []*accountInfo `json:"value"`
		}

		options := map[string]any{"commitment": commitment, "encoding": "base64"}
		if minSlot > 0 {
			options["minContextSlot"] = minSlot
		}

		if err := e.call(ctx, &answer, "getMultipleAccounts", part, options); err != nil {
			return nil, 0, err
		}

		if len(answer.Value) != len(part) || answer.Context.Slot < minSlot {
			return nil, 0, e.Garbled(
				"it answered %d of %d accounts, of slot %d",
				len(answer.Value), len(part), answer.Context.Slot,
			)
		}

		if start == 0 || answer.Context.Slot < lowestSlot {
			lowestSlot = answer.Context.Slot
		}

		all = append(all, answer.Value...)
	}

	return all, lowestSlot, nil
}
