package solana

import (
	"encoding/binary"

	solanago "github.com/gagliardetto/solana-go"
)

// The instructions that are used, by their published layouts. Token and Token-2022 share theirs
// under different program ids. Sources: solana-sdk system-interface and compute-budget-interface;
// solana-program/token and token-2022, instruction.rs; solana-program/associated-token-account,
// instruction.rs.

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

// createTokenAccount makes an associated token account unless it is there already.
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

// transferTokens moves gross base units, of which the mint keeps fee. Where there can be a fee the
// program compares it, so that a fee that has changed meanwhile fails the transaction instead of
// delivering less.
func transferTokens(
	from, to, owner solanago.PublicKey,
	m mint,
	gross, fee uint64,
	hasFee bool,
) solanago.Instruction {
	data := []byte{12}
	if hasFee {
		data = []byte{26, 1}
	}

	data = append(binary.LittleEndian.AppendUint64(data, gross), m.Decimals)
	if hasFee {
		data = binary.LittleEndian.AppendUint64(data, fee)
	}

	return solanago.NewInstruction(m.program, solanago.AccountMetaSlice{
		solanago.Meta(from).WRITE(),
		solanago.Meta(m.key),
		solanago.Meta(to).WRITE(),
		solanago.Meta(owner).SIGNER(),
	}, data)
}

// harvestFees moves the transfer fees kept in a token account to the mint; an account with some
// cannot be closed.
func harvestFees(account solanago.PublicKey, m mint) solanago.Instruction {
	return solanago.NewInstruction(m.program, solanago.AccountMetaSlice{
		solanago.Meta(m.key).WRITE(),
		solanago.Meta(account).WRITE(),
	}, []byte{26, 4})
}

// closeTokenAccount closes an empty token account and gives its coin to somebody.
func closeTokenAccount(account, to, owner solanago.PublicKey, m mint) solanago.Instruction {
	return solanago.NewInstruction(m.program, solanago.AccountMetaSlice{
		solanago.Meta(account).WRITE(),
		solanago.Meta(to).WRITE(),
		solanago.Meta(owner).SIGNER(),
	}, []byte{9})
}
