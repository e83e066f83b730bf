package payout

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// A payout of a token is what the block's logs say of it: a token that returns false moves nothing, one with a fee
// less.
func TestPayoutIsWhatTheBlockDelivered(t *testing.T) {
	const token, to, from = "token", "to", "master"

	type logs = []chain.Transfer

	log := func(from, to chain.Address, asset string, amount uint64) chain.Transfer {
		return chain.Transfer{From: from, To: to, AssetID: asset, Amount: chain.Units(amount)}
	}

	for name, c := range map[string]struct {
		contract  chain.Address
		logs      logs
		status    Status
		delivered string
	}{
		"all of it":             {"c", logs{log(from, to, token, 100)}, Confirmed, ""},
		"in two parts":          {"c", logs{log(from, to, token, 60), log(from, to, token, 40)}, Confirmed, ""},
		"more":                  {"c", logs{log(from, to, token, 101)}, Confirmed, ""},
		"nothing":               {"c", nil, Failed, "0"},
		"another token":         {"c", logs{log(from, to, "other", 100)}, Failed, "0"},
		"to somebody else":      {"c", logs{log(from, "else", token, 100)}, Failed, "0"},
		"less a fee":            {"c", logs{log(from, to, token, 99), log(from, "c", token, 1)}, Confirmed, "99"},
		"a fee from what came":  {"c", logs{log(from, to, token, 100), log(to, "c", token, 1)}, Confirmed, "99"},
		"to itself":             {"c", logs{log(to, to, token, 100)}, Failed, "0"},
		"native coin is proven": {"", nil, Confirmed, ""},
	} {
		p := Payout{
			Status:      Processing,
			AssetID:     token,
			Contract:    c.contract,
			Destination: to,
			Amount:      chain.Units(100),
		}
		tx := wallet.Transaction{State: wallet.Included, Transfers: c.logs, Fee: chain.Units(3)}
		tx.Order.Outputs = []chain.Output{{To: to, AssetID: token, Amount: p.Amount}}

		if _, err := p.Follow(tx, time.Unix(1, 0)); err != nil || p.Status != Included {
			t.Fatalf("%s: %s, %v", name, p.Status, err)
		}

		tx.State = wallet.Confirmed

		events, err := p.Follow(tx, time.Unix(2, 0))
		if err != nil || p.Status != c.status || p.Resource().AmountDelivered != c.delivered {
			t.Errorf("%s: %s, %q arrived, %v", name, p.Status, p.Resource().AmountDelivered, err)
		}

		want := map[Status]event.Type{Confirmed: event.PayoutConfirmed, Failed: event.PayoutFailed}[c.status]
		if len(events) != 1 || events[0] != want {
			t.Errorf("%s: events %v", name, events)
		}

		if c.status != Failed {
			continue
		}

		if p.FailureCode != wallet.FailReverted || p.FailureMessage != nothingMovedMessage ||
			p.NetworkFee == nil {
			t.Errorf("%s: %s, %q, fee %v", name, p.FailureCode, p.FailureMessage, p.NetworkFee)
		}

		before := p
		for _, tx.State = range []wallet.State{wallet.Confirmed, wallet.Broadcast, wallet.Included} {
			if events, err := p.Follow(
				tx,
				time.Unix(3, 0),
			); err != nil || len(events) > 0 ||
				p.Status != Failed {
				t.Errorf("%s: a fork makes it %s, %v, %v", name, p.Status, events, err)
			}
		}

		if p.FailedAt != before.FailedAt || p.FailureCode != before.FailureCode {
			t.Errorf("%s: it failed anew", name)
		}
	}
}
