package solana_test

import (
	"encoding/binary"

	solanago "github.com/gagliardetto/solana-go"
)

// The instructions of SPL Token and Token-2022 that only tests send, by their published layouts (solana-program/token,
// instruction.rs). solana-go's package of them needs a client and modules that nothing else does.

// initializeMint returns InitializeMint2, with one authority for minting and freezing.
func initializeMint(program, mint, authority solanago.PublicKey, decimals uint8) solanago.Instruction {
	data := append([]byte{20, decimals}, authority[:]...)
	data = append(data, 1) // there is a freeze authority
	data = append(data, authority[:]...)

	return solanago.NewInstruction(program, solanago.AccountMetaSlice{solanago.Meta(mint).WRITE()}, data)
}

// mintTokens returns MintTo. The amount is in base units.
func mintTokens(program, mint, account, authority solanago.PublicKey, amount uint64) solanago.Instruction {
	return solanago.NewInstruction(program, solanago.AccountMetaSlice{
		solanago.Meta(mint).WRITE(),
		solanago.Meta(account).WRITE(),
		solanago.Meta(authority).SIGNER(),
	}, binary.LittleEndian.AppendUint64([]byte{7}, amount))
}

// initializeAccount returns InitializeAccount3.
func initializeAccount(program, account, mint, owner solanago.PublicKey) solanago.Instruction {
	return solanago.NewInstruction(
		program,
		solanago.AccountMetaSlice{solanago.Meta(account).WRITE(), solanago.Meta(mint)},
		append([]byte{18}, owner[:]...),
	)
}

// closeAccount returns CloseAccount. The rent goes to the owner.
func closeAccount(program, account, owner solanago.PublicKey) solanago.Instruction {
	return solanago.NewInstruction(program, solanago.AccountMetaSlice{
		solanago.Meta(account).WRITE(),
		solanago.Meta(owner).WRITE(),
		solanago.Meta(owner).SIGNER(),
	}, []byte{9})
}

// freezeAccount returns FreezeAccount.
func freezeAccount(program, account, mint, authority solanago.PublicKey) solanago.Instruction {
	return solanago.NewInstruction(program, solanago.AccountMetaSlice{
		solanago.Meta(account).WRITE(),
		solanago.Meta(mint),
		solanago.Meta(authority).SIGNER(),
	}, []byte{10})
}

// syncNative returns SyncNative: wrapped coin that was sent to an account counts.
func syncNative(account solanago.PublicKey) solanago.Instruction {
	return solanago.NewInstruction(
		solanago.TokenProgramID, solanago.AccountMetaSlice{solanago.Meta(account).WRITE()}, []byte{17},
	)
}
