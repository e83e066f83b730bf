package payout

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func TestDestinationMustBeOnTheList(t *testing.T) {
	network := sim.New(sim.Config{})

	to := network.NewAddress()
	slug := network.Network().Slug

	here, other := chain.Destination{
		Network: slug,
		Address: to,
	}, chain.Destination{
		Network: slug,
		Address: network.NewAddress(),
	}
	for _, c := range []struct {
		name string
		only []chain.Destination
		code string
	}{
		{"no list", nil, ""},
		{"on the list", []chain.Destination{other, here}, ""},
		{"not on the list", []chain.Destination{other}, "destination_not_allowed"},
		{
			"the same address on another network",
			[]chain.Destination{{Network: "elsewhere", Address: to}},
			"destination_not_allowed",
		},
		{"an empty list", []chain.Destination{}, "destination_not_allowed"},
	} {
		if _, err := destination(network, string(to), c.only); fault.Code(err) != c.code {
			t.Errorf("%s: %v, want code %q", c.name, err, c.code)
		}
	}
}

// refusing is a driver that cannot pay a destination.
type refusing struct {
	chain.Driver
	err error
}

func (r refusing) EstimateFee(context.Context, chain.Order) (chain.Amount, error) {
	return chain.Amount{}, r.err
}

// TestRefusedDestinationKeepsItsReason shows the caller why a driver refuses a destination.
func TestRefusedDestinationKeepsItsReason(t *testing.T) {
	network := sim.New(sim.Config{})
	refused := fault.Wrap(
		nil, fault.Invalid, "destination_not_payable", "%s cannot be paid: %s", "T", "it is a token account",
	)

	_, err := estimateFee(
		t.Context(), refusing{network, refused}, Params{}, chain.Asset{}, chain.Party{}, "T", nil,
	)

	shown, ok := errors.AsType[*fault.Error](err)
	if !ok || shown.Code != "destination_not_payable" || shown.Param != "destination" ||
		!strings.Contains(shown.Message, "it is a token account") || !errors.Is(err, fault.Invalid) {
		t.Errorf("%+v", err)
	}

	unsafe := fault.New(fault.Stopped, "token_unsafe", "a program of the issuer runs with every transfer")

	_, err = estimateFee(
		t.Context(), refusing{network, unsafe}, Params{}, chain.Asset{}, chain.Party{}, "T", nil,
	)
	if shown, ok := errors.AsType[*fault.Error](
		err,
	); !ok || shown.Code != "token_unsafe" || !shown.Transient ||
		!errors.Is(shown.Kind, fault.Invalid) ||
		!strings.Contains(shown.Message, unsafe.Message) {
		t.Errorf("an unsafe token: %+v", err)
	}

	other := fault.New(fault.Invalid, "order_invalid", "no")

	_, err = estimateFee(
		t.Context(),
		refusing{network, other},
		Params{},
		chain.Asset{},
		chain.Party{},
		"T",
		nil,
	)
	if fault.Code(err) != "destination_invalid" {
		t.Errorf("another refusal: %v", err)
	}
}
