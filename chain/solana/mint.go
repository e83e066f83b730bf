package solana

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/fault"
)

// The layouts of SPL Token and Token-2022. Sources: solana-program/token, interface/src/state.rs;
// solana-program/token-2022, interface/src/state.rs and interface/src/extension/mod.rs.
const (
	mintSize         = 82
	tokenAccountSize = 165 // a mint with extensions is padded to it as well
	kindAt           = 165 // where the kind of an account with extensions stands
	extensionsAt     = 166
	kindMint         = 1
	kindTokenAccount = 2
)

// extension is the number of a Token-2022 extension.
type extension uint16

const (
	extTransferFee   extension = 1
	extMemoRequired  extension = 8
	lengthOfFee                = 108
	feeAccountGrowth           = 12 // TransferFeeAmount in a token account: type, length, 8 bytes
)

// harmless are the extensions of a mint that a payment can live with. Every other one is refused,
// those of the future included.
var harmless = map[extension]bool{
	extTransferFee: true,
	18:             true, // MetadataPointer
	19:             true, // TokenMetadata
	20:             true, // GroupPointer
	21:             true, // TokenGroup
	22:             true, // GroupMemberPointer
	23:             true, // TokenGroupMember
}

// refused says what is wrong with the other extensions that are known.
var refused = map[extension]string{
	3:  "its issuer can close the mint",
	4:  "balances can be confidential, where they cannot be read",
	6:  "new accounts can start frozen, so that payments fail",
	9:  "it cannot be transferred",
	10: "wallets show interest that is no tokens, so payers would send another amount",
	12: "a permanent delegate can take the tokens away",
	14: "a foreign program runs with every transfer and can refuse it",
	16: "fees can be confidential, where they cannot be read",
	24: "tokens can be made and destroyed confidentially",
	25: "wallets show scaled amounts, so payers would send another amount",
	26: "its issuer can pause all transfers",
	28: "burning needs the issuer's permission",
}

// mintState is what is read of a mint.
type mintState struct {
	decimals uint8
	fee      *transferFee // nil when it takes none
}

// transferFee is a Token-2022 transfer fee with its announced successor.
type transferFee struct{ older, newer feeRate }

type feeRate struct {
	epoch, most uint64
	bps         uint16
}

// readMint reads a mint and refuses one that cannot be used for payments: fault.Stopped with code
// token_mismatch or token_unsafe.
func readMint(m mint, a *accountInfo) (mintState, error) {
	wrong := func(code, format string, args ...any) error {
		return fault.New(
			fault.Stopped, code, "token %s (%s): %s; correct the configuration",
			m.Symbol, m.key, fmt.Sprintf(format, args...),
		)
	}
	if a == nil {
		return mintState{}, wrong("token_mismatch", "there is no such mint")
	}

	if a.Owner != m.program.String() {
		return mintState{}, wrong(
			"token_mismatch",
			"it belongs to the program %s, not %s: Config.Token2022 says which mints are of Token-2022",
			a.Owner, m.program,
		)
	}

	extensions, err := readExtensions(a.Data, mintSize, kindMint)
	if err != nil || a.Data[45] != 1 {
		return mintState{}, wrong("token_mismatch", "it is no mint")
	}

	s := mintState{decimals: a.Data[44]}
	if s.decimals != m.Decimals {
		return mintState{}, wrong("token_mismatch", "it has %d decimals, not %d", s.decimals, m.Decimals)
	}

	for kind, data := range extensions {
		switch {
		case !harmless[kind]:
			why, known := refused[kind]
			if !known {
				why = fmt.Sprintf("extension %d is not known to be safe", kind)
			}

			return mintState{}, wrong("token_unsafe", "%s", why)
		case kind == extTransferFee:
			if len(data) != lengthOfFee {
				return mintState{}, wrong("token_mismatch", "its transfer fee has %d bytes", len(data))
			}

			s.fee = &transferFee{readFeeRate(data[72:90]), readFeeRate(data[90:108])}
			if s.fee.older.bps > 10_000 || s.fee.newer.bps > 10_000 {
				return mintState{}, wrong("token_mismatch", "its transfer fee is more than everything")
			}
		}
	}

	return s, nil
}

func readFeeRate(b []byte) feeRate {
	return feeRate{
		binary.LittleEndian.Uint64(b),
		binary.LittleEndian.Uint64(b[8:]),
		binary.LittleEndian.Uint16(b[16:]),
	}
}

