package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// What is printed has every key on record, deposits and masters of each network's keys, and those of no other.
func TestRecoveryNamesEveryKeyOnRecord(t *testing.T) {
	const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	records, began := memory.New(), time.Unix(1_700_000_000, 0).UTC()
	bitcoin, evm := chain.Space{
		Family:   chain.Bitcoin,
		Livemode: true,
	}, chain.Space{
		Family:   chain.EVM,
		Livemode: true,
	}

	err = records.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for i, a := range []struct {
			space chain.Space
			role  chain.Role
			index uint32
		}{
			{bitcoin, chain.RoleDeposit, 0},
			{bitcoin, chain.RoleDeposit, 64},
			{bitcoin, chain.RoleDeposit, 1 << 20},
			{bitcoin, chain.RoleMaster, 3},
			{evm, chain.RoleDeposit, 7},
			{evm, chain.RoleMaster, 0},
			{chain.Space{Family: chain.Tron, Livemode: true}, chain.RoleDeposit, 9},
		} {
			if err := tx.PutAddress(ctx, invoice.Address{
				Space:     a.space,
				Address:   chain.Address(fmt.Sprint("address", i)),
				Kind:      invoice.ForWallet,
				Network:   "n",
				Key:       chain.KeyRef{Family: a.space.Family, Livemode: true, Role: a.role, Index: a.index},
				CreatedAt: began.Add(-time.Duration(i) * time.Hour),
			}); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, private := range []bool{false, true} {
		var out bytes.Buffer
		if err := writeRecovery(
			t.Context(),
			records,
			keys,
			[]chain.Space{evm, bitcoin, evm},
			private,
			&out,
		); err != nil {
			t.Fatal(err)
		}

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 8 {
			t.Fatalf("printed %q", lines)
		}

		var deposits []struct {
			Desc      string
			Range     []uint32
			Timestamp int64
		}
		if err := json.Unmarshal([]byte(lines[1]), &deposits); err != nil {
			t.Fatal(err)
		}

		if len(deposits) != 2 || fmt.Sprint(deposits[0].Range) != "[0 64]" || deposits[1].Range != nil ||
			!strings.Contains(deposits[1].Desc, "/1048576)#") ||
			deposits[0].Timestamp != began.Add(-2*time.Hour).Unix() {
			t.Errorf("deposits of Bitcoin: %+v", deposits)
		}

		if strings.Contains(out.String(), "xprv") != private {
			t.Errorf("private keys, asked for: %t", private)
		}

		if lines[5] != "m/44'/60'/0'/0/7 address4" || lines[7] != "m/44'/60'/2'/0/0 address5" {
			t.Errorf("EVM: %q", lines[4:])
		}
	}
}
