package solana

import (
	"testing"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// After a transaction an account is looked at in every reading for two minutes of the chain, however many blocks those
// are.
func TestAccountsAreHotForATime(t *testing.T) {
	const began = 1_800_000_000

	for _, c := range []struct {
		blocks uint64
		pace   time.Duration
		hot    bool
	}{
		{blocks: 10, pace: 200 * time.Millisecond, hot: true},
		{blocks: 700, pace: 100 * time.Millisecond, hot: true},
		{blocks: 500, pace: 400 * time.Millisecond, hot: false},
		{blocks: 1_300, pace: 100 * time.Millisecond, hot: false},
	} {
		d := &driver{seen: newSeenAccounts()}
		r := &reading{driver: d, positions: map[chain.Address]position{}}

		var infos []*accountInfo

		// Others at rest, which were not looked at for longer.
		for i := range byte(restLooks + 1) {
			account := addressAccount{
				holdingAccount: holdingAccount{key: solanago.PublicKey{i}},
				address:        chain.Address(rune('a' + i)),
			}
			r.left, infos = append(r.left, account), append(infos, &accountInfo{Lamports: 5})

			read := accountPosition{Signature: "s", Slot: 1, Height: 1, Time: 1, Left: 5}

			if i == restLooks {
				read.Height, read.Time = 1_000, began
			}

			r.positions[account.address] = position{account.key.String(): read}

			d.seen.change(account.key, func(seen *seenAccount) {
				seen.read, seen.held, seen.looked = "s", 5, 1+uint64(i)
			})
		}

		at := began + int64(time.Duration(c.blocks)*c.pace/time.Second)
		due := r.choose(infos, blockHeader{slot: 9_000, Height: 1_000 + c.blocks, MaybeTime: &at})

		if hot := due[0].key == r.left[restLooks].key; hot != c.hot {
			t.Errorf("%d blocks of %s later it is looked at: %t", c.blocks, c.pace, hot)
		}
	}
}
