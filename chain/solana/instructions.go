package solana

import (
	"encoding/binary"

	solanago "github.com/gagliardetto/solana-go"
)

// The instructions, by their published layouts. Token and Token-2022 have the same ones under different
// program ids. Sources: solana-sdk system-interface and compute-budget-interface; solana-program/token
// and token-2022, instruction.rs; solana-program/associated-token-account, instruction.rs.

// instructions returns the transaction's instructions at a price per compute unit, in millionths of a
// lamport, and a unit limit.
func (b *txBuilder) instructions(price, unitLimit uint64) []solanago.Instruction {
	var list []solanago.Instruction
	if b.nonce != nil {
		list = append(list, advanceNonce(b.nonce.account, b.from))
	}

	list = append(list, setComputeUnitLimit(uint32(unitLimit)))
	if price > 0 {
		list = append(list, setComputeUnitPrice(price))
	}

	for _, p := range b.payments {
		if p.mint == nil {
			list = append(list, transferCoin(b.from, p.to, p.amount))
			continue
		}

		if p.create {
			list = append(list, createTokenAccount(b.payer, p.account, p.to, *p.mint))
		}

		list = append(list, transferTokens(b.source, b.from, p))
	}

	if b.unwraps {
		p := b.payments[0]
		list = append(list, closeTokenAccount(p.account, b.payer, b.payer, *p.mint))
	}

	if b.rentRecipient != nil {
		if b.payments[0].hasFee {
			list = append(list, harvestFees(b.source, *b.sourceMint))
		}

		list = append(list, closeTokenAccount(b.source, *b.rentRecipient, b.from, *b.sourceMint))
	}

	return list
}

func setComputeUnitLimit(units uint32) solanago.Instruction {
	return solanago.NewInstruction(
		solanago.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, units),
	)
}

func setComputeUnitPrice(microLamports uint64) solanago.Instruction {
	return solanago.NewInstruction(
		solanago.ComputeBudget, nil, binary.LittleEndian.AppendUint64([]byte{3}, microLamports),
	)
}

func transferCoin(from, to solanago.PublicKey, lamports uint64) solanago.Instruction {
	data := binary.LittleEndian.AppendUint64([]byte{2, 0, 0, 0}, lamports)

	return solanago.NewInstruction(solanago.SystemProgramID, solanago.AccountMetaSlice{
		solanago.Meta(from).WRITE().SIGNER(),
		solanago.Meta(to).WRITE(),
	}, data)
}

// createTokenAccount creates an associated token account unless it exists.
func createTokenAccount(payer, account, owner solanago.PublicKey, m mint) solanago.Instruction {
	return solanago.NewInstruction(solanago.SPLAssociatedTokenAccountProgramID, solanago.AccountMetaSlice{
		solanago.Meta(payer).WRITE().SIGNER(),
		solanago.Meta(account).WRITE(),
		solanago.Meta(owner),
		solanago.Meta(m.key),
		solanago.Meta(solanago.SystemProgramID),
		solanago.Meta(m.program),
	}, []byte{1})
}

// transferTokens transfers the gross amount of a payment, of which the mint withholds the fee. The
// program compares the expected fee, so a fee changed meanwhile fails the transaction instead of
// delivering less.
func transferTokens(source, owner solanago.PublicKey, p payment) solanago.Instruction {
	data := []byte{12} // TransferChecked
	if p.hasFee {
		data = []byte{26, 1} // TransferCheckedWithFee
	}

	data = append(binary.LittleEndian.AppendUint64(data, p.gross), p.mint.Decimals)
	if p.hasFee {
		data = binary.LittleEndian.AppendUint64(data, p.fee)
	}

	return solanago.NewInstruction(p.mint.program, solanago.AccountMetaSlice{
		solanago.Meta(source).WRITE(),
		solanago.Meta(p.mint.key),
		solanago.Meta(p.account).WRITE(),
		solanago.Meta(owner).SIGNER(),
	}, data)
}

// harvestFees transfers the withheld fees of a token account to the mint. An account with withheld fees
// cannot be closed.
func harvestFees(account solanago.PublicKey, m mint) solanago.Instruction {
	return solanago.NewInstruction(m.program, solanago.AccountMetaSlice{
		solanago.Meta(m.key).WRITE(),
		solanago.Meta(account).WRITE(),
	}, []byte{26, 4})
}

// closeTokenAccount closes an empty token account and transfers its rent to an account.
func closeTokenAccount(account, rentRecipient, owner solanago.PublicKey, m mint) solanago.Instruction {
	return solanago.NewInstruction(m.program, solanago.AccountMetaSlice{
		solanago.Meta(account).WRITE(),
		solanago.Meta(rentRecipient).WRITE(),
		solanago.Meta(owner).SIGNER(),
	}, []byte{9})
}
