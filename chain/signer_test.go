package chain_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestKeyRefString(t *testing.T) {
	for want, ref := range map[string]chain.KeyRef{
		"evm/test/deposit/7":    {Family: chain.EVM, Role: chain.RoleDeposit, Index: 7},
		"bitcoin/live/master/0": {Family: chain.Bitcoin, Livemode: true, Role: chain.RoleMaster},
		"solana/live/deposit/4294967295": {
			Family:   chain.Solana,
			Livemode: true,
			Role:     chain.RoleDeposit,
			Index:    1<<32 - 1,
		},
	} {
		if got := ref.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSpace(t *testing.T) {
	n := chain.Network{Family: chain.Tron, Livemode: true}
	if got := n.Space(); got != (chain.Space{Family: chain.Tron, Livemode: true}) ||
		got.String() != "tron/live" {
		t.Errorf("got %s", got)
	}

	if n.Livemode = false; n.Space().String() != "tron/test" {
		t.Errorf("got %s", n.Space())
	}
}

func TestCurveOf(t *testing.T) {
	for f, want := range map[chain.Family]chain.Curve{
		chain.EVM:     chain.Secp256k1,
		chain.Bitcoin: chain.Secp256k1,
		chain.Tron:    chain.Secp256k1,
		chain.Sim:     chain.Secp256k1,
		chain.Solana:  chain.Ed25519,
	} {
		if got := chain.CurveOf(f); got != want {
			t.Errorf("%s signs with %s, want %s", f, got, want)
		}
	}
}

func TestRefusalIsFoundUnderWrapping(t *testing.T) {
	err := fmt.Errorf("signing payout 0123: %w", chain.Refuse("destination_not_known"))

	refusal, ok := errors.AsType[*chain.Refusal](err)
	if !ok || refusal.Reason != "destination_not_known" {
		t.Fatalf("refusal %v in %v", refusal, err)
	}

	if !errors.Is(err, fault.Forbidden) || errors.Is(err, fault.Unavailable) {
		t.Fatalf("%v must be fault.Forbidden and nothing else", err)
	}

	if got, want := err.Error(), "signing payout 0123: the signer refused: destination_not_known"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
