package payout

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// A payout to an address that cannot receive the asset is refused with the driver's reason.
func TestPayoutNamesWhyADestinationCannotBePaid(t *testing.T) {
	asset := chain.Asset{Symbol: "USDT"}
	cause := fault.New(fault.Invalid, "destination_not_payable", "it is on the black list of USDT")

	err := notPayable(cause, asset, "there")

	refusal, ok := errors.AsType[*fault.Error](err)
	if !ok || refusal.Code != "destination_not_payable" || refusal.Param != "destination" ||
		!errors.Is(err, fault.Invalid) || !strings.Contains(refusal.Message, "black list") {
		t.Errorf("the refusal is %+v; want destination_not_payable with the reason", err)
	}

	other := notPayable(fault.New(fault.Invalid, "address_invalid", "a node said so"), asset, "there")

	refusal, ok = errors.AsType[*fault.Error](other)
	if !ok || refusal.Code != "destination_invalid" || strings.Contains(refusal.Message, "a node") {
		t.Errorf("another refusal is %v; want destination_invalid", other)
	}
}
