package solana

import (
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// transfers returns the transfers of enabled assets: one per account whose balance increased. The
// amount is the increase, in base units. What of a token left its sender and arrived nowhere, such as a transfer fee,
// is a transfer to the mint. A failed transaction has none.
func (d *driver) transfers(tx executedTx) ([]chain.Transfer, error) {
	if tx.meta.failed() {
		return nil, nil
	}

	tokens, err := d.tokenTransfers(tx)
	if err != nil {
		return nil, err
	}

	return slices.Concat(d.nativeTransfers(tx), tokens, d.withheldTransfers(tx, tokens)), nil
}

// nativeTransfers returns the transfers of SOL. It omits token accounts, whose coin is their rent.
func (d *driver) nativeTransfers(tx executedTx) []chain.Transfer {
	var transfers []chain.Transfer

	tokenAccounts := tx.tokenAccounts()
	sender := tx.nativeSender(tokenAccounts)

	for i, key := range tx.keys {
		before, after := tx.meta.PreBalances[i], tx.meta.PostBalances[i]
		if after <= before || tokenAccounts[i] {
			continue
		}

		transfers = append(transfers, chain.Transfer{
			TxHash:  tx.hash,
			Index:   uint32(i),
			From:    sender,
			To:      chain.Address(key.String()),
			AssetID: d.native.ID,
			Amount:  chain.Units(after - before),
		})
	}

	return transfers
}

// tokenTransfers returns the transfers of enabled tokens.
func (d *driver) tokenTransfers(tx executedTx) ([]chain.Transfer, error) {
	var transfers []chain.Transfer

	before := map[int]tokenBalance{}
	for _, balance := range tx.meta.PreTokenBalances {
		before[balance.AccountIndex] = balance
	}

	for _, after := range tx.meta.PostTokenBalances {
		mintKey, err := solanago.PublicKeyFromBase58(after.Mint)

		m, enabled := d.mints[mintKey]
		if err != nil || !enabled {
			continue
		}

		increase := after.Amount.BaseUnits
		if old, ok := before[after.AccountIndex]; ok && old.Mint == after.Mint {
			increase -= min(increase, old.Amount.BaseUnits)
		}

		if increase == 0 {
			continue
		}

		recipient, err := tokenRecipient(tx.keys[after.AccountIndex], after.Owner, m)
		if err != nil {
			return nil, err
		}

		transfers = append(transfers, chain.Transfer{
			TxHash:  tx.hash,
			Index:   uint32(after.AccountIndex),
			From:    tx.tokenSender(after.Mint).owner,
			To:      recipient,
			AssetID: m.ID,
			Amount:  chain.Units(increase),
		})
	}

	return transfers, nil
}

// withheldTransfers returns, for each enabled token with one sender, what left that one beyond the transfers.
func (d *driver) withheldTransfers(tx executedTx, transfers []chain.Transfer) []chain.Transfer {
	var withheld []chain.Transfer

	seen := map[string]bool{}

	for _, before := range tx.meta.PreTokenBalances {
		mintKey, err := solanago.PublicKeyFromBase58(before.Mint)

		m, enabled := d.mints[mintKey]
		if err != nil || !enabled || seen[before.Mint] {
			continue
		}

		seen[before.Mint] = true

		from := tx.tokenSender(before.Mint)
		left := from.amount

		for _, arrived := range transfers {
			if arrived.AssetID == m.ID {
				left = left.SubFloor(arrived.Amount)
			}
		}

		if from.owner == "" || left.IsZero() {
			continue
		}

		withheld = append(withheld, chain.Transfer{
			TxHash:  tx.hash,
			Index:   uint32(from.index),
			From:    from.owner,
			To:      m.Contract,
			AssetID: m.ID,
			Amount:  left,
		})
	}

	return withheld
}

// tokenRecipient returns the owner of an associated token account, and any other token account's own
// address.
func tokenRecipient(tokenAccount solanago.PublicKey, owner string, m mint) (chain.Address, error) {
	ownerKey, err := solanago.PublicKeyFromBase58(owner)
	if err != nil {
		return chain.Address(tokenAccount.String()), nil //nolint:nilerr // a node may omit the owner
	}

	associated, err := m.accountOf(ownerKey)
	if err != nil {
		return "", err
	}

	if associated == tokenAccount {
		return chain.Address(ownerKey.String()), nil
	}

	return chain.Address(tokenAccount.String()), nil
}

// tokenAccounts returns the indices of the keys that are token accounts before or after.
func (tx executedTx) tokenAccounts() map[int]bool {
	indices := map[int]bool{}

	for _, balances := range [][]tokenBalance{tx.meta.PreTokenBalances, tx.meta.PostTokenBalances} {
		for _, balance := range balances {
			indices[balance.AccountIndex] = true
		}
	}

	return indices
}

// nativeSender returns the only account whose coin decreased by more than the fee. It returns "" when
// there is none or several.
func (tx executedTx) nativeSender(tokenAccounts map[int]bool) chain.Address {
	sender := chain.Address("")

	for i, key := range tx.keys {
		decrease := tx.meta.PreBalances[i] - min(tx.meta.PreBalances[i], tx.meta.PostBalances[i])
		if i == 0 {
			decrease -= min(decrease, tx.meta.Fee)
		}

		if decrease == 0 || tokenAccounts[i] {
			continue
		}

		if sender != "" {
			return ""
		}

		sender = chain.Address(key.String())
	}

	return sender
}

// tokenSender is the only owner whose accounts of a mint decreased, "" when there is none or several.
type tokenSender struct {
	owner  chain.Address
	index  int          // of the first of these accounts
	amount chain.Amount // by which they decreased, in base units
}

// tokenSender returns who sent tokens of a mint.
func (tx executedTx) tokenSender(mint string) (sender tokenSender) {
	after := map[int]uint64{}

	for _, balance := range tx.meta.PostTokenBalances {
		if balance.Mint == mint {
			after[balance.AccountIndex] = balance.Amount.BaseUnits
		}
	}

	for _, before := range tx.meta.PreTokenBalances {
		held := before.Amount.BaseUnits
		if before.Mint != mint || after[before.AccountIndex] >= held {
			continue
		}

		owner := chain.Address(before.Owner)
		if sender.owner == "" {
			sender = tokenSender{owner: owner, index: before.AccountIndex}
		}

		if sender.owner != owner {
			return tokenSender{}
		}

		sender.amount = sender.amount.Add(chain.Units(held - after[before.AccountIndex]))
	}

	return sender
}
