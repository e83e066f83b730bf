package send

import (
	"testing"
	"time"
)

func TestWhenAPaymentMayBeLifted(t *testing.T) {
	row := func(kind Kind, state State, failure string) Transaction {
		return Transaction{Kind: kind, State: state, Failure: failure}
	}
	lifts := func(n int) (all []Transaction) {
		for range n {
			all = append(all, row(Lift, Broadcast, ""), row(Payout, Broadcast, ""))
		}

		return all
	}

	failed := func(n int) (all []Transaction) {
		for range n {
			all = append(all, row(Lift, Failed, FailStale))
		}

		return all
	}
	for _, c := range []struct {
		name string
		l    lifting
		want bool
	}{
		{"it waits long enough", lifting{waited: time.Hour}, true},
		{"not long enough", lifting{waited: time.Hour - 1}, false},
		{"it is a payout of ours", lifting{waited: time.Hour, own: true}, false},
		{"its lift is queued", lifting{waited: time.Hour, earlier: []Transaction{row(Lift, Queued, "")}}, false},
		{"its lift is on its way", lifting{waited: time.Hour, earlier: []Transaction{row(Lift, Broadcast, "")}}, false},
		{
			"its lift was final, and left the chain with it",
			lifting{waited: time.Hour, earlier: []Transaction{row(Lift, Confirmed, "")}},
			false,
		},
		{
			"its lift is dead",
			lifting{waited: time.Hour, earlier: []Transaction{row(Lift, Failed, FailConflict)}},
			false,
		},
		{
			"its lift was not needed any more",
			lifting{waited: time.Hour, earlier: []Transaction{row(Lift, Failed, FailCanceled)}},
			true,
		},
		{"its lift was not signed in time", lifting{waited: time.Hour, earlier: failed(maxLiftsOf - 1)}, true},
		{"its lifts were never signed in time", lifting{waited: time.Hour, earlier: failed(maxLiftsOf)}, false},
		{
			"the signer refused",
			lifting{waited: time.Hour, earlier: []Transaction{row(Lift, Failed, FailSignerRefused+"policy")}},
			false,
		},
		{"the wallet has room for one more", lifting{waited: time.Hour, live: lifts(maxLifts - 1)}, true},
		{"the wallet waits for as many as it may", lifting{waited: time.Hour, live: lifts(maxLifts)}, false},
	} {
		c.l.after = time.Hour
		if got := c.l.due(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
