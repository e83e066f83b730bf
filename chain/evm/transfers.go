package evm

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/chain"
)

// transferTopic is Keccak-256("Transfer(address,address,uint256)"), the first topic of an ERC-20 (EIP-20)
// transfer; the other two are sender and recipient, the data is the value.
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// transferSelector begins the input of transfer(address,uint256).
var transferSelector = [4]byte{0xa9, 0x05, 0x9c, 0xbb}

// moved returns what a transaction moved of enabled assets, in chain order: index 0 is its own value,
// 1+k the k-th log of its receipt. A failed transaction moved nothing.
func (d *Driver) moved(e *endpoint, tx *txJSON, r *receiptJSON) ([]chain.Transfer, error) {
	if *r.Status == 0 {
		return nil, nil
	}

	out, err := d.ownValue(e, tx)
	if err != nil {
		return nil, err
	}

	for k := range r.Logs {
		if t, ok := d.tokenTransfer(&r.Logs[k]); ok {
			t.TxHash, t.Index = tx.Hash.Hex(), uint32(k)+1
			out = append(out, t)
		}
	}

	return out, nil
}

// ownValue is the native coin that the transaction itself carries.
func (d *Driver) ownValue(e *endpoint, tx *txJSON) ([]chain.Transfer, error) {
	if tx.To == nil || tx.Value.ToInt().Sign() == 0 {
		return nil, nil
	}

	value, err := e.amount(tx.Value)
	if err != nil || !countable(value) {
		return nil, err
	}

	return []chain.Transfer{
		{
			TxHash:  tx.Hash.Hex(),
			From:    canonical(*tx.From),
			To:      canonical(*tx.To),
			AssetID: d.native.ID,
			Amount:  value,
		},
	}, nil
}

// tokenTransfer reads a log as the transfer of an enabled token; ok is false for every other log.
func (d *Driver) tokenTransfer(l *logJSON) (t chain.Transfer, ok bool) {
	asset, enabled := d.tokens[*l.Address]
	if !enabled || len(l.Topics) != 3 || l.Topics[0] != transferTopic || len(l.Data) != 32 {
		return t, false
	}

	from, ok1 := addressWord(l.Topics[1][:])
	to, ok2 := addressWord(l.Topics[2][:])

	value, err := chain.AmountFromBytes(l.Data)
	if !ok1 || !ok2 || err != nil || !countable(value) {
		return t, false
	}

	return chain.Transfer{From: canonical(from), To: canonical(to), AssetID: asset.ID, Amount: value}, true
}

// foreseen returns what a waiting transaction will move if it succeeds: its own value, or the amount of a
// plain token transfer, whose event is the first log of every token that logs nothing else before it.
func (d *Driver) foreseen(e *endpoint, tx *poolTxJSON) ([]chain.Transfer, error) {
	out, err := d.ownValue(e, &tx.txJSON)
	if err != nil || tx.To == nil {
		return nil, err
	}

	if asset, ok := d.tokens[*tx.To]; ok {
		if to, value, ok := parseTransferInput(tx.Input); ok && countable(value) {
			out = append(out, chain.Transfer{
				TxHash:  tx.Hash.Hex(),
				Index:   1,
				From:    canonical(*tx.From),
				To:      canonical(to),
				AssetID: asset.ID,
				Amount:  value,
			})
		}
	}

	return out, nil
}

// countable leaves out transfers of nothing and of more than any sum could hold.
func countable(a chain.Amount) bool { return !a.IsZero() && !chain.MaxTransfer.Less(a) }

// transferInput is the ABI encoding of transfer(to, amount).
func transferInput(to common.Address, amount chain.Amount) []byte {
	word := amount.Bytes32()

	in := append(make([]byte, 0, 68), transferSelector[:]...)
	in = append(in, common.LeftPadBytes(to[:], 32)...)

	return append(in, word[:]...)
}

// parseTransferInput reads what transferInput writes; ok is false for anything else.
func parseTransferInput(in []byte) (to common.Address, amount chain.Amount, ok bool) {
	if len(in) != 68 || [4]byte(in) != transferSelector {
		return to, amount, false
	}

	to, ok = addressWord(in[4:36])
	if !ok {
		return to, amount, false
	}

	amount, err := chain.AmountFromBytes(in[36:68])

	return to, amount, err == nil
}

// addressWord reads an ABI word as an address; ok is false when the bytes before it are not zero.
func addressWord(word []byte) (common.Address, bool) {
	for _, b := range word[:12] {
		if b != 0 {
			return common.Address{}, false
		}
	}

	return common.Address(word[12:32]), true
}
