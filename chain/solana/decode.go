package solana

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var _ chain.Decoder = (*driver)(nil)

// Decode implements chain.Decoder. It decodes the instructions that Build writes and no others. The owner of a
// token account is beside the message and must derive that account. MaxFee leaves out rent, which the bytes do
// not bound: only accounts that the transaction pays are opened. A closed account's rent, and nothing
// else, goes to whoever the bytes name.
func (d *driver) Decode(raw []byte) (chain.Decoded, error) {
	decoded, err := d.decodeRaw(raw)
	if err != nil {
		return chain.Decoded{}, fault.Wrap(
			err, fault.Invalid, "unsigned_invalid", "the transaction cannot be decoded",
		)
	}

	return decoded, nil
}

func (d *driver) decodeRaw(raw []byte) (chain.Decoded, error) {
	var unsigned unsignedTx
	if err := json.Unmarshal(raw, &unsigned); err != nil {
		return chain.Decoded{}, err
	}

	if again, err := json.Marshal(unsigned); err != nil || !bytes.Equal(again, raw) {
		return chain.Decoded{}, errors.New("it is not written as this driver does")
	}

	m, err := d.newMessageDecoder(unsigned)
	if err != nil {
		return chain.Decoded{}, err
	}

	nonce := nonceOf(m.message, m.sender)

	instructions := m.message.Instructions
	if nonce != nil {
		instructions = instructions[1:]
	}

	for _, in := range instructions {
		if err := m.decode(in); err != nil {
			return chain.Decoded{}, err
		}
	}

	if m.opened != nil || len(m.owners) > 0 || m.recovers != nil && len(m.outputs) == 0 {
		return chain.Decoded{}, errors.New("it opens or names a token account that it does not pay")
	}

	decoded := chain.Decoded{Outputs: m.outputs, MaxFee: m.fee()}

	if nonce != nil {
		spend := chain.Spend{Sender: chain.Address(nonce.account.String()), Value: nonce.value.String()}
		decoded.Spends = []chain.Spend{spend}
	}

	for range m.message.Header.NumRequiredSignatures {
		decoded.Digests = append(decoded.Digests, unsigned.Message)
	}

	return decoded, nil
}

// messageDecoder decodes the instructions of a message in their order.
type messageDecoder struct {
	driver        *driver
	message       solanago.Message
	payer, sender solanago.PublicKey

	owners    []solanago.PublicKey // of the token accounts that are still to be paid
	unitLimit uint32
	unitPrice uint64 // millionths of a lamport

	outputs []chain.Output
	opened  *solanago.PublicKey // the token account that the next instruction has to pay
	closed  bool

	recovers *solanago.PublicKey // the token account that a recovery empties
}

// newMessageDecoder returns the decoder of a legacy message that its sender signs, and perhaps a fee payer
// before it.
func (d *driver) newMessageDecoder(unsigned unsignedTx) (*messageDecoder, error) {
	m := &messageDecoder{driver: d}
	if err := m.message.UnmarshalBase64(encodeBase64(unsigned.Message)); err != nil {
		return nil, err
	}

	again, err := m.message.MarshalBinary()
	if err != nil || !bytes.Equal(again, unsigned.Message) || m.message.IsVersioned() {
		return nil, errors.New("it is no legacy message")
	}

	signers := int(m.message.Header.NumRequiredSignatures)
	if signers < 1 || signers > 2 || len(m.message.AccountKeys) < signers {
		return nil, errors.New("it is not signed by its sender and a fee payer")
	}

	m.payer, m.sender = m.message.AccountKeys[0], m.message.AccountKeys[signers-1]

	for _, text := range unsigned.Owners {
		owner, err := parseKey(text)
		if err != nil {
			return nil, err
		}

		m.owners = append(m.owners, owner)
	}

	if unsigned.Recovers != "" {
		account, err := parseKey(unsigned.Recovers)
		if err != nil {
			return nil, err
		}

		m.recovers = &account
	}

	return m, nil
}

// fee returns what signatures and compute units cost, in lamports, rounded up.
func (m *messageDecoder) fee() chain.Amount {
	const micro = 1_000_000

	share := chain.Units(m.unitPrice).Mul(uint64(m.unitLimit))
	share = share.RoundUpTo(chain.Units(micro)).Share(chain.Units(1), chain.Units(micro))

	return share.Add(chain.Units(lamportsPerSignature).Mul(uint64(m.message.Header.NumRequiredSignatures)))
}

var errForeignInstruction = errors.New("it has an instruction that this driver does not write")

// decode decodes one instruction.
func (m *messageDecoder) decode(in solanago.CompiledInstruction) error {
	program, accounts, ok := m.resolve(in)
	if !ok || m.closed {
		return errForeignInstruction
	}

	switch {
	case program == solanago.ComputeBudget && m.outputs == nil && m.opened == nil:
		return m.decodeBudget(in.Data)
	case m.recovers != nil:
		return m.decodeRecovery(program, accounts, in.Data)
	case program == solanago.SystemProgramID && m.opened == nil:
		return m.decodeCoinTransfer(accounts, in.Data)
	case program == solanago.SPLAssociatedTokenAccountProgramID && m.opened == nil:
		return m.decodeOpening(accounts, in.Data)
	case program == solanago.TokenProgramID || program == solanago.Token2022ProgramID:
		return m.decodeToken(program, accounts, in.Data)
	}

	return errForeignInstruction
}

