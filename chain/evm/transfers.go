package evm

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// transferTopic is Keccak-256("Transfer(address,address,uint256)"), the first topic of an ERC-20
// (EIP-20) transfer. The other two are sender and recipient, the data is the amount.
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// transferSelector is the function selector of transfer(address,uint256).
var transferSelector = [4]byte{0xa9, 0x05, 0x9c, 0xbb}

// transfersOf returns the transfers of enabled assets in chain order. Index 0 is the transaction's own value,
// chaindata.LogIndex + k the k-th log of its receipt. A failed transaction has none. coinLogs is set if the
// block logs all transfers of coin; the log of the transaction's own value is then left out.
func (d *driver) transfersOf(
	node *endpoint,
	tx *txJSON,
	receipt *receiptJSON,
	coinLogs bool,
) ([]chain.Transfer, error) {
	if *receipt.Status == 0 {
		return nil, nil
	}

	transfers, err := d.nativeTransfer(node, tx)
	if err != nil {
		return nil, err
	}

	for i := range receipt.Logs {
		if i == 0 && tx.logsValue(receipt) {
			continue
		}

		if transfer, ok := d.loggedTransfer(&receipt.Logs[i], coinLogs); ok {
			transfer.TxHash, transfer.Index = tx.Hash.Hex(), uint32(i)+chaindata.LogIndex
			transfers = append(transfers, transfer)
		}
	}

	return transfers, nil
}

// nativeTransfer returns the transfer of a transaction's own value, if any.
func (d *driver) nativeTransfer(node *endpoint, tx *txJSON) ([]chain.Transfer, error) {
	if tx.To == nil || tx.Value.ToInt().Sign() == 0 {
		return nil, nil
	}

	value, err := node.amount(tx.Value)
	if err != nil || !isTransferAmount(value) {
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

// loggedTransfer returns the transfer in a log of an enabled token, or of coin if coinLogs is set; ok is
// false for other logs.
func (d *driver) loggedTransfer(log *logJSON, coinLogs bool) (transfer chain.Transfer, ok bool) {
	asset, ok := d.loggedAsset(*log.Address, coinLogs)
	if !ok {
		return transfer, false
	}

	from, to, value, ok := log.transfer()
	if !ok || !isTransferAmount(value) {
		return transfer, false
	}

	return chain.Transfer{From: canonical(from), To: canonical(to), AssetID: asset.ID, Amount: value}, true
}

// loggedAsset returns the asset whose transfers an address logs; ok is false for another address.
func (d *driver) loggedAsset(address common.Address, coinLogs bool) (asset chain.Asset, ok bool) {
	if address == params.SystemAddress {
		return d.native, coinLogs
	}

	asset, ok = d.tokens[address]

	return asset, ok
}

// transfer decodes a log in the form of EIP-20's Transfer event, which EIP-7708 uses too; ok is false for
// other logs.
func (l *logJSON) transfer() (from, to common.Address, value chain.Amount, ok bool) {
	if len(l.Topics) != 3 || l.Topics[0] != transferTopic || len(l.Data) != 32 {
		return from, to, value, false
	}

	from, validFrom := addressWord(l.Topics[1][:])
	to, validTo := addressWord(l.Topics[2][:])
	value, err := chain.AmountFromBytes(l.Data)

	return from, to, value, validFrom && validTo && err == nil
}

// pendingTransfers returns the transfers of a pending transaction if it succeeds: its own value, or the
// amount of a plain token transfer. The index is right for tokens whose first log is that event.
func (d *driver) pendingTransfers(node *endpoint, tx *txJSON) ([]chain.Transfer, error) {
	transfers, err := d.nativeTransfer(node, tx)
	if err != nil || tx.To == nil {
		return nil, err
	}

	if asset, ok := d.tokens[*tx.To]; ok {
		if to, value, ok := parseTransferInput(tx.Input); ok && isTransferAmount(value) {
			transfers = append(transfers, chain.Transfer{
				TxHash:  tx.Hash.Hex(),
				Index:   chaindata.LogIndex,
				From:    canonical(*tx.From),
				To:      canonical(to),
				AssetID: asset.ID,
				Amount:  value,
			})
		}
	}

	return transfers, nil
}

// isTransferAmount reports whether an amount is above 0 and at most chain.MaxTransfer.
func isTransferAmount(amount chain.Amount) bool {
	return !amount.IsZero() && !chain.MaxTransfer.Less(amount)
}

// transferInput returns the ABI encoding of transfer(to, amount).
func transferInput(to common.Address, amount chain.Amount) []byte {
	word := amount.Bytes32()

	input := append(make([]byte, 0, 68), transferSelector[:]...)
	input = append(input, common.LeftPadBytes(to[:], 32)...)

	return append(input, word[:]...)
}

// parseTransferInput decodes the output of transferInput; ok is false for anything else.
func parseTransferInput(input []byte) (to common.Address, amount chain.Amount, ok bool) {
	if len(input) != 68 || [4]byte(input) != transferSelector {
		return to, amount, false
	}

	to, ok = addressWord(input[4:36])
	if !ok {
		return to, amount, false
	}

	amount, err := chain.AmountFromBytes(input[36:68])

	return to, amount, err == nil
}

// addressWord returns the address in an ABI word; ok is false if the first 12 bytes are not zero.
func addressWord(word []byte) (common.Address, bool) {
	for _, b := range word[:12] {
		if b != 0 {
			return common.Address{}, false
		}
	}

	return common.Address(word[12:32]), true
}
