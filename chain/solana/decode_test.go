package solana

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Keys of the tests, none of them anybody's.
var (
	decodeSender = solanago.PublicKeyFromBytes(bytes.Repeat([]byte{1}, 32))
	decodePayer  = solanago.PublicKeyFromBytes(bytes.Repeat([]byte{2}, 32))
	decodePayee  = solanago.PublicKeyFromBytes(bytes.Repeat([]byte{3}, 32))
	decodeThief  = solanago.PublicKeyFromBytes(bytes.Repeat([]byte{4}, 32))
)

// decodeDriver returns a driver with USDC (SPL Token), wrapped coin, and a token of Token-2022.
func decodeDriver(t testing.TB) *driver {
	t.Helper()

	fees := chain.Address("So11111111111111111111111111111111111111114")

	d, err := newDriver(Config{
		Network: Devnet,
		RPC:     "http://127.0.0.1:1",
		Tokens: []chain.Asset{
			{Symbol: "WSOL", Contract: chain.Address(solanago.WrappedSol.String()), Decimals: 9},
			{Symbol: "FEE", Contract: fees, Decimals: 2},
		},
		Token2022: []chain.Address{fees},
	})
	if err != nil {
		t.Fatal(err)
	}

	return d
}

// decodeCase is a transaction of the builder, whose instructions a test may change.
type decodeCase struct {
	builder txBuilder
	change  func([]solanago.Instruction) []solanago.Instruction
	owners  []string

	recovers string
}

// paying returns a case that pays 700 base units of an asset, as Build does after it read the network.
func paying(t testing.TB, d *driver, symbol string, create bool) *decodeCase {
	t.Helper()

	asset, _ := d.network.Asset(symbol)
	order := chain.Order{
		From: chain.Party{Address: chain.Address(decodeSender.String())},
		Outputs: []chain.Output{
			{To: chain.Address(decodePayee.String()), AssetID: asset.ID, Amount: chain.Units(700)},
		},
	}

	if asset.Kind == chain.Token {
		order.FeePayer = &chain.Party{Address: chain.Address(decodePayer.String())}
	}

	b, err := d.newTxBuilder(order)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := b.accountKeys(); err != nil {
		t.Fatal(err)
	}

	p := &b.payments[0]
	if p.gross, p.create = p.amount, create; symbol == "FEE" {
		p.gross, p.fee, p.hasFee = 707, 7, true
	}

	return &decodeCase{builder: b, owners: b.tokenOwners()}
}

// closing makes a case close the sender's token account.
func (c *decodeCase) closing(rentRecipient solanago.PublicKey) *decodeCase {
	c.builder.rentRecipient = &rentRecipient
	return c
}

// with makes a case change its instructions.
func (c *decodeCase) with(change func(list []solanago.Instruction) []solanago.Instruction) *decodeCase {
	c.change = change
	return c
}

// owned makes a case name other owners.
func (c *decodeCase) owned(owners ...string) *decodeCase {
	c.owners = owners
	return c
}

// raw returns Unsigned.Raw of a case.
func (c *decodeCase) raw(t testing.TB) []byte {
	t.Helper()

	list := c.builder.instructions(2_500_001, 40_000)
	if c.change != nil {
		list = c.change(list)
	}

	tx, err := solanago.NewTransaction(list, solanago.Hash{7}, solanago.TransactionPayer(c.builder.payer))
	if err != nil {
		t.Fatal(err)
	}

	message, err := tx.Message.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}

	raw, err := json.Marshal(unsignedTx{
		Message:       message,
		ValidToHeight: 9,
		Owners:        c.owners,
		Recovers:      c.recovers,
	})
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

