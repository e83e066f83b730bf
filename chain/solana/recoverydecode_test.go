package solana

import (
	"bytes"
	"errors"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// decodeAccount is the account that the recoveries of the tests empty, decodeMint a token that is not enabled.
var (
	decodeAccount = solanago.PublicKeyFromBytes(bytes.Repeat([]byte{5}, 32))
	decodeMint    = solanago.PublicKeyFromBytes(bytes.Repeat([]byte{6}, 32))
)

// recovering returns a case that moves 700 base units of a token to the fee payer, as Build does after it read the
// network.
func recovering(t testing.TB, d *driver, m mint) *decodeCase {
	t.Helper()

	order := chain.Order{
		From:     chain.Party{Address: chain.Address(decodeSender.String())},
		FeePayer: &chain.Party{Address: chain.Address(decodePayer.String())},
		Recovers: &chain.Stray{
			Address: chain.Address(decodeSender.String()),
			Account: chain.Address(decodeAccount.String()),
		},
		Outputs: []chain.Output{
			{To: chain.Address(decodePayer.String()), AssetID: d.recoveredAs(m), Amount: chain.Units(700)},
		},
	}

	b, err := d.newTxBuilder(order)
	if err != nil {
		t.Fatal(err)
	}

	p := &b.payments[0]
	p.mint, b.sourceMint, b.unwraps = &m, &m, d.isWrappedCoin(m.key)
	p.gross, p.create = p.amount, true

	if _, err := b.accountKeys(); err != nil {
		t.Fatal(err)
	}

	return &decodeCase{builder: b, owners: b.tokenOwners(), recovers: decodeAccount.String()}
}

// recoveryDriver returns a driver with USDC alone, so that wrapped coin is not enabled.
func recoveryDriver(t testing.TB) *driver {
	t.Helper()

	d, err := newDriver(Config{Network: Devnet, RPC: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}

	return d
}

// TestDecodeRecoveries decodes what a recovery moves, and to whom.
func TestDecodeRecoveries(t *testing.T) {
	d := recoveryDriver(t)
	token, _ := d.network.Asset("USDC")
	usdc, _ := d.mintOf(token.ID)
	unlisted := mint{key: decodeMint, program: solanago.Token2022ProgramID}
	wrapped := mint{key: solanago.WrappedSol, program: solanago.TokenProgramID}
	fees := recovering(t, d, unlisted)
	fees.builder.payments[0].gross, fees.builder.payments[0].fee, fees.builder.payments[0].hasFee = 707, 7, true

	for name, c := range map[string]struct {
		*decodeCase
		assetID string
	}{
		"unlisted":       {recovering(t, d, unlisted), d.recoveredAs(unlisted)},
		"with a fee":     {fees, d.recoveredAs(unlisted)},
		"second account": {recovering(t, d, usdc), token.ID},
		"wrapped coin":   {recovering(t, d, wrapped), d.native.ID},
	} {
		decoded, err := d.Decode(c.raw(t))
		want := chain.Output{
			To:      chain.Address(decodePayer.String()),
			AssetID: c.assetID,
			Amount:  chain.Units(700),
		}

		if err != nil || len(decoded.Outputs) != 1 || decoded.Outputs[0] != want ||
			len(decoded.Digests) != 2 {
			t.Errorf("%s: %+v, %v; want %+v", name, decoded, err, want)
		}
	}
}

// TestDecodeRefusesRecoveries refuses recoveries that take what deposits wait for, or go to somebody else.
func TestDecodeRefusesRecoveries(t *testing.T) {
	d := recoveryDriver(t)
	token, _ := d.network.Asset("USDC")
	usdc, _ := d.mintOf(token.ID)
	unlisted := mint{key: decodeMint, program: solanago.Token2022ProgramID}
	wrapped := mint{key: solanago.WrappedSol, program: solanago.TokenProgramID}
	deposits, _ := usdc.accountOf(decodeSender)
	home, _ := unlisted.accountOf(decodePayer)
	coins, _ := wrapped.accountOf(decodePayer)
	stray := func() *decodeCase { return recovering(t, d, unlisted) }
	coin := func() *decodeCase { return recovering(t, d, wrapped) }

	counted := recovering(t, d, usdc).with(accountSwapped(3, 0, deposits))
	counted.recovers = deposits.String()

	wrongly := stray()
	wrongly.recovers = "here"

	for name, c := range map[string]*decodeCase{
		"what deposits wait for":     counted,
		"another account":            stray().with(accountSwapped(3, 0, decodeThief)),
		"an account that is none":    wrongly,
		"a thief's account":          stray().with(accountSwapped(3, 2, decodeThief)),
		"to another owner":           stray().owned(decodeThief.String()),
		"to nobody":                  stray().owned(),
		"another mint":               stray().with(accountSwapped(3, 1, decodeThief)),
		"another token program":      stray().with(dataChanged(3, 0)),
		"other decimals":             recovering(t, d, usdc).with(dataChanged(3, 9)),
		"an account for a thief":     stray().with(accountSwapped(2, 2, decodeThief)),
		"an account paid by another": stray().with(accountSwapped(2, 0, decodeSender)),
		"another account opened":     stray().with(accountSwapped(2, 1, decodeThief)),
		"an account opened in vain":  stray().with(dropped(3)),
		"nothing moved": stray().with(func(list []solanago.Instruction) []solanago.Instruction {
			return list[:2]
		}).owned(),
		"coin besides": stray().with(appended(transferCoin(decodeSender, decodePayer, 1))),
		"two transfers": stray().with(func(list []solanago.Instruction) []solanago.Instruction {
			return append(list, list[3])
		}),
		"closing an unlisted token's account": stray().with(
			appended(closeTokenAccount(home, decodePayer, decodePayer, unlisted)),
		),
		"closing the sender's account": coin().with(accountSwapped(4, 0, decodeAccount)),
		"unwrapping to a thief":        coin().with(accountSwapped(4, 1, decodeThief)),
		"unwrapping another's account": coin().with(accountSwapped(4, 2, decodeSender)),
		"unwrapping after another token": stray().with(
			appended(closeTokenAccount(coins, decodePayer, decodePayer, wrapped)),
		),
		"more after unwrapping": coin().with(appended(transferCoin(decodePayer, decodeThief, 1))),
	} {
		decoded, err := d.Decode(c.raw(t))
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "unsigned_invalid" {
			t.Errorf("%s: it decodes to %+v, %v", name, decoded, err)
		}
	}

	// An order of a payment is no recovery, and the other way round.
	paid, recovered := paying(t, d, "USDC", true), recovering(t, d, usdc)
	paid.recovers, recovered.recovers = deposits.String(), ""

	for name, c := range map[string]*decodeCase{"a payment": paid, "a recovery": recovered} {
		if decoded, err := d.Decode(c.raw(t)); err == nil {
			t.Errorf("%s written as the other decodes to %+v", name, decoded)
		}
	}
}
