package solana

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// mint is an enabled token.
type mint struct {
	chain.Asset
	key      solanago.PublicKey
	program  solanago.PublicKey // SPL Token or Token-2022
	accepted []TokenRisk
}

// mintOf returns the mint of an asset id.
func (d *driver) mintOf(assetID string) (mint, bool) {
	asset, ok := d.network.AssetByID(assetID)
	if !ok || asset.Kind != chain.Token {
		return mint{}, false
	}

	m, ok := d.mints[solanago.MustPublicKeyFromBase58(string(asset.Contract))]

	return m, ok
}

// accountOf returns the associated token account of an owner.
func (m mint) accountOf(owner solanago.PublicKey) (solanago.PublicKey, error) {
	account, _, err := solanago.FindAssociatedTokenAddressWithProgram(owner, m.key, m.program)
	if err != nil {
		return account, fault.Wrap(
			err, fault.Invalid, "address_invalid", "%s has no associated token account for %s",
			owner, m.Symbol,
		)
	}

	return account, nil
}

// checkMints compares enabled tokens with their mints, which a node has under these keys; see parseMint.
func (d *driver) checkMints(ctx context.Context, e *endpoint, keys []solanago.PublicKey) error {
	if len(keys) == 0 {
		return nil
	}

	accounts, _, err := e.accounts(ctx, keys, 0)
	if err != nil {
		return err
	}

	for i, key := range keys {
		if _, err := parseMint(d.mints[key], accounts[i]); err != nil {
			return err
		}
	}

	return nil
}

// The account layouts of SPL Token and Token-2022: sizes and offsets in bytes. Sources:
// solana-program/token, interface/src/state.rs; solana-program/token-2022, interface/src/state.rs and
// interface/src/extension/mod.rs.
const (
	mintSize         = 82
	tokenAccountSize = 165 // a mint with extensions is padded to it
	accountTypeAt    = 165 // of an account with extensions
	extensionsAt     = 166
	typeMint         = 1
	typeTokenAccount = 2
)

// extension is the number of a Token-2022 extension.
type extension uint16

const (
	extTransferFee        extension = 1
	extMemoTransfer       extension = 8
	extTransferHook       extension = 14
	transferFeeConfigSize           = 108
	transferFeeAmountSize           = 12 // TransferFeeAmount in a token account: type, length, 8 bytes
	transferHookAccount             = 5  // TransferHookAccount in a token account: type, length, 1 byte
)

// allowedExtensions are the extensions of a mint that do not affect payments, or are supported. All
// others are refused, unknown ones included.
var allowedExtensions = map[extension]bool{
	extTransferFee: true,
	18:             true, // MetadataPointer
	19:             true, // TokenMetadata
	20:             true, // GroupPointer
	21:             true, // TokenGroup
	22:             true, // GroupMemberPointer
	23:             true, // TokenGroupMember
}

