package solana

import (
	"encoding/binary"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/fault"
)

// raisePrice returns the price for a transaction that replaces an earlier one, or follows one that ran out, per compute
// unit in millionths of a lamport: twice the earlier price, or what the network asks for if that is more.
func (b *txBuilder) raisePrice(price, maximum uint64) uint64 {
	earlier := b.order.Replaces
	if earlier == nil {
		earlier = b.order.Expired
	}

	if earlier == nil {
		return price
	}

	return min(max(price, 2*priceOf(earlier.Raw), lowestRaise), maximum)
}

// lowestRaise is the least that a second transaction offers, in millionths of a lamport per compute unit.
const lowestRaise = 10_000

// checkReplaces returns fault.Limited for a replacement that offers no more than what it should displace.
func (b *txBuilder) checkReplaces(price uint64) error {
	if b.order.Replaces == nil || b.nonce == nil || price > priceOf(b.order.Replaces.Raw) {
		return nil
	}

	return fault.New(
		fault.Limited,
		"fee_above_maximum",
		"the order from %s allows no higher price than %d millionths of a lamport per compute unit, as earlier",
		b.from,
		priceOf(b.order.Replaces.Raw),
	)
}

// priceOf returns the price per compute unit of an own transaction; 0 where it offers none.
func priceOf(raw []byte) uint64 {
	tx, err := solanago.TransactionFromBytes(raw)
	if err != nil {
		return 0
	}

	m := messageDecoder{message: tx.Message}

	for _, in := range tx.Message.Instructions {
		program, _, ok := m.resolve(in)
		if ok && program == solanago.ComputeBudget && len(in.Data) == 9 && in.Data[0] == 3 {
			return binary.LittleEndian.Uint64(in.Data[1:])
		}
	}

	return 0
}
