//go:build unix

package solana_test

// What the main network does to whoever reads it: nodes without old blocks and signatures, transactions of
// version 1, backends of different heights behind one address, dust, and limits of calls.

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	solanago "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// pay pays lamports, or base units of the node's token, and returns the hash. It makes no block.
func (n *node) pay(t *testing.T, to chain.Address, asset chain.Asset, amount uint64) string {
	t.Helper()

	hash, err := controls{n}.Pay(t.Context(), to, asset, chain.Units(amount))
	must(t, err)

	return hash
}

var nativeAsset = chain.Asset{Kind: chain.Native}

// byAddress returns a driver without blocks.
func (n *node) byAddress(t *testing.T, change ...func(*solana.Config)) chain.Driver {
	t.Helper()

	return n.driver(t, change...).Histories()
}

// TestFirstReadingIsAtThePresent follows a node that no longer has its first blocks, and restarts.
func TestFirstReadingIsAtThePresent(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	to := newAddress(t)

	must(t, n.SolanaNode.Mine(40))

	head, err := n.driver(t).Head(t.Context())
	must(t, err)
	must(t, n.Prune(head.Final.Height))
	must(t, n.PruneRecords(head.Final.Height))

	f := newFollowed(t, n.byAddress(t), to)
	f.steps(2)

	for range 3 {
		hash := n.pay(t, to, nativeAsset, 5_000_000)
		must(t, n.SolanaNode.Mine(2))
		f.steps(10)
		f.wants(to, hash)

		if f.cursor.Stopped != "" {
			t.Fatalf("stopped: %s", f.cursor.Stopped)
		}

		f.restart(n.byAddress(t))
	}
}

// TestHistoryBeforeTheNodesFirstSlot follows an address whose older payments the node has forgotten.
func TestHistoryBeforeTheNodesFirstSlot(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	to, other := newAddress(t), newAddress(t)

	for range 3 {
		n.pay(t, to, nativeAsset, 5_000_000)
		n.pay(t, to, n.asset, 5_000_000)
		must(t, n.SolanaNode.Mine(2))
	}

	must(t, n.SolanaNode.Mine(8))

	head, err := n.driver(t).Head(t.Context())
	must(t, err)
	must(t, n.Prune(head.Final.Height))
	must(t, n.PruneRecords(head.Final.Height))

	f := newFollowed(t, n.byAddress(t), to, other)
	f.steps(2)

	first, second := n.pay(t, to, nativeAsset, 7_000_000), n.pay(t, to, n.asset, 7_000)
	third := n.pay(t, other, nativeAsset, 7_000_000)
	must(t, n.SolanaNode.Mine(2))
	f.steps(70)
	f.wants(to, first, second)
	f.wants(other, third)
}

// TestVersion1PaymentsByAddressAndByBlock pays in transactions of version 1 made by @solana/kit.
func TestVersion1PaymentsByAddressAndByBlock(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	to, other := newAddress(t), newAddress(t)

	follows := []*followed{newFollowed(t, n.driver(t), to, other), newFollowed(t, n.byAddress(t), to, other)}
	for _, f := range follows {
		f.steps(2)
	}

	var paid struct{ Signature string }
	runWallet(t, map[string]any{
		"do":       "pay",
		"url":      n.URL,
		"secret":   n.authority.String(),
		"to":       to,
		"lamports": "7000000",
		"form":     "v1",
	}, &paid)

	second := n.pay(t, other, nativeAsset, 5_000_000)
	must(t, n.SolanaNode.Mine(3))

	for _, f := range follows {
		f.steps(10)
		f.wants(to, paid.Signature)
		f.wants(other, second)
	}
}

// TestBackendsOfDifferentHeights reads and sends through one URL with a backend that is two blocks behind.
func TestBackendsOfDifferentHeights(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	to := newAddress(t)
	url, err := n.Backends(0, 2)
	must(t, err)

	balanced := n.driver(t, func(c *solana.Config) { c.RPC = url })
	f := newFollowed(t, balanced.Histories(), to)
	f.steps(2)

	for i := range 6 {
		hash := n.pay(t, to, nativeAsset, 5_000_000+uint64(i))
		must(t, n.SolanaNode.Mine(3))
		f.steps(6)
		f.wants(to, hash)

		_, err := balanced.Build(t.Context(), chain.Order{
			From:    from,
			MaxFee:  chain.Units(1_000_000),
			Outputs: []chain.Output{{To: to, AssetID: s.native().ID, Amount: chain.Units(1_000_000)}},
		})
		if err != nil {
			t.Errorf("payout %d: %v", i, err)
		}
	}
}

