package solana

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	solanago "github.com/gagliardetto/solana-go"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var testKey = solanago.MustPublicKeyFromBase58("4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU")

func testMint(program solanago.PublicKey) mint {
	return mint{Asset: chain.Asset{Symbol: "TOK", Decimals: 6}, key: testKey, program: program}
}

// mintBytes writes a mint with extensions of the given kinds and lengths.
func mintBytes(extensions ...extension) []byte {
	data := make([]byte, mintSize)

	data[44], data[45] = 6, 1
	if len(extensions) == 0 {
		return data
	}

	data = append(data, make([]byte, tokenAccountSize-mintSize)...)
	data = append(data, typeMint)

	for _, x := range extensions {
		size := uint16(32)
		if x == extTransferFee {
			size = transferFeeConfigSize
		}

		if x == extTransferHook {
			size = 64
		}

		data = binary.LittleEndian.AppendUint16(data, uint16(x))
		data = binary.LittleEndian.AppendUint16(data, size)
		data = append(data, make([]byte, size)...)
	}

	return data
}

// TestUnsafeMintsAreRefused refuses every extension but those known to be harmless, with a reason.
func TestUnsafeMintsAreRefused(t *testing.T) {
	taken := []extension{1, 18, 19, 20, 21, 22, 23} // transfer fee, metadata, groups

	for kind := extension(1); kind < 64; kind++ {
		_, err := parseMint(
			testMint(solanago.Token2022ProgramID),
			&accountInfo{Owner: solanago.Token2022ProgramID.String(), Data: mintBytes(18, kind)},
		)
		if slices.Contains(taken, kind) {
			if err != nil {
				t.Errorf("extension %d: %v", kind, err)
			}

			continue
		}

		want := refusedExtensions[kind]
		if want == "" {
			want = "not known to be safe"
		}

		if !errors.Is(err, fault.Stopped) || fault.Code(err) != "token_unsafe" ||
			!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "TOK") {
			t.Errorf("extension %d: %v, want token_unsafe with the reason %q", kind, err, want)
		}
	}

	for what, c := range map[string]struct {
		program solanago.PublicKey
		account *accountInfo
	}{
		"no account": {solanago.TokenProgramID, nil},
		"another program": {
			solanago.TokenProgramID,
			&accountInfo{Owner: solanago.Token2022ProgramID.String(), Data: mintBytes()},
		},
		"a token account": {
			solanago.TokenProgramID,
			&accountInfo{Owner: solanago.TokenProgramID.String(), Data: make([]byte, tokenAccountSize)},
		},
		"too short": {
			solanago.TokenProgramID,
			&accountInfo{Owner: solanago.TokenProgramID.String(), Data: make([]byte, 81)},
		},
		"not initialized": {
			solanago.TokenProgramID,
			&accountInfo{Owner: solanago.TokenProgramID.String(), Data: make([]byte, mintSize)},
		},
		"extension is cut": {
			solanago.Token2022ProgramID,
			&accountInfo{Owner: solanago.Token2022ProgramID.String(), Data: mintBytes(18)[:170+10]},
		},
	} {
		if _, err := parseMint(testMint(c.program), c.account); fault.Code(err) != "token_mismatch" {
			t.Errorf("%s: %v, want token_mismatch", what, err)
		}
	}

	nine := testMint(solanago.TokenProgramID)

	nine.Decimals = 9

	_, err := parseMint(nine, &accountInfo{Owner: solanago.TokenProgramID.String(), Data: mintBytes()})
	if fault.Code(err) != "token_mismatch" || !strings.Contains(err.Error(), "6 decimals") {
		t.Errorf("other decimals: %v", err)
	}
}

