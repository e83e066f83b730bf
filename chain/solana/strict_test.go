//go:build unix

package solana_test

// What nodes refuse, by the codes of their errors.

import (
	"errors"
	"math/rand/v2"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// ways are the two ways to see payments.
var ways = map[string]func(t *testing.T, n *node) chain.Driver{
	"by block":   func(t *testing.T, n *node) chain.Driver { return n.driver(t) },
	"by address": func(t *testing.T, n *node) chain.Driver { return n.byAddress(t) },
}

// TestNewestBlockIsNotThereYet reads from a node that announces a slot before it has its block (-32014).
func TestNewestBlockIsNotThereYet(t *testing.T) {
	for way, driver := range ways {
		t.Run(way, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			to := newAddress(t)
			f := newFollowed(t, driver(t, n), to)
			f.steps(2)
			must(t, n.Late(8))

			first := n.pay(t, to, nativeAsset, 5_000_000)
			must(t, n.SolanaNode.Mine(2))

			second := n.pay(t, to, nativeAsset, 6_000_000)
			must(t, n.SolanaNode.Mine(1))
			f.steps(60)
			f.wants(to, first, second)
		})
	}
}

// TestForgottenRecordStopsItselfAlone opens an account at an address with coin, in a block whose signatures the
// node has forgotten (-32020). What the account held before cannot be known; the other payment is stored.
func TestForgottenRecordStopsItselfAlone(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	to, other := newAddress(t), newAddress(t)
	f := newFollowed(t, n.driver(t), to, other)
	f.steps(2)

	account := n.accountOf(solanago.MustPublicKeyFromBase58(string(to)))
	n.pay(t, chain.Address(account.String()), nativeAsset, 890_880)
	must(t, n.SolanaNode.Mine(1))

	first, hash := n.pay(t, to, n.asset, 5_000), n.pay(t, other, nativeAsset, 5_000_000)
	must(t, n.SolanaNode.Mine(2))

	head, err := n.driver(t).Head(t.Context())
	must(t, err)
	must(t, n.PruneRecords(head.Tip.Height))
	f.steps(8)
	f.wants(other, hash)

	unread := f.follower.Health().Unread
	if len(unread) != 1 || unread[0].TxHash != first {
		t.Errorf("unread is %+v, want %s alone", unread, first)
	}
}

// TestLongTermStorage finds old blocks in a long-term storage, skipped slots among them (-32009).
func TestLongTermStorage(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	first, err := n.driver(t).Head(t.Context())
	must(t, err)

	for range 4 {
		must(t, n.SolanaNode.Skip(3))
		must(t, n.SolanaNode.Mine(3))
	}

	head, err := n.driver(t).Head(t.Context())
	must(t, err)
	must(t, n.Prune(head.Final.Height))
	must(t, n.LongTerm(true))

	for height := first.Tip.Height; height <= head.Tip.Height; height++ {
		if ref, err := n.driver(t).RefAt(t.Context(), height); err != nil || ref.Height != height {
			t.Errorf("block %d is %+v, %v", height, ref, err)
		}
	}

	must(t, n.LongTerm(false))

	if _, err := n.driver(t).RefAt(t.Context(), first.Tip.Height); !errors.Is(err, fault.Stopped) {
		t.Errorf("without the storage: %v", err)
	}
}

// TestNodeWithoutHistory asks a node that keeps no transactions (-32011): an outage, not an empty history.
func TestNodeWithoutHistory(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)

	for way, driver := range ways {
		t.Run(way, func(t *testing.T) {
			to := newAddress(t)
			f := newFollowed(t, driver(t, n), to)
			f.steps(2)

			hash := n.pay(t, to, nativeAsset, 5_000_000)
			must(t, n.SolanaNode.Mine(2))
			must(t, n.History(false))
			f.steps(10)

			if len(f.seen) > 0 || f.follower.Health().LastError == "" {
				t.Errorf("seen %v, health %+v", f.seen, f.follower.Health())
			}

			must(t, n.History(true))
			f.steps(10)
			f.wants(to, hash)
		})
	}
}

// TestBlocksAcrossSkipsAndForks follows blocks while slots are skipped and blocks leave the chain between readings.
func TestBlocksAcrossSkipsAndForks(t *testing.T) {
	n := startFinalNode(t, mainFinality, solanago.TokenProgramID)
	must(t, n.SolanaNode.Mine(40))

	to := newAddress(t)
	f := newFollowed(t, n.driver(t), to)
	f.steps(10)

	var hashes []string

	random := rand.New(rand.NewPCG(23, 53))

	for range 60 {
		hashes = append(hashes, n.pay(t, to, nativeAsset, 5_000_000))
		must(t, n.SolanaNode.Mine(1+random.IntN(4)))

		switch random.IntN(4) {
		case 0:
			must(t, n.Skip(1+random.IntN(3)))
		case 1:
			must(t, n.Fork(1+random.IntN(4), hashes...))
		}

		f.steps(random.IntN(12))
	}

	must(t, n.SolanaNode.Mine(1))
	f.steps(20)
	f.wants(to, hashes...)

	tip, err := n.driver(t).Head(t.Context())
	must(t, err)

	if f.cursor.At.Hash != tip.Tip.Hash {
		t.Errorf("the cursor is at %+v, the tip is %+v", f.cursor.At, tip.Tip)
	}
}