// readExtensions returns what follows the base state of a mint or token account: type, length,
// value, again and again.
func readExtensions(data []byte, size int, kind byte) (map[extension][]byte, error) {
	if len(data) == size {
		return nil, nil
	}

	if len(data) < extensionsAt || data[kindAt] != kind {
		return nil, errors.New("not an account of that kind")
	}

	out := map[extension][]byte{}

	for rest := data[extensionsAt:]; len(rest) >= 4; {
		t, n := extension(binary.LittleEndian.Uint16(rest)), int(binary.LittleEndian.Uint16(rest[2:]))
		if t == 0 {
			break // nothing but room
		}

		if len(rest) < 4+n {
			return nil, errors.New("an extension is cut short")
		}

		out[t], rest = rest[4:4+n], rest[4+n:]
	}

	return out, nil
}

// at returns the fee that is in force in an epoch.
func (f *transferFee) at(epoch uint64) feeRate {
	if epoch >= f.newer.epoch {
		return f.newer
	}

	return f.older
}

// of returns the fee of moving an amount: a share, rounded up, and at most the maximum.
func (r feeRate) of(amount uint64) uint64 {
	hi, lo := bits.Mul64(amount, uint64(r.bps))
	lo, carry := bits.Add64(lo, 9_999, 0)
	share, _ := bits.Div64(hi+carry, lo, 10_000) // bps is at most 10,000, so it fits

	return min(share, r.most, amount)
}

// before returns the least amount to move for net to arrive; ok is false when there is none in 64 bits.
func (r feeRate) before(net uint64) (gross uint64, ok bool) {
	if r.bps >= 10_000 {
		gross, over := bits.Add64(net, r.most, 0)
		return gross, over == 0
	}

	left := 10_000 - uint64(r.bps)
	hi, lo := bits.Mul64(net, 10_000)

	lo, carry := bits.Add64(lo, left-1, 0)
	if hi+carry >= left {
		return 0, false
	}

	gross, _ = bits.Div64(hi+carry, lo, left)
	if gross-net > r.most {
		gross, carry = bits.Add64(net, r.most, 0)
		return gross, carry == 0
	}

	return gross, true
}

// accountSize is the size of an associated token account of the mint.
func (s mintState) accountSize(m mint) int {
	if m.program != solanago.Token2022ProgramID {
		return tokenAccountSize
	}

	size := tokenAccountSize + 1 + 4 // with ImmutableOwner, which every associated account has
	if s.fee != nil {
		size += feeAccountGrowth
	}

	return size
}

// tokenAccount is what is read of a token account.
type tokenAccount struct {
	owner        solanago.PublicKey
	amount       uint64
	frozen       bool
	closer       solanago.PublicKey // who may close it besides the owner; zero for nobody
	withheld     uint64             // transfer fees kept in it
	memoRequired bool
}

// readTokenAccount reads a token account of a mint.
func readTokenAccount(a *accountInfo, m mint) (tokenAccount, error) {
	extensions, err := readExtensions(a.Data, tokenAccountSize, kindTokenAccount)
	switch {
	case a.Owner != m.program.String():
		return tokenAccount{}, fmt.Errorf("it belongs to the program %s", a.Owner)
	case err != nil || a.Data[108] == 0:
		return tokenAccount{}, errors.New("it is no token account")
	case solanago.PublicKeyFromBytes(a.Data[:32]) != m.key:
		return tokenAccount{}, errors.New("it is a token account of another mint")
	}

	t := tokenAccount{
		owner:  solanago.PublicKeyFromBytes(a.Data[32:64]),
		amount: binary.LittleEndian.Uint64(a.Data[64:]),
		frozen: a.Data[108] == 2,
	}
	if binary.LittleEndian.Uint32(a.Data[129:]) == 1 {
		t.closer = solanago.PublicKeyFromBytes(a.Data[133:165])
	}

	if held := extensions[2]; len(held) == 8 { // TransferFeeAmount
		t.withheld = binary.LittleEndian.Uint64(held)
	}

	if memo := extensions[extMemoRequired]; len(memo) == 1 {
		t.memoRequired = memo[0] == 1
	}

	return t, nil
}

// checkMints compares every enabled token with its mint.
func (d *Driver) checkMints(ctx context.Context, e *endpoint) error {
	var keys []solanago.PublicKey
	for key := range d.mints {
		keys = append(keys, key)
	}

	if len(keys) == 0 {
		return nil
	}

	accounts, _, err := e.accounts(ctx, keys, 0)
	if err != nil {
		return err
	}

	for i, key := range keys {
		if _, err := readMint(d.mints[key], accounts[i]); err != nil {
			return err
		}
	}

	return nil
}