// TestAcceptedRisksOfAMint takes a mint like PYUSD, with what a host accepts of it and nothing else.
func TestAcceptedRisksOfAMint(t *testing.T) {
	all := []TokenRisk{RiskPermanentDelegate, RiskCloseAuthority, RiskTransferHook, RiskConfidential}
	pyusd := []extension{1, 3, 4, 12, 14, 16, 18, 19}
	m := testMint(solanago.Token2022ProgramID)
	account := &accountInfo{Owner: m.program.String(), Data: mintBytes(pyusd...)}

	m.accepted = all

	state, err := parseMint(m, account)
	if err != nil || !state.hook || state.fee == nil || state.accountSize(m) != 165+1+4+12+5 {
		t.Errorf("with all accepted: %+v, %v", state, err)
	}

	for i, risk := range all {
		m.accepted = slices.Delete(slices.Clone(all), i, i+1)

		_, err := parseMint(m, account)
		if fault.Code(err) != "token_unsafe" || !strings.Contains(err.Error(), string(risk)) {
			t.Errorf("without %s: %v", risk, err)
		}
	}

	m.accepted = all

	for _, kind := range []extension{6, 9, 10, 25, 26, 28, 60} {
		data := mintBytes(append(slices.Clone(pyusd), kind)...)
		if _, err := parseMint(m, &accountInfo{Owner: m.program.String(), Data: data}); err == nil {
			t.Errorf("extension %d is taken", kind)
		}
	}

	hooked := slices.Clone(account.Data)
	hooked[bytes.Index(hooked, []byte{14, 0, 64, 0})+4+32] = 1

	_, err = parseMint(m, &accountInfo{Owner: m.program.String(), Data: hooked})
	if fault.Code(err) != "token_unsafe" || !strings.Contains(err.Error(), "one is set") {
		t.Errorf("with a transfer hook's program: %v", err)
	}
}

// TestTransferFees compares the fee with plain arithmetic, and holds the gross amount to what it is for.
func TestTransferFees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := feeRate{
			bps:     uint16(rapid.IntRange(0, 10_000).Draw(t, "bps")),
			maximum: rapid.Uint64().Draw(t, "maximum"),
		}
		amount := rapid.Uint64().Draw(t, "amount")
		n := new(big.Int).SetUint64(amount)
		n.Mul(n, big.NewInt(int64(r.bps))).Add(n, big.NewInt(9_999)).Div(n, big.NewInt(10_000))

		want := min(n.Uint64(), r.maximum)
		if got := r.calculateFee(amount); got != want {
			t.Fatalf("the fee of %d at %+v is %d, want %d", amount, r, got, want)
		}

		gross, ok := r.preFeeAmount(amount)
		if !ok {
			return
		}

		capped := r.bps == 10_000 && gross-amount == r.maximum
		if got := gross - r.calculateFee(gross); got != amount && !capped {
			t.Fatalf("%d are moved at %+v for %d to arrive, but %d do", gross, r, amount, got)
		}
	})

	if _, ok := (feeRate{bps: 5_000, maximum: math.MaxUint64}).preFeeAmount(math.MaxUint64); ok {
		t.Error("twice the largest amount fits into 64 bits")
	}
}

func TestFeeOfTheEpoch(t *testing.T) {
	f := transferFee{older: feeRate{epoch: 1, bps: 10}, newer: feeRate{epoch: 9, bps: 20}}
	for epoch, want := range map[uint64]uint16{0: 10, 8: 10, 9: 20, 10: 20} {
		if got := f.epochFee(epoch).bps; got != want {
			t.Errorf("in epoch %d the fee is %d, want %d", epoch, got, want)
		}
	}
}

// FuzzExtensions reads bytes as mints and token accounts.
func FuzzExtensions(f *testing.F) {
	f.Add(mintBytes())
	f.Add(mintBytes(1, 18, 12))
	f.Add(make([]byte, tokenAccountSize+40))

	m := testMint(solanago.Token2022ProgramID)

	f.Fuzz(func(_ *testing.T, data []byte) {
		a := &accountInfo{Owner: m.program.String(), Data: data}
		_, _ = parseMint(m, a)
		_, _ = parseTokenAccount(a, m)
	})
}
