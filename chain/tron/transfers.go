package tron

import (
	"encoding/hex"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// transferTopic is Keccak-256("Transfer(address,address,uint256)"), the first topic of a TRC-20 transfer. The
// other two are sender and recipient, the data is the value. Source: TIP-20.
const transferTopic = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

// transferSelector begins the input of transfer(address,uint256).
var transferSelector = [4]byte{0xa9, 0x05, 0x9c, 0xbb}

// balanceChange is one transfer or burnt fee. A burnt fee has no receiver.
type balanceChange struct {
	assetID  string
	from, to address
	burnt    bool
	amount   chain.Amount
}

// transfersOf returns a transaction's transfers of enabled assets in chain order, and its balance changes.
//
// Index 0 is its own value, 1+k the k-th log of its receipt, 2^20+k its k-th internal transfer of TRX. The
// return value of a token's transfer is ignored: USDT returns false on success. A failed transaction has no
// transfers and burns its fee.
func (d *driver) transfersOf(
	node *endpoint,
	tx blockTx,
	info *infoJSON,
) ([]chain.Transfer, []balanceChange, error) {
	fee, err := info.fee(node)
	if err != nil {
		return nil, nil, err
	}

	effects := txEffects{hash: tx.hash}
	if tx.tx != nil && !fee.IsZero() {
		burn := balanceChange{assetID: d.native.ID, from: tx.tx.owner, burnt: true, amount: fee}
		effects.changes = append(effects.changes, burn)
	}

	if info.failed() {
		return nil, effects.changes, nil
	}

	if tx.tx != nil && !tx.tx.kind.movesStake() {
		effects.add(0, tx.tx.owner, tx.tx.to, d.native.ID, chain.Units(uint64(tx.tx.amount)))
	}

	for k := range info.Logs {
		if from, to, asset, amount, ok := d.tokenTransfer(&info.Logs[k]); ok {
			effects.add(chaindata.LogIndex+uint32(k), from, to, asset.ID, amount)
		}
	}

	index := uint32(chaindata.InternalIndex)

	for n := range info.Internal {
		from, to, amount, ok, err := info.Internal[n].transfer(node, tx.hash)
		if err != nil {
			return nil, nil, err
		}

		if ok {
			effects.add(index, from, to, d.native.ID, amount)
			index++
		}
	}

	return effects.transfers, effects.changes, nil
}

// txEffects are the transfers and balance changes of the transaction of a hash.
type txEffects struct {
	hash      string
	transfers []chain.Transfer
	changes   []balanceChange
}

// add appends a transfer of an amount in base units; none for 0. Amounts above chain.MaxTransfer are balance
// changes only.
func (t *txEffects) add(index uint32, from, to address, assetID string, amount chain.Amount) {
	if amount.IsZero() {
		return
	}

	t.changes = append(t.changes, balanceChange{assetID: assetID, from: from, to: to, amount: amount})
	if chain.MaxTransfer.Less(amount) {
		return
	}

	t.transfers = append(t.transfers, chain.Transfer{
		TxHash:  t.hash,
		Index:   index,
		From:    canonical(from),
		To:      canonical(to),
		AssetID: assetID,
		Amount:  amount,
	})
}

// transferNotes are the notes of internal transactions that carry TRX. Nodes may list others (votes, stakes),
// by their configuration, which must not shift the index. Source: java-tron,
// TransactionUtil.buildTransactionInfoInstance.
var transferNotes = map[string]bool{"call": true, "create": true, "suicide": true}

// transfer returns the transfer of an internal transaction; ok is false for one without TRX.
func (i *internalTx) transfer(
	node *endpoint,
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

		var fromOK, toOK bool

		from, fromOK = hexAddress(i.Caller)
		to, toOK = hexAddress(i.To)

		if v.Value < 0 || !fromOK || !toOK || ok {
			return from, to, amount, false, node.Garbled("an internal transaction of %s does not fit", hash)
		}

		amount, ok = chain.Units(uint64(v.Value)), true
	}

	return
}

// tokenTransfer returns a log as the transfer of an enabled token; ok is false for other logs.
func (d *driver) tokenTransfer(
	log *logJSON,
) (from, to address, asset chain.Asset, amount chain.Amount, ok bool) {
	contract, ok := logAddress(log.Address)
	if !ok {
		return
	}

	if asset, ok = d.tokens[contract]; !ok || len(log.Topics) != 3 || log.Topics[0] != transferTopic {
		return from, to, asset, amount, false
	}

	from, fromOK := addressTopic(log.Topics[1])
	to, toOK := addressTopic(log.Topics[2])

	value, err := hex.DecodeString(log.Data)
	if !fromOK || !toOK || err != nil || len(value) != 32 {
		return from, to, asset, amount, false
	}

	amount, err = chain.AmountFromBytes(value)

	return from, to, asset, amount, err == nil
}

// logAddress returns the address of a log: 20 bytes, or 21 with the prefix.
func logAddress(s string) (address, bool) {
	raw, err := hex.DecodeString(s)
	if err == nil && len(raw) == common.AddressLength {
		return address(raw), true
	}

	return hexAddress(s)
}

// addressTopic returns the address of a topic; ok is false when the bytes before it are not zero.
func addressTopic(s string) (address, bool) {
	word, err := hex.DecodeString(s)
	if err != nil || len(word) != 32 {
		return address{}, false
	}

	return addressWord(word)
}

// addressWord returns the address of an ABI word. The byte before its 20 may be the prefix 41,
// which some Tron tools set.
func addressWord(word []byte) (address, bool) {
	for i, b := range word[:12] {
		if b != 0 && (i != 11 || b != addressPrefix) {
			return address{}, false
		}
	}

	return address(word[12:32]), true
}

// pendingTransfers returns the expected transfers of a pending transaction: its own value, or the amount of a
// token transfer. The index of the latter is right for tokens whose first log is the transfer.
func (d *driver) pendingTransfers(tx blockTx) []chain.Transfer {
	if tx.tx == nil || tx.tx.kind.movesStake() {
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
		to, value, ok := parseTransferInput(tx.tx.data)
		if ok && !value.IsZero() && !chain.MaxTransfer.Less(value) {
			t.Index, t.To, t.AssetID, t.Amount = chaindata.LogIndex, canonical(to), asset.ID, value
			out = append(out, t)
		}
	}

	return out
}

// transferInput returns the ABI encoding of transfer(to, amount).
func transferInput(to address, amount chain.Amount) []byte {
	word := amount.Bytes32()

	in := append(make([]byte, 0, 68), transferSelector[:]...)
	in = append(in, common.LeftPadBytes(to[:], 32)...)

	return append(in, word[:]...)
}

// parseTransferInput decodes the output of transferInput; ok is false for other input.
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