// resolve returns the keys that an instruction names.
func (m *messageDecoder) resolve(
	in solanago.CompiledInstruction,
) (program solanago.PublicKey, accounts []solanago.PublicKey, ok bool) {
	keys := m.message.AccountKeys
	if int(in.ProgramIDIndex) >= len(keys) {
		return program, nil, false
	}

	for _, index := range in.Accounts {
		if int(index) >= len(keys) {
			return program, nil, false
		}

		accounts = append(accounts, keys[index])
	}

	return keys[in.ProgramIDIndex], accounts, true
}

// decodeBudget decodes setComputeUnitLimit and setComputeUnitPrice, each at most once.
func (m *messageDecoder) decodeBudget(data []byte) error {
	switch {
	case len(data) == 5 && data[0] == 2 && m.unitLimit == 0:
		m.unitLimit = binary.LittleEndian.Uint32(data[1:])
	case len(data) == 9 && data[0] == 3 && m.unitPrice == 0:
		m.unitPrice = binary.LittleEndian.Uint64(data[1:])
	default:
		return errForeignInstruction
	}

	return nil
}

// decodeCoinTransfer decodes transferCoin.
func (m *messageDecoder) decodeCoinTransfer(accounts []solanago.PublicKey, data []byte) error {
	if len(data) != 12 || binary.LittleEndian.Uint32(data) != 2 || len(accounts) != 2 ||
		accounts[0] != m.sender {
		return errForeignInstruction
	}

	m.outputs = append(m.outputs, chain.Output{
		To:      chain.Address(accounts[1].String()),
		AssetID: m.driver.native.ID,
		Amount:  chain.Units(binary.LittleEndian.Uint64(data[4:])),
	})

	return nil
}

// decodeOpening decodes createTokenAccount. The next instruction has to pay that account.
func (m *messageDecoder) decodeOpening(accounts []solanago.PublicKey, data []byte) error {
	if !bytes.Equal(data, []byte{1}) || len(accounts) != 6 || accounts[0] != m.payer || len(m.owners) == 0 ||
		accounts[2] != m.owners[0] || accounts[4] != solanago.SystemProgramID {
		return errForeignInstruction
	}

	token, enabled := m.driver.mints[accounts[3]]
	if !enabled || token.program != accounts[5] {
		return errForeignInstruction
	}

	m.opened = &accounts[1]

	return nil
}

// decodeToken decodes an instruction of the program of an enabled token.
func (m *messageDecoder) decodeToken(
	program solanago.PublicKey,
	accounts []solanago.PublicKey,
	data []byte,
) error {
	moved, isTransfer := parseTransfer(program, data)

	switch {
	case isTransfer:
		return m.decodeTokenTransfer(program, accounts, moved)
	case m.opened != nil || len(m.outputs) == 0:
		return errForeignInstruction
	case bytes.Equal(data, []byte{26, 4}) && len(accounts) == 2:
		// The fees that an account withheld belong to the mint's issuer whoever collects them.
		return m.checkSource(program, accounts[1], accounts[0])
	case bytes.Equal(data, []byte{9}) && len(accounts) == 3 && accounts[2] == m.sender:
		return m.decodeClosing(program, accounts[0])
	}

	return errForeignInstruction
}

// tokenTransfer is the data of transferTokens, in base units.
type tokenTransfer struct {
	gross, fee uint64 // fee is what the mint withholds of gross
	decimals   uint8
}

// parseTransfer parses the data of transferTokens. More withheld than is sent is none.
func parseTransfer(program solanago.PublicKey, data []byte) (t tokenTransfer, ok bool) {
	switch {
	case len(data) == 10 && data[0] == 12:
		data = data[1:]
	case len(data) == 19 && data[0] == 26 && data[1] == 1 && program == solanago.Token2022ProgramID:
		data, t.fee = data[2:11], binary.LittleEndian.Uint64(data[11:])
	default:
		return t, false
	}

	t.gross, t.decimals = binary.LittleEndian.Uint64(data), data[8]

	return t, t.fee <= t.gross
}

// decodeTokenTransfer decodes transferTokens.
func (m *messageDecoder) decodeTokenTransfer(
	program solanago.PublicKey,
	accounts []solanago.PublicKey,
	moved tokenTransfer,
) error {
	if len(accounts) != 4 || accounts[3] != m.sender || len(m.owners) == 0 {
		return errForeignInstruction
	}

	if err := m.checkSource(program, accounts[0], accounts[1]); err != nil {
		return err
	}

	token, owner := m.driver.mints[accounts[1]], m.owners[0]

	account, err := token.accountOf(owner)
	if err != nil || account != accounts[2] || moved.decimals != token.Decimals ||
		m.opened != nil && *m.opened != account {
		return errForeignInstruction
	}

	m.opened, m.owners = nil, m.owners[1:]
	m.outputs = append(m.outputs, chain.Output{
		To:      chain.Address(owner.String()),
		AssetID: token.ID,
		Amount:  chain.Units(moved.gross - moved.fee),
	})

	return nil
}

// decodeClosing decodes closeTokenAccount. The program closes only an account without tokens, except one of
// wrapped coin, which would go to the receiver of the rent.
func (m *messageDecoder) decodeClosing(program, account solanago.PublicKey) error {
	m.closed = true

	for key := range m.driver.mints {
		if key != solanago.WrappedSol && m.checkSource(program, account, key) == nil {
			return nil
		}
	}

	return errForeignInstruction
}

// checkSource returns an error unless an account is the sender's for an enabled token of a program.
func (m *messageDecoder) checkSource(program, account, mintKey solanago.PublicKey) error {
	token, enabled := m.driver.mints[mintKey]
	if !enabled || token.program != program {
		return errForeignInstruction
	}

	if own, err := token.accountOf(m.sender); err != nil || own != account {
		return errForeignInstruction
	}

	return nil
}
