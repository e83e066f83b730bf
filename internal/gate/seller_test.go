package gate_test

import (
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// selling is a driver that buys energy of one account.
type selling struct {
	driver
	seller chain.Address
}

func (s selling) EnergySellers() []chain.Address { return []chain.Address{s.seller} }

// TestSellersOfEnergyAreSignedForDelegationsAlone signs what pays a seller of energy as a delegation, and in no other
// kind, and no delegation that pays anybody else.
func TestSellersOfEnergyAreSignedForDelegationsAlone(t *testing.T) {
	var seller chain.Address

	e := newExpiring(t, func(w *sim.Windows) driver {
		seller = w.NewAddress()
		return selling{w, seller}
	})

	for _, c := range []struct {
		kind  wallet.Kind
		to    chain.Address
		signs bool
	}{
		{wallet.Delegate, seller, true},
		{wallet.Fee, seller, false},
		{wallet.TopUp, seller, false},
		{wallet.Delegate, e.db.payout.Destination, false},
	} {
		unsigned, err := e.driver.Build(t.Context(), chain.Order{
			From:    e.from,
			MaxFee:  e.db.payout.MaxNetworkFee,
			Outputs: []chain.Output{{To: c.to, AssetID: e.db.payout.AssetID, Amount: chain.Pow10(17)}},
		})
		if err != nil {
			t.Fatal(err)
		}

		_, err = e.gate.Sign(t.Context(), chain.SignRequest{
			Network:  e.db.payout.Network,
			Unsigned: unsigned.Raw,
			Payloads: unsigned.Payloads,
			Intent: chain.Intent{
				Kind:      string(c.kind),
				ObjectID:  payoutID,
				AccountID: accountID,
				Outputs:   unsigned.Outputs,
				MaxFee:    unsigned.MaxFee,
			},
		})

		if _, refused := errors.AsType[*chain.Refusal](err); refused == c.signs || (err == nil) != c.signs {
			t.Errorf("a %s to %s: %v", c.kind, c.to, err)
		}
	}
}