// refusedExtensions gives the reasons for refusing the other known extensions.
var refusedExtensions = map[extension]string{
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

// TokenRisk is an ability of a Token-2022 mint's issuer that a host can accept; see Config.AcceptedRisks.
type TokenRisk string

// The risks that can be accepted. A mint with any other refused extension cannot be enabled.
const (
	// RiskPermanentDelegate is that the issuer can take tokens away from every account.
	RiskPermanentDelegate TokenRisk = "permanent_delegate"
	// RiskCloseAuthority is that the issuer can close the mint once nobody holds tokens.
	RiskCloseAuthority TokenRisk = "close_authority"
	// RiskTransferHook is that the issuer can have a program run with every transfer. As long as none is set,
	// payments work; once one is, the token stops with token_unsafe.
	RiskTransferHook TokenRisk = "transfer_hook"
	// RiskConfidential is that holders can hide balances. Nothing hidden is credited: it arrives when it is shown.
	RiskConfidential TokenRisk = "confidential"
)

// acceptableRisks are the extensions that a host can accept.
var acceptableRisks = map[extension]TokenRisk{
	3:               RiskCloseAuthority,
	4:               RiskConfidential,
	12:              RiskPermanentDelegate,
	extTransferHook: RiskTransferHook,
	16:              RiskConfidential,
}

// checkExtension returns why an extension of the mint cannot be used; "" when it can.
func (m mint) checkExtension(kind extension, data []byte) string {
	if allowedExtensions[kind] {
		return ""
	}

	reason, known := refusedExtensions[kind]
	if !known {
		return fmt.Sprintf("extension %d is not known to be safe", kind)
	}

	risk, acceptable := acceptableRisks[kind]

	switch {
	case !acceptable:
		return reason
	case !slices.Contains(m.accepted, risk):
		return fmt.Sprintf("%s; Config.AcceptedRisks can accept %q", reason, risk)
	case kind == extTransferHook && !bytes.Equal(transferHookProgram(data), make([]byte, 32)):
		return reason + "; one is set"
	}

	return ""
}

// transferHookProgram returns the program of a transfer hook, which follows its authority.
func transferHookProgram(data []byte) []byte {
	if len(data) != 64 {
		return nil
	}

	return data[32:]
}

// mintState is the parsed data of a mint.
type mintState struct {
	decimals uint8
	fee      *transferFee // nil without a transfer fee
	hook     bool         // with a transfer hook, no program set
}

// parseMint parses a mint. One that cannot be used for payments is fault.Stopped with code
// token_mismatch or token_unsafe.
func parseMint(m mint, account *accountInfo) (mintState, error) {
	if account == nil {
		return mintState{}, m.stopped("token_mismatch", "there is no such mint")
	}

	if account.Owner != m.program.String() {
		return mintState{}, m.stopped(
			"token_mismatch",
			"it belongs to the program %s, not %s: Config.Token2022 says which mints are of Token-2022",
			account.Owner, m.program,
		)
	}

	extensions, err := parseExtensions(account.Data, mintSize, typeMint)
	if err != nil || account.Data[45] != 1 {
		return mintState{}, m.stopped("token_mismatch", "it is no mint")
	}

	state := mintState{decimals: account.Data[44]}
	if state.decimals != m.Decimals {
		return mintState{}, m.stopped(
			"token_mismatch", "it has %d decimals, not %d", state.decimals, m.Decimals,
		)
	}

	for kind, data := range extensions {
		if reason := m.checkExtension(kind, data); reason != "" {
			return mintState{}, m.stopped("token_unsafe", "%s", reason)
		}

		state.hook = state.hook || kind == extTransferHook

		if kind == extTransferFee {
			if state.fee, err = parseTransferFee(m, data); err != nil {
				return mintState{}, err
			}
		}
	}

	return state, nil
}

func (m mint) stopped(code, format string, args ...any) error {
	return fault.New(
		fault.Stopped, code, "token %s (%s): %s; correct the configuration",
		m.Symbol, m.key, fmt.Sprintf(format, args...),
	)
}

// parseExtensions returns the extensions of a mint or token account: type, length and value each, after
// the base state of the size.
func parseExtensions(data []byte, size int, accountType byte) (map[extension][]byte, error) {
	if len(data) == size {
		return nil, nil
	}

	if len(data) < extensionsAt || data[accountTypeAt] != accountType {
		return nil, errors.New("not an account of that kind")
	}

	extensions := map[extension][]byte{}

	for remaining := data[extensionsAt:]; len(remaining) >= 4; {
		kind := extension(binary.LittleEndian.Uint16(remaining))
		length := int(binary.LittleEndian.Uint16(remaining[2:]))

		if kind == 0 {
			break // padding
		}

		if len(remaining) < 4+length {
			return nil, errors.New("an extension is cut short")
		}

		extensions[kind], remaining = remaining[4:4+length], remaining[4+length:]
	}

	return extensions, nil
}

// accountSize returns the size of an associated token account of the mint, in bytes.
func (s mintState) accountSize(m mint) int {
	if m.program != solanago.Token2022ProgramID {
		return tokenAccountSize
	}

	size := tokenAccountSize + 1 + 4 // with ImmutableOwner, which every associated account has
	if s.fee != nil {
		size += transferFeeAmountSize
	}

	if s.hook {
		size += transferHookAccount
	}

	return size
}

// transferFee is a Token-2022 transfer fee with its announced successor.
type transferFee struct{ older, newer feeRate }

// feeRate is a transfer fee that holds from an epoch on.
type feeRate struct {
	epoch   uint64
	maximum uint64 // base units
	bps     uint16 // hundredths of a percent
}

func parseTransferFee(m mint, data []byte) (*transferFee, error) {
	if len(data) != transferFeeConfigSize {
		return nil, m.stopped("token_mismatch", "its transfer fee has %d bytes", len(data))
	}

	fee := &transferFee{parseFeeRate(data[72:90]), parseFeeRate(data[90:108])}
	if fee.older.bps > 10_000 || fee.newer.bps > 10_000 {
		return nil, m.stopped("token_mismatch", "its transfer fee is more than everything")
	}

	return fee, nil
}

func parseFeeRate(data []byte) feeRate {
	return feeRate{
		epoch:   binary.LittleEndian.Uint64(data),
		maximum: binary.LittleEndian.Uint64(data[8:]),
		bps:     binary.LittleEndian.Uint16(data[16:]),
	}
}

// currentFee returns the transfer fee of a mint in the current epoch; zero without one.
func (e *endpoint) currentFee(ctx context.Context, s mintState) (feeRate, error) {
	if s.fee == nil {
		return feeRate{}, nil
	}

	var info struct {
		Epoch uint64 `json:"epoch"`
	}
	if err := e.call(ctx, &info, "getEpochInfo", e.newest()); err != nil {
		return feeRate{}, err
	}

	return s.fee.epochFee(info.Epoch), nil
}

// epochFee returns the fee of an epoch.
func (f *transferFee) epochFee(epoch uint64) feeRate {
	if epoch >= f.newer.epoch {
		return f.newer
	}

	return f.older
}

// calculateFee returns the fee of transferring an amount, both in base units: the share, rounded up, and
// at most the maximum. Source: token-2022, TransferFee::calculate_fee.
func (r feeRate) calculateFee(amount uint64) uint64 {
	hi, lo := bits.Mul64(amount, uint64(r.bps))
	lo, carry := bits.Add64(lo, 9_999, 0)
	share, _ := bits.Div64(hi+carry, lo, 10_000) // bps is at most 10,000, so it fits

	return min(share, r.maximum, amount)
}

// preFeeAmount returns the least amount whose transfer delivers net, both in base units. ok is false
// when it exceeds 64 bits. Source: token-2022, TransferFee::calculate_pre_fee_amount.
func (r feeRate) preFeeAmount(net uint64) (gross uint64, ok bool) {
	if r.bps >= 10_000 {
		gross, overflow := bits.Add64(net, r.maximum, 0)
		return gross, overflow == 0
	}

	netShare := 10_000 - uint64(r.bps)
	hi, lo := bits.Mul64(net, 10_000)

	lo, carry := bits.Add64(lo, netShare-1, 0)
	if hi+carry >= netShare {
		return 0, false
	}

	gross, _ = bits.Div64(hi+carry, lo, netShare)
	if gross-net > r.maximum {
		gross, carry = bits.Add64(net, r.maximum, 0)
		return gross, carry == 0
	}

	return gross, true
}

// tokenAccount is the parsed data of a token account.
type tokenAccount struct {
	owner          solanago.PublicKey
	amount         uint64 // base units
	frozen         bool
	closeAuthority solanago.PublicKey // may close it besides the owner; zero for nobody
	memoRequired   bool               // for incoming transfers
}

// parseTokenAccount parses a token account of a mint.
func parseTokenAccount(account *accountInfo, m mint) (tokenAccount, error) {
	data := account.Data

	extensions, err := parseExtensions(data, tokenAccountSize, typeTokenAccount)
	switch {
	case account.Owner != m.program.String():
		return tokenAccount{}, fmt.Errorf("it belongs to the program %s", account.Owner)
	case err != nil || data[108] == 0:
		return tokenAccount{}, errors.New("it is no token account")
	case solanago.PublicKeyFromBytes(data[:32]) != m.key:
		return tokenAccount{}, errors.New("it is a token account of another mint")
	}

	t := tokenAccount{
		owner:  solanago.PublicKeyFromBytes(data[32:64]),
		amount: binary.LittleEndian.Uint64(data[64:]),
		frozen: data[108] == 2,
	}
	if binary.LittleEndian.Uint32(data[129:]) == 1 {
		t.closeAuthority = solanago.PublicKeyFromBytes(data[133:165])
	}

	if memo := extensions[extMemoTransfer]; len(memo) == 1 {
		t.memoRequired = memo[0] == 1
	}

	return t, nil
}
