package tron

import (
	"encoding/hex"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/chain"
)

// transferTopic is Keccak-256("Transfer(address,address,uint256)"), the first topic of a TRC-20 (TIP-20)
// transfer; the other two are sender and recipient, the data is the value.
const transferTopic = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

// transferSelector begins the input of transfer(address,uint256).
var transferSelector = [4]byte{0xa9, 0x05, 0x9c, 0xbb}

// firstInternal is the index of the first internal transfer; see chain.Transfer.
const firstInternal = 1 << 20

// balanceChange is one change of balances. A burnt fee has no receiver.
type balanceChange struct {
	assetID  string
	from, to address
	burnt    bool
	amount   chain.Amount
}

// transfersOf returns what a transaction moved of enabled assets, in chain order, and what it did to
// balances. Index 0 is its own value, 1+k the k-th log of its receipt, 2^20+k its k-th internal
// transfer of coin. What a token's transfer returned counts for nothing: USDT's returns false when
// it has succeeded. A failed transaction moved nothing and burnt its fee.
func (d *Driver) transfersOf(e *endpoint, tx blockTx, info *infoJSON) ([]chain.Transfer, []balanceChange, error) {
	fee, err := info.fee(e)
	if err != nil {
		return nil, nil, err
	}

	var (
		transfers []chain.Transfer
		flows     []balanceChange
	)
	if tx.tx != nil && !fee.IsZero() {
		flows = append(flows, balanceChange{assetID: d.native.ID, from: tx.tx.owner, burnt: true, amount: fee})
	}

	if info.failed() {
		return nil, flows, nil
	}

	add := func(index uint32, from, to address, assetID string, amount chain.Amount) {
		if amount.IsZero() {
			return
		}

		flows = append(flows, balanceChange{assetID: assetID, from: from, to: to, amount: amount})
		if !chain.MaxTransfer.Less(amount) {
			transfers = append(transfers, chain.Transfer{
				TxHash:  tx.hash,
				Index:   index,
				From:    canonical(from),
				To:      canonical(to),
				AssetID: assetID,
				Amount:  amount,
			})
		}
	}
	if tx.tx != nil {
		add(0, tx.tx.owner, tx.tx.to, d.native.ID, chain.Units(uint64(tx.tx.amount)))
	}

	for index := range info.Logs {
		if from, to, asset, amount, ok := d.tokenTransfer(&info.Logs[index]); ok {
			add(uint32(index)+1, from, to, asset.ID, amount)
		}
	}

	index := uint32(0)

	for n := range info.Internal {
		from, to, amount, ok, err := info.Internal[n].transfer(e, tx.hash)
		if err != nil {
			return nil, nil, err
		}

		if ok {
			add(firstInternal+index, from, to, d.native.ID, amount)
			index++
		}
	}

	return transfers, flows, nil
}

// transferNotes are the internal transactions that carry coin. Nodes may list others (votes, stakes)
// or not, by their configuration: those must not shift the index. Source: java-tron,
// TransactionUtil.buildTransactionInfoInstance.
var transferNotes = map[string]bool{"call": true, "create": true, "suicide": true}

// transfer reads an internal transaction; ok is false for one that moved no coin.
func (i *internalTx) transfer(
	e *endpoint,
	hash string,
) (from, to address, amount chain.Amount, ok bool, err error) {
	note, noteErr := hex.DecodeString(i.Note)
	if i.Rejected || noteErr != nil || !transferNotes[string(note)] {
		return
	}

	for _, v := range i.Values {
		if v.Token != "" || v.Value == 0 {
			continue
		}

		var ok1, ok2 bool

		from, ok1 = hexAddress(i.Caller)

		to, ok2 = hexAddress(i.To)
		if v.Value < 0 || !ok1 || !ok2 || ok {
			return from, to, amount, false, e.Garbled("an internal transaction of %s does not fit", hash)
		}

		amount, ok = chain.Units(uint64(v.Value)), true
	}

	return
}

// tokenTransfer reads a log as the transfer of an enabled token; ok is false for every other log.
func (d *Driver) tokenTransfer(
	l *logJSON,
) (from, to address, asset chain.Asset, amount chain.Amount, ok bool) {
	contract, ok := logAddress(l.Address)
	if !ok {
		return
	}

	if asset, ok = d.tokens[contract]; !ok || len(l.Topics) != 3 || l.Topics[0] != transferTopic {
		return from, to, asset, amount, false
	}

	from, ok1 := addressTopic(l.Topics[1])
	to, ok2 := addressTopic(l.Topics[2])

	value, err := hex.DecodeString(l.Data)
	if !ok1 || !ok2 || err != nil || len(value) != 32 {
		return from, to, asset, amount, false
	}

	amount, err = chain.AmountFromBytes(value)

	return from, to, asset, amount, err == nil
}

// logAddress reads the address of a log: 20 bytes, or 21 with the prefix.
func logAddress(s string) (address, bool) {
	raw, err := hex.DecodeString(s)
	if err == nil && len(raw) == common.AddressLength {
		return address(raw), true
	}

	return hexAddress(s)
}

// addressTopic reads a topic as an address; ok is false when the bytes before it are not zero.
func addressTopic(s string) (address, bool) {
	word, err := hex.DecodeString(s)
	if err != nil || len(word) != 32 {
		return address{}, false
	}

	return addressWord(word)
}

// addressWord reads an ABI word as an address. The byte before the 20 may be the prefix 41, which
// some Tron tools put there.
func addressWord(word []byte) (address, bool) {
	for i, b := range word[:12] {
		if b != 0 && (i != 11 || b != addressPrefix) {
			return address{}, false
		}
	}

	return address(word[12:32]), true
}

// pendingTransfers returns what a waiting transaction will move if it succeeds: its own value, or the
// amount of a plain token transfer, whose event is the first log of every token that logs nothing
// else before it.
func (d *Driver) pendingTransfers(tx blockTx) []chain.Transfer {
	if tx.tx == nil {
		return nil
	}

	t := chain.Transfer{
		TxHash:  tx.hash,
		From:    canonical(tx.tx.owner),
		To:      canonical(tx.tx.to),
		AssetID: d.native.ID,
		Amount:  chain.Units(uint64(tx.tx.amount)),
	}

	var out []chain.Transfer
	if !t.Amount.IsZero() {
		out = append(out, t)
	}

	if asset, ok := d.tokens[tx.tx.to]; ok {
		if to, value, ok := parseTransferInput(
			tx.tx.data,
		); ok && !value.IsZero() &&
			!chain.MaxTransfer.Less(value) {
			t.Index, t.To, t.AssetID, t.Amount = 1, canonical(to), asset.ID, value
			out = append(out, t)
		}
	}

	return out
}

// transferInput is the ABI encoding of transfer(to, amount).
func transferInput(to address, amount chain.Amount) []byte {
	word := amount.Bytes32()

	in := append(make([]byte, 0, 68), transferSelector[:]...)
	in = append(in, common.LeftPadBytes(to[:], 32)...)

	return append(in, word[:]...)
}

// parseTransferInput reads what transferInput writes; ok is false for anything else.
func parseTransferInput(in []byte) (to address, amount chain.Amount, ok bool) {
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
