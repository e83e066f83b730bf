package solana

import (
	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// executed is a transaction of a block.
type executed struct {
	hash string
	// the resolved ones: those in the message, then those of lookup tables, writable ones first
	keys []solanago.PublicKey
	meta *meta
}

// resolve checks a transaction against what the node says of it and resolves its keys.
func (e *endpoint) resolve(raw []byte, m *meta) (executed, error) {
	signature, keys, err := staticKeys(raw)
	if err != nil || m == nil {
		return executed{}, e.Garbled("it sent a transaction that cannot be read, or nothing of its execution")
	}

	for _, list := range [][]string{m.LoadedAddresses.Writable, m.LoadedAddresses.Readonly} {
		for _, s := range list {
			key, err := solanago.PublicKeyFromBase58(s)
			if err != nil {
				return executed{}, e.Garbled("a loaded address of transaction %s is none", signature)
			}

			keys = append(keys, key)
		}
	}

	x := executed{hash: signature.String(), keys: keys, meta: m}
	if len(m.PreBalances) != len(keys) || len(m.PostBalances) != len(keys) {
		return executed{}, e.Garbled(
			"transaction %s has %d accounts and %d balances",
			x.hash, len(keys), len(m.PostBalances),
		)
	}

	for _, list := range [][]tokenBalance{m.PreTokenBalances, m.PostTokenBalances} {
		for _, b := range list {
			if b.AccountIndex < 0 || b.AccountIndex >= len(keys) {
				return executed{}, e.Garbled(
					"transaction %s has a token balance of account %d of %d",
					x.hash, b.AccountIndex, len(keys),
				)
			}
		}
	}

	return x, nil
}

// transfers lists what a transaction moved of the enabled assets: for every account by how much its
// balance rose. The coin that a token account holds is its rent and nobody's payment.
func (d *Driver) transfers(x executed) ([]chain.Transfer, error) {
	if x.meta.failed() {
		return nil, nil
	}

	holdsTokens := map[int]bool{}

	before := map[int]tokenBalance{}
	for _, b := range x.meta.PreTokenBalances {
		holdsTokens[b.AccountIndex], before[b.AccountIndex] = true, b
	}

	for _, b := range x.meta.PostTokenBalances {
		holdsTokens[b.AccountIndex] = true
	}

	var out []chain.Transfer

	sender := x.nativeSender(holdsTokens)
	for i, key := range x.keys {
		pre, post := x.meta.PreBalances[i], x.meta.PostBalances[i]
		if post <= pre || holdsTokens[i] {
			continue
		}

		out = append(out, chain.Transfer{
			TxHash:  x.hash,
			Index:   uint32(i),
			From:    sender,
			To:      chain.Address(key.String()),
			AssetID: d.native.ID,
			Amount:  chain.Units(post - pre),
		})
	}

	for _, b := range x.meta.PostTokenBalances {
		mintKey, err := solanago.PublicKeyFromBase58(b.Mint)

		m, enabled := d.mints[mintKey]
		if err != nil || !enabled {
			continue
		}

		gained := uint64(b.Amount.Digits)
		if was, there := before[b.AccountIndex]; there && was.Mint == b.Mint {
			gained -= min(gained, uint64(was.Amount.Digits))
		}

		if gained == 0 {
			continue
		}

		t := chain.Transfer{
			TxHash:  x.hash,
			Index:   uint32(b.AccountIndex),
			From:    x.tokenSender(b.Mint),
			To:      chain.Address(x.keys[b.AccountIndex].String()),
			AssetID: m.ID,
			Amount:  chain.Units(gained),
		}

		owner, err := solanago.PublicKeyFromBase58(b.Owner)
		if err == nil {
			account, err := m.accountOf(owner)
			if err != nil {
				return nil, err
			}

			if account == x.keys[b.AccountIndex] {
				t.To = chain.Address(owner.String())
			}
		}

		out = append(out, t)
	}

	return out, nil
}

// nativeSender is the one account that gave coin, beyond the fee; empty when there are none or several.
func (x executed) nativeSender(holdsTokens map[int]bool) chain.Address {
	sender := chain.Address("")

	for i, key := range x.keys {
		lost := x.meta.PreBalances[i] - min(x.meta.PreBalances[i], x.meta.PostBalances[i])
		if i == 0 {
			lost -= min(lost, x.meta.Fee)
		}

		if lost == 0 || holdsTokens[i] {
			continue
		}

		if sender != "" {
			return ""
		}

		sender = chain.Address(key.String())
	}

	return sender
}

// tokenSender is the owner of the one account that gave tokens of a mint; empty when there are none
// or several.
func (x executed) tokenSender(mint string) chain.Address {
	after := map[int]uint64{}

	for _, b := range x.meta.PostTokenBalances {
		if b.Mint == mint {
			after[b.AccountIndex] = uint64(b.Amount.Digits)
		}
	}

	sender := ""

	for _, b := range x.meta.PreTokenBalances {
		if b.Mint != mint || after[b.AccountIndex] >= uint64(b.Amount.Digits) {
			continue
		}

		if sender != "" && sender != b.Owner {
			return ""
		}

		sender = b.Owner
	}

	return chain.Address(sender)
}
