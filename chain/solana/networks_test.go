package solana_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/solana"
)

// Slots of the main network were shortened to some 210 ms in 2026: what counts blocks would be done in half the time.
func TestCatalogueKnowsThePaceOfSlots(t *testing.T) {
	if pace := solana.Mainnet.BlockTime; pace < 200*time.Millisecond || pace > 250*time.Millisecond {
		t.Errorf("the main network has a slot every %v", pace)
	}
}
