package txmgr

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
)

func TestWhenAPaymentMayBeBumped(t *testing.T) {
	row := func(kind wallet.Kind, state wallet.State, failure string) wallet.Transaction {
		return wallet.Transaction{Kind: kind, State: state, Failure: failure}
	}
	bumps := func(n int) (all []wallet.Transaction) {
		for range n {
			all = append(
				all, row(wallet.Bump, wallet.Broadcast, ""),
				row(wallet.Payout, wallet.Broadcast, ""),
			)
		}

		return all
	}

	failed := func(n int) (all []wallet.Transaction) {
		for range n {
			all = append(all, row(wallet.Bump, wallet.Failed, wallet.FailStale))
		}

		return all
	}
	for _, c := range []struct {
		name string
		l    bumpState
		want bool
	}{
		{"it waits long enough", bumpState{waited: time.Hour}, true},
		{"not long enough", bumpState{waited: time.Hour - 1}, false},
		{"it is a payout of ours", bumpState{waited: time.Hour, own: true}, false},
		{
			"its bump is queued",
			bumpState{waited: time.Hour, earlier: []wallet.Transaction{row(wallet.Bump, wallet.Queued, "")}},
			false,
		},
		{
			"its bump is on its way",
			bumpState{waited: time.Hour, earlier: []wallet.Transaction{row(wallet.Bump, wallet.Broadcast, "")}},
			false,
		},
		{
			"its bump was final, and left the chain with it",
			bumpState{waited: time.Hour, earlier: []wallet.Transaction{row(wallet.Bump, wallet.Confirmed, "")}},
			false,
		},
		{
			"its bump is dead",
			bumpState{
				waited:  time.Hour,
				earlier: []wallet.Transaction{row(wallet.Bump, wallet.Failed, wallet.FailConflict)},
			},
			false,
		},
		{
			"its bump was not needed any more",
			bumpState{
				waited:  time.Hour,
				earlier: []wallet.Transaction{row(wallet.Bump, wallet.Failed, wallet.FailCanceled)},
			},
			true,
		},
		{
			"its bump was not signed in time",
			bumpState{waited: time.Hour, earlier: failed(maxBumpsPerPayment - 1)},
			true,
		},
		{
			"its bumps were never signed in time",
			bumpState{waited: time.Hour, earlier: failed(maxBumpsPerPayment)},
			false,
		},
		{
			"the signer refused",
			bumpState{
				waited:  time.Hour,
				earlier: []wallet.Transaction{row(wallet.Bump, wallet.Failed, wallet.FailSignerRefused+"policy")},
			},
			false,
		},
		{"the wallet has room for one more", bumpState{waited: time.Hour, live: bumps(maxBumps - 1)}, true},
		{"the wallet waits for as many as it may", bumpState{waited: time.Hour, live: bumps(maxBumps)}, false},
	} {
		c.l.after = time.Hour
		if got := c.l.due(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
