//go:build unix

package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Our header has the layout that the npm package stripe verifies: a receiver that somebody else
// wrote accepts what we sign, also while a rotation is under way, and refuses what was tampered
// with.
func TestAnotherImplementationVerifiesOurSignature(t *testing.T) {
	const body, secret, previous = `{"id":"evt_1","type":"invoice.paid","note":"é€😀"}`, "whsec_bmV3", "whsec_b2xk"

	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	type delivery struct {
		Body   string `json:"body"`
		Header string `json:"header"`
		Secret string `json:"secret"`
		At     int64  `json:"at"`
	}

	one, both := webhook.Sign([]byte(body), at, secret), webhook.Sign([]byte(body), at, secret, previous)
	deliveries := []delivery{
		{body, one, secret, at.UnixMilli()},
		{body, both, secret, at.UnixMilli()},
		{body, both, previous, at.UnixMilli()},
		{body, one, secret, at.Add(webhook.Tolerance).UnixMilli()},
		{body, one, secret, at.Add(webhook.Tolerance + time.Second).UnixMilli()},
		{body, one, previous, at.UnixMilli()},
		{strings.Replace(body, "paid", "void", 1), one, secret, at.UnixMilli()},
		{body, strings.Replace(one, "t=1", "t=2", 1), secret, at.UnixMilli()},
	}

	input, err := json.Marshal(deliveries)
	if err != nil {
		t.Fatal(err)
	}

	var got []*string
	if err := json.Unmarshal(
		testenv.Node(t, "internal/testing/testenv/stripe/verify.js", input),
		&got,
	); err != nil {
		t.Fatal(err)
	}

	paid := "invoice.paid"
	if diff := cmp.Diff([]*string{&paid, &paid, &paid, &paid, nil, nil, nil, nil}, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}

	for i, d := range deliveries { // and ours agrees on each
		ours := webhook.VerifyAt([]byte(d.Body), d.Header, time.UnixMilli(d.At), d.Secret) == nil
		if theirs := got[i] != nil; ours != theirs {
			t.Errorf("delivery %d: ours says %v, theirs %v", i, ours, theirs)
		}
	}
}
