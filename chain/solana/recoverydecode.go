package solana

import (
	"bytes"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// decodeRecovery decodes the instructions of a recovery: the payer's token account is opened, gets what the account
// that is recovered holds, and is closed where that is wrapped coin. An account where the sender's balance of an
// enabled token is counted is no such account: deposits are there.
func (m *messageDecoder) decodeRecovery(
	program solanago.PublicKey,
	accounts []solanago.PublicKey,
	data []byte,
) error {
	if program == solanago.SPLAssociatedTokenAccountProgramID {
		if m.opened != nil || len(m.outputs) > 0 || len(accounts) != 6 || !bytes.Equal(data, []byte{1}) ||
			accounts[0] != m.payer || accounts[2] != m.payer || accounts[4] != solanago.SystemProgramID {
			return errForeignInstruction
		}

		m.opened = &accounts[1] // paid by the next instruction, which names the mint

		return nil
	}

	moved, isTransfer := parseTransfer(program, data)

	switch {
	case !slices.Contains(tokenPrograms, program):
	case isTransfer:
		return m.decodeRecovered(program, accounts, moved)
	case bytes.Equal(data, []byte{9}) && program == solanago.TokenProgramID:
		return m.decodeUnwrapping(accounts)
	}

	return errForeignInstruction
}

// decodeRecovered decodes transferTokens from the account that is recovered to the payer.
func (m *messageDecoder) decodeRecovered(
	program solanago.PublicKey,
	accounts []solanago.PublicKey,
	moved tokenTransfer,
) error {
	if len(accounts) != 4 || accounts[0] != *m.recovers || accounts[3] != m.sender || len(m.outputs) > 0 ||
		len(m.owners) != 1 || m.owners[0] != m.payer ||
		m.driver.isListed(m.sender, accounts[0], accounts[1]) {
		return errForeignInstruction
	}

	token, enabled := m.driver.mints[accounts[1]]
	if !enabled {
		token = mint{key: accounts[1], program: program}
	} else if token.program != program || token.Decimals != moved.decimals {
		return errForeignInstruction
	}

	home, err := token.accountOf(m.payer)
	if err != nil || home != accounts[2] || m.opened != nil && *m.opened != home {
		return errForeignInstruction
	}

	m.opened, m.owners = nil, nil
	m.outputs = []chain.Output{{
		To:      chain.Address(m.payer.String()),
		AssetID: chain.AssetID(m.driver.network.CAIP2, chain.Address(accounts[1].String())),
		Amount:  chain.Units(moved.gross - moved.fee),
	}}

	return nil
}

// decodeUnwrapping decodes the closing of the payer's account of wrapped coin, which got what was recovered.
func (m *messageDecoder) decodeUnwrapping(accounts []solanago.PublicKey) error {
	wrapped := mint{key: solanago.WrappedSol, program: solanago.TokenProgramID}
	contract := chain.Address(solanago.WrappedSol.String())

	home, err := wrapped.accountOf(m.payer)
	if err != nil || !m.driver.isWrappedCoin(wrapped.key) || len(m.outputs) != 1 ||
		m.outputs[0].AssetID != chain.AssetID(m.driver.network.CAIP2, contract) ||
		!slices.Equal(accounts, []solanago.PublicKey{home, m.payer, m.payer}) {
		return errForeignInstruction
	}

	m.closed, m.outputs[0].AssetID = true, m.driver.native.ID

	return nil
}