// TestHistoryUpToTheTipBehindUnevenBackends reads a wallet's history up to the tip through one URL, as a payout is
// checked. It ends at the tip, or the newest block is missing and it fails.
func TestHistoryUpToTheTipBehindUnevenBackends(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	for _, lags := range [][]int{{0, 2}, {2, 2, 0}, {0, 1, 2, 3}} {
		url, err := n.Backends(lags...)
		must(t, err)

		// One account is read by one call after another: the backends' turns come by.
		d := n.driver(t, func(c *solana.Config) {
			c.RPC, c.Network = url, solana.Local(n.GenesisHash)
		}).Histories()

		for i := range 6 {
			sent := s.sign(s.paying(from, 1_000_000+uint64(i), nil))
			must(t, s.d.Broadcast(t.Context(), sent))
			must(t, n.SolanaNode.Mine(1))

			status, err := s.d.Status(t.Context(), sent)
			must(t, err)

			head, err := d.Head(t.Context())
			must(t, err)

			tip := head.Tip.Height

			blocks, err := d.TransfersTo(t.Context(), []chain.Address{from.Address}, tip-min(tip-1, 50), tip)
			shown := len(blocks) > 0 && blocks[len(blocks)-1].Hash == status.Block.Hash

			if err != nil || shown != (status.Block.Height <= tip) {
				t.Errorf(
					"lags %v: up to block %d that of block %d is shown %t, %v",
					lags, tip, status.Block.Height, shown, err,
				)
			}
		}
	}

	url, err := n.Backends(3)
	must(t, err)

	behind := n.driver(t, func(c *solana.Config) { c.RPC = url }).Histories()

	head, err := n.driver(t).Head(t.Context())
	must(t, err)

	if blocks, err := behind.TransfersTo(
		t.Context(), []chain.Address{from.Address}, 1, head.Tip.Height,
	); !errors.Is(err, fault.NotFound) {
		t.Errorf("behind the tip: %d blocks, %v", len(blocks), err)
	}
}

// TestBackendWithoutAListedTransaction reads balances of an earlier block through a URL some of whose backends do not
// have what another one has listed. That is no answer about any transaction.
func TestBackendWithoutAListedTransaction(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	bad := newFaultyNode(t, n)
	d := n.driver(t, func(c *solana.Config) { c.RPC = bad.URL })
	to := newAddress(t)

	n.pay(t, to, nativeAsset, 5_000_000)
	must(t, n.SolanaNode.Mine(1))

	head, err := d.Head(t.Context())
	must(t, err)
	n.pay(t, to, nativeAsset, 7_000_000)
	must(t, n.SolanaNode.Mine(1))

	for _, c := range []struct {
		name  string
		lacks int // how many answers
		want  error
	}{
		{"another backend has it", 2, nil},
		{"none has it", 1_000, fault.Unavailable},
	} {
		lacking := c.lacks

		bad.set(func(method string, _ []any, result any) (any, int) {
			if method == "getTransaction" && lacking > 0 {
				lacking--
				return nil, 0
			}

			return result, 0
		})

		held, err := d.Balances(
			t.Context(),
			head.Tip,
			[]chain.Holding{{Address: to, AssetID: d.Network().Assets[0].ID}},
		)
		if !errors.Is(err, c.want) || c.want == nil && held[0] != chain.Units(5_000_000) {
			t.Errorf("%s: %v, %v", c.name, held, err)
		}
	}
}

// TestDustDelaysNobody lets 2,000 transfers of one lamport arrive at one address before the payment of
// another payer. A call counts for ten milliseconds of the follower's time.
func TestDustDelaysNobody(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	to, other := newAddress(t), newAddress(t)

	n.pay(t, to, nativeAsset, 5_000_000)
	must(t, n.SolanaNode.Mine(1))

	f := newFollowed(t, n.byAddress(t), to, other)
	f.steps(6)

	dust := n.dust(t, to, 1_200) // more than one page
	hash := n.pay(t, other, nativeAsset, 5_000_000)
	must(t, n.SolanaNode.Mine(2))

	_, err := n.Calls()
	must(t, err)

	spent := time.Duration(0)

	for f.times[hash+"/"+string(other)].IsZero() {
		f.now = f.now.Add(10 * time.Millisecond)
		spent += 10 * time.Millisecond

		if _, err := f.follower.Step(t.Context()); err != nil {
			t.Logf("step: %v", err)
		}

		calls, err := n.Calls()
		must(t, err)

		for _, count := range calls {
			f.now = f.now.Add(time.Duration(count) * 10 * time.Millisecond)
			spent += time.Duration(count) * 10 * time.Millisecond
		}

		if spent > 5*time.Minute {
			t.Fatal("the other payment is never stored")
		}
	}

	t.Logf("the other payment was stored after %v", spent)

	// Half of it and more is the time until the next round.
	if spent > 4*time.Second {
		t.Errorf("the other payment was stored after %v", spent)
	}

	f.steps(300)
	f.wants(to, dust...)
}

