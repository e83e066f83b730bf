package txmgr

import (
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
)

// What rows and logs show of an error is its codes and messages down to the last fault, and nothing of what lies below.
func TestPublicTextNamesTheCause(t *testing.T) {
	secret := errors.New("GET https://node.example/key-of-the-host")
	above := fault.Wrap(secret, fault.NotFound, "block_unknown", "block 9 is above the tip")

	for _, c := range []struct {
		err  error
		want string
	}{
		{above, "block_unknown: block 9 is above the tip"},
		{
			fault.Wrap(above, fault.Unavailable, "payout_unchecked", "the network cannot be read"),
			"payout_unchecked: the network cannot be read: block_unknown: block 9 is above the tip",
		},
		{secret, "an error without a word; the driver or signer has the details"},
	} {
		if got := publicText(c.err); got != c.want {
			t.Errorf("%v is shown as %q, not %q", c.err, got, c.want)
		}
	}
}