// TestDecodeMessages decodes every kind of transaction that Build writes to its output, fee and digests.
func TestDecodeMessages(t *testing.T) {
	d := decodeDriver(t)

	// 40,000 units at 2.500001 lamports, rounded up.
	const priority = 100_001

	for name, c := range map[string]struct {
		*decodeCase
		symbol string
		fee    uint64
	}{
		"coin":           {paying(t, d, "SOL", false), "SOL", priority + 5_000},
		"token":          {paying(t, d, "USDC", false), "USDC", priority + 10_000},
		"new account":    {paying(t, d, "USDC", true), "USDC", priority + 10_000},
		"closed account": {paying(t, d, "USDC", true).closing(decodeThief), "USDC", priority + 10_000},
		"transfer fee":   {paying(t, d, "FEE", true), "FEE", priority + 10_000},
		"harvested fees": {paying(t, d, "FEE", false).closing(decodeThief), "FEE", priority + 10_000},
		"wrapped coin":   {paying(t, d, "WSOL", false), "WSOL", priority + 10_000},
	} {
		decoded, err := d.Decode(c.raw(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		asset, _ := d.network.Asset(c.symbol)
		want := chain.Output{
			To:      chain.Address(decodePayee.String()),
			AssetID: asset.ID,
			Amount:  chain.Units(700),
		}

		if len(decoded.Outputs) != 1 || decoded.Outputs[0] != want {
			t.Errorf("%s: it pays %+v, want %+v", name, decoded.Outputs, want)
		}

		if decoded.MaxFee != chain.Units(c.fee) {
			t.Errorf("%s: it may cost %s, want %d", name, decoded.MaxFee, c.fee)
		}

		var unsigned unsignedTx
		if err := json.Unmarshal(c.raw(t), &unsigned); err != nil {
			t.Fatal(err)
		}

		signers := 1
		if c.builder.payer != c.builder.from {
			signers = 2
		}

		if len(decoded.Digests) != signers || !bytes.Equal(decoded.Digests[signers-1], unsigned.Message) {
			t.Errorf("%s: its digests are %x, want %d times the message", name, decoded.Digests, signers)
		}
	}
}

// TestDecodeRefusesMessages refuses every instruction that takes something elsewhere than an output says.
func TestDecodeRefusesMessages(t *testing.T) {
	d := decodeDriver(t)
	token, _ := d.network.Asset("USDC")
	usdc, _ := d.mintOf(token.ID)
	source, _ := usdc.accountOf(decodeSender)
	payers, _ := usdc.accountOf(decodePayer)
	coin := func() *decodeCase { return paying(t, d, "SOL", false) }
	tokens := func(create bool) *decodeCase { return paying(t, d, "USDC", create) }

	for name, c := range map[string]*decodeCase{
		"a foreign program":             coin().with(appended(solanago.NewInstruction(decodeThief, nil, []byte{1}))),
		"coin of the fee payer":         tokens(false).with(appended(transferCoin(decodePayer, decodeThief, 1))),
		"tokens of the fee payer":       tokens(false).with(accountSwapped(2, 0, payers)),
		"another account of the payee":  tokens(false).with(accountSwapped(2, 2, decodeThief)),
		"another owner":                 tokens(false).owned(decodeThief.String()),
		"no owner":                      tokens(false).owned(),
		"an owner too many":             tokens(false).owned(decodePayee.String(), decodeThief.String()),
		"an owner who is none":          tokens(false).owned("me"),
		"an account opened in vain":     tokens(true).with(dropped(3)),
		"an account opened for another": tokens(true).with(accountSwapped(2, 1, decodeThief)),
		"opened in the name of another": tokens(true).with(accountSwapped(2, 2, decodeThief)),
		"opened with another program":   tokens(true).with(accountSwapped(2, 5, solanago.Token2022ProgramID)),
		"a mint that is not enabled":    tokens(false).with(accountSwapped(2, 1, decodeThief)),
		"another number of decimals":    tokens(false).with(dataChanged(2, 9)),
		"an approval":                   tokens(false).with(dataChanged(2, 0)),
		"a second compute unit limit":   coin().with(prepended(setComputeUnitLimit(1))),
		"a second compute unit price":   coin().with(prepended(setComputeUnitPrice(1))),
		"the price after the payment":   coin().with(appended(setComputeUnitPrice(1))),
		"an allocation":                 coin().with(dataChanged(2, 0)),
		"closing the fee payer's": tokens(false).with(
			appended(closeTokenAccount(payers, decodeThief, decodePayer, usdc)),
		),
		"closing without a payment": tokens(false).with(
			replaced(2, closeTokenAccount(source, decodeThief, decodeSender, usdc)),
		).owned(),
		"a payment after the closing": tokens(false).closing(decodeThief).with(
			appended(transferCoin(decodeSender, decodeThief, 1)),
		),
		"closing an account of wrapped": paying(t, d, "WSOL", false).closing(decodeThief),
		"harvesting a foreign account": paying(t, d, "FEE", false).closing(decodeThief).with(
			accountSwapped(3, 1, decodeThief),
		),
		"a fee of more than the payment": paying(t, d, "FEE", false).with(dataChanged(2, 18)),
	} {
		decoded, err := d.Decode(c.raw(t))
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "unsigned_invalid" {
			t.Errorf("%s: it decodes to %+v, %v", name, decoded, err)
		}
	}
}

type edit = func([]solanago.Instruction) []solanago.Instruction

func appended(in solanago.Instruction) edit {
	return func(list []solanago.Instruction) []solanago.Instruction { return append(list, in) }
}

func prepended(in solanago.Instruction) edit {
	return func(list []solanago.Instruction) []solanago.Instruction {
		return append([]solanago.Instruction{in}, list...)
	}
}

func dropped(at int) edit {
	return func(list []solanago.Instruction) []solanago.Instruction { return slices.Delete(list, at, at+1) }
}

func replaced(at int, in solanago.Instruction) edit {
	return func(list []solanago.Instruction) []solanago.Instruction {
		list[at] = in
		return list
	}
}

// accountSwapped puts another key in the place of an account of instruction at.
func accountSwapped(at, account int, key solanago.PublicKey) edit {
	return func(list []solanago.Instruction) []solanago.Instruction {
		metas := slices.Clone(list[at].Accounts())
		meta := *metas[account]
		meta.PublicKey = key
		metas[account] = &meta

		data, _ := list[at].Data()
		list[at] = solanago.NewInstruction(list[at].ProgramID(), metas, data)

		return list
	}
}

// dataChanged adds 1 to a byte of the data of instruction at.
func dataChanged(at, position int) edit {
	return func(list []solanago.Instruction) []solanago.Instruction {
		data, _ := list[at].Data()
		data = slices.Clone(data)
		data[position]++
		list[at] = solanago.NewInstruction(list[at].ProgramID(), list[at].Accounts(), data)

		return list
	}
}

// TestDecodeRefusesForms refuses messages that are versioned, signed by more, or followed by more.
func TestDecodeRefusesForms(t *testing.T) {
	d := decodeDriver(t)
	good := paying(t, d, "SOL", false).raw(t)

	var unsigned unsignedTx
	if err := json.Unmarshal(good, &unsigned); err != nil {
		t.Fatal(err)
	}

	rewritten := func(change func(message []byte) []byte) []byte {
		changed := unsigned
		changed.Message = change(slices.Clone(unsigned.Message))

		raw, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}

		return raw
	}

	for name, raw := range map[string][]byte{
		"no JSON":         []byte("{"),
		"spaces":          append([]byte(" "), good...),
		"a further field": append([]byte(`{"more":1,`), good[1:]...),
		"version 0":       rewritten(func(m []byte) []byte { return append([]byte{0x80}, append(m, 0)...) }),
		"no signer":       rewritten(func(m []byte) []byte { m[0] = 0; return m }),
		"three signers":   rewritten(func(m []byte) []byte { m[0] = 3; return m }),
		"a byte more":     rewritten(func(m []byte) []byte { return append(m, 0) }),
		"a byte less":     rewritten(func(m []byte) []byte { return m[:len(m)-1] }),
		"no message":      rewritten(func([]byte) []byte { return nil }),
	} {
		if decoded, err := d.Decode(raw); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: it decodes to %+v, %v", name, decoded, err)
		}
	}
}

// FuzzDecode: a message that decodes has a digest for each signature and its fee; every other one is invalid.
func FuzzDecode(f *testing.F) {
	d := decodeDriver(f)
	for _, symbol := range []string{"SOL", "USDC", "FEE"} {
		raw := paying(f, d, symbol, symbol != "SOL").raw(f)

		var unsigned unsignedTx
		if err := json.Unmarshal(raw, &unsigned); err != nil {
			f.Fatal(err)
		}

		f.Add(unsigned.Message, decodePayee.String())
	}

	f.Fuzz(func(t *testing.T, message []byte, owner string) {
		unsigned := unsignedTx{Message: message}
		if owner != "" {
			unsigned.Owners = []string{owner}
		}

		raw, err := json.Marshal(unsigned)
		if err != nil {
			t.Fatal(err)
		}

		decoded, err := d.Decode(raw)
		if err != nil {
			if !errors.Is(err, fault.Invalid) {
				t.Fatalf("%x: %v", message, err)
			}

			return
		}

		if len(decoded.Digests) != int(message[0]) || decoded.MaxFee.Less(chain.Units(lamportsPerSignature)) {
			t.Errorf("%x decodes to %+v", message, decoded)
		}
	})
}