// dust sends transfers of one lamport, two in a block.
func (n *node) dust(t *testing.T, to chain.Address, count int) (hashes []string) {
	t.Helper()

	key := solanago.MustPublicKeyFromBase58(string(to))
	transfer := system.NewTransferInstruction(1, n.authority.PublicKey(), key).Build()

	for i := range count {
		hash, err := n.send([]solanago.Instruction{transfer}, n.authority)
		must(t, err)

		hashes = append(hashes, hash)

		if i%2 == 1 {
			must(t, n.SolanaNode.Mine(1))
		}
	}

	return hashes
}

// TestCallsAtRest counts the calls of a minute in which nothing arrives, at the main network's pace.
func TestCallsAtRest(t *testing.T) {
	n := startFinalNode(t, mainFinality, solanago.TokenProgramID)
	must(t, n.SolanaNode.Mine(40))

	var addresses []chain.Address
	for range 1_000 {
		addresses = append(addresses, newAddress(t))
	}

	// Every tenth has a balance.
	for i := 0; i < len(addresses); i += 10 {
		n.pay(t, addresses[i], nativeAsset, 5_000_000)
	}

	must(t, n.SolanaNode.Mine(2))

	rest := func(f *followed) (total, blocks int, byMethod string) {
		for range 60 { // until everything was read and has settled
			must(t, n.SolanaNode.Mine(30))
			f.steps(1)
		}

		f.steps(20)

		_, err := n.Calls()
		must(t, err)

		for i := range 60 {
			made := 4 + i%2 // the main network's pace: 210 ms each
			must(t, n.SolanaNode.Mine(made))

			blocks += made

			f.steps(1)
		}

		calls, err := n.Calls()
		must(t, err)
		delete(calls, "svm_mine")

		for _, count := range calls {
			total += count
		}

		return total, blocks, fmt.Sprint(calls)
	}

	total, _, byMethod := rest(newFollowed(t, n.byAddress(t), addresses...))
	t.Logf("by address: %d calls in 60 s: %s", total, byMethod)

	if total > 120 {
		t.Errorf("by address: %d calls in 60 s, more than 2 a second: %s", total, byMethod)
	}

	total, blocks, byMethod := rest(newFollowed(t, n.driver(t), addresses...))
	t.Logf("by block: %d calls for %d blocks: %s", total, blocks, byMethod)

	// One call for each block, and in each round of five seconds two for the tip, two for the final block, one for the
	// cursor's block and a list of slots.
	if total > blocks+6*60/5+2 {
		t.Errorf("by block: %d calls for %d blocks: %s", total, blocks, byMethod)
	}

	must(t, n.Commitments("finalized"))

	total, blocks, byMethod = rest(newFollowed(t, n.driver(t), addresses...))
	t.Logf("by block, where what is read is final: %d calls for %d blocks: %s", total, blocks, byMethod)

	if total > blocks+4*60/5+2 {
		t.Errorf("by block, where what is read is final: %d calls for %d blocks: %s", total, blocks, byMethod)
	}
}

// TestUnreadableTransactionStopsItselfAlone pays two addresses, and the node lacks what one payment did.
func TestUnreadableTransactionStopsItselfAlone(t *testing.T) {
	for _, damage := range []string{"null", "tokens"} {
		for _, way := range []string{"by address", "by block"} {
			t.Run(damage+" "+way, func(t *testing.T) {
				n := startNode(t, solanago.TokenProgramID)
				to, other := newAddress(t), newAddress(t)

				driver := chain.Driver(n.driver(t))
				if way == "by address" {
					driver = n.byAddress(t)
				}

				f := newFollowed(t, driver, to, other)
				f.steps(2)

				damaged := n.pay(t, to, n.asset, 5_000)
				must(t, n.DamageMeta(damaged, damage))

				second := n.pay(t, other, n.asset, 7_000)
				must(t, n.SolanaNode.Mine(2))

				third := n.pay(t, to, nativeAsset, 5_000_000)
				must(t, n.SolanaNode.Mine(2))
				f.steps(12)
				f.wants(other, second)
				f.wants(to, third)

				if _, ok := f.seen[damaged+"/"+string(to)]; ok {
					t.Error("the payment that cannot be read is stored")
				}

				unread := f.follower.Health().Unread
				if len(unread) != 1 || unread[0].TxHash != damaged {
					t.Errorf("the health report names %+v, want %s", unread, damaged)
				}

				must(t, n.DamageMeta(damaged, ""))
				must(t, n.SolanaNode.Mine(2))
				f.steps(130)
				f.wants(to, damaged)

				if unread := f.follower.Health().Unread; len(unread) > 0 || len(f.ranges) > 0 {
					t.Errorf("still unread: %+v, %+v", unread, f.ranges)
				}
			})
		}
	}
}

