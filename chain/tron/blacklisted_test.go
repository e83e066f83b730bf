//go:build unix

package tron_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// Tokens at an address that their issuer has put on the black list cannot be released, and the refusal says so. The
// node that says it is right.
func TestReleaseFromABlacklistedAddressSaysWhy(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	master := h.wallet(1_000)
	request := h.usdtRelease(master)

	var log bytes.Buffer

	d := h.driver(t, func(c *tron.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	h.blacklist(request.Deposit.Address)

	_, err := d.PlanSweep(t.Context(), request)
	if !errors.Is(err, fault.Invalid) || fault.Code(err) != "not_releasable" ||
		!strings.Contains(err.Error(), "black list") {
		t.Errorf("the plan of the release: %v", err)
	}

	t.Log(err)

	if log.Len() > 0 {
		t.Errorf("an honest node is said to fail: %s", log.String())
	}

	held, err := d.Balances(t.Context(), h.latestBlock().Ref, []chain.Holding{
		{Address: request.Deposit.Address, AssetID: h.usdt.ID},
	})
	if err != nil || held[0] != request.Amount {
		t.Errorf("it holds %v, %v", held, err)
	}
}