// TestOpenedAccountNeedsItsBalanceBefore pays an account that the node shows without the balance that it had.
func TestOpenedAccountNeedsItsBalanceBefore(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newFaultyNode(t, n)
	to, dusted := newAddress(t), newAddress(t)

	n.pay(t, to, n.asset, 5_000)

	account := n.accountOf(solanago.MustPublicKeyFromBase58(string(dusted)))
	n.pay(t, chain.Address(account.String()), nativeAsset, 890_880)
	must(t, n.SolanaNode.Mine(1))

	hash, second := n.pay(t, to, n.asset, 7_000), n.pay(t, dusted, n.asset, 9_000)
	must(t, n.SolanaNode.Mine(1))

	// Coin was there, tokens were not.
	found, err := n.driver(t).Transaction(t.Context(), second)
	if err != nil || len(found.Transfers) == 0 || found.Transfers[0].Amount != chain.Units(9_000) {
		t.Errorf("an account opened at an address with coin: %+v, %v", found.Transfers, err)
	}

	s.set(func(_ string, _ []any, result any) (any, int) {
		for _, meta := range metasOf(result) {
			meta["preTokenBalances"] = []any{}
		}

		return result, 0
	})

	bad := n.driver(t, func(c *solana.Config) { c.RPC = s.URL })

	found, err = bad.Transaction(t.Context(), hash)
	if err == nil {
		t.Errorf("without the balance before: %+v", found.Transfers)
	}
}

// TestWrappedCoinIsNoCoin sends wrapped SOL to an address: it counts when it is unwrapped to it.
func TestWrappedCoinIsNoCoin(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	d, key := n.driver(t), newKey(t)
	owner := key.PublicKey()
	wrapped, _, err := solanago.FindAssociatedTokenAddress(owner, solanago.WrappedSol)
	must(t, err)

	payer := n.authority.PublicKey()
	paid, err := n.send([]solanago.Instruction{
		ata.NewCreateIdempotentInstructionWithTokenProgram(
			payer, owner, solanago.WrappedSol, solanago.TokenProgramID,
		).Build(),
		system.NewTransferInstruction(5_000_000, payer, wrapped).Build(),
		syncNative(wrapped),
	}, n.authority)
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	found, err := d.Transaction(t.Context(), paid)
	must(t, err)

	if found.Failed || len(found.Transfers) > 0 {
		t.Errorf("wrapped SOL is %+v", found.Transfers)
	}

	closed, err := n.send([]solanago.Instruction{
		closeAccount(solanago.TokenProgramID, wrapped, owner),
	}, n.authority, key)
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	found, err = d.Transaction(t.Context(), closed)
	must(t, err)

	// With the rent of the account, which whoever closes it gets.
	if len(found.Transfers) != 1 || found.Transfers[0].To != chain.Address(owner.String()) ||
		found.Transfers[0].Amount != chain.Units(5_000_000+2_039_280) {
		t.Errorf("unwrapped SOL is %+v", found.Transfers)
	}
}

// TestLimitsOfOneCall reads through a node that serves few calls of one method a second.
func TestLimitsOfOneCall(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)

	synctest.Test(t, func(t *testing.T) { testLimits(t, n) })
}

func testLimits(t *testing.T, n *node) {
	t.Helper()

	to := newAddress(t)
	f := newFollowed(t, n.byAddress(t, inBubble), to)
	f.steps(2)

	hash := n.pay(t, to, nativeAsset, 5_000_000)
	must(t, n.SolanaNode.Mine(2))
	must(t, n.Limit("getTransaction", 0))
	f.steps(4)

	if len(f.seen) > 0 || f.follower.Health().LastError == "" {
		t.Errorf("seen %v, health %+v", f.seen, f.follower.Health())
	}

	must(t, n.Limit("getTransaction", 100))

	// A fresh driver does not know that the node wanted to be left alone for a second.
	f.restart(n.byAddress(t, inBubble))
	f.steps(4)
	f.wants(to, hash)
}
