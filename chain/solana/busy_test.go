//go:build unix

package solana_test

// Addresses that are paid many times, in amounts that no balance shows. The follower's time is the test's: a slot every
// 200 ms, and a call to the node takes 12.5 ms, as eight at a time do that take a tenth of a second each.

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	solanago "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/seed-8ee7f392/payments/chain"
)

const (
	slotTime = 200 * time.Millisecond
	callTime = 12500 * time.Microsecond
)

// paced is a follower on a node that makes a block in every slot.
type paced struct {
	*followed
	node  *node
	slot  time.Time // when the next block is made
	calls map[string]int
}

func newPaced(t *testing.T, n *node, d chain.Driver, addresses ...chain.Address) *paced {
	t.Helper()

	p := &paced{followed: newFollowed(t, d, addresses...), node: n, calls: map[string]int{}}
	p.slot = p.now

	p.wait(10 * time.Second)

	return p
}

// wait lets time pass, in which blocks are made and the follower works.
func (p *paced) wait(span time.Duration) {
	p.t.Helper()

	for end := p.now.Add(span); p.now.Before(end); {
		for !p.slot.After(p.now) {
			must(p.t, p.node.SolanaNode.Mine(1))
			p.slot = p.slot.Add(slotTime)
		}

		if _, err := p.follower.Step(p.t.Context()); err != nil {
			p.t.Logf("step: %v", err)
		}

		calls, err := p.node.Calls()
		must(p.t, err)

		spent := slotTime

		for method, count := range calls {
			if method[:4] == "svm_" || method == "sendTransaction" {
				continue
			}

			p.calls[method] += count
			spent += time.Duration(count) * callTime
		}

		p.now = p.now.Add(spent)
	}
}

// TestSoakBusyAddressIsReadToItsEnd pays one address again and again: more often than are read at once, and under make
// soak for minutes. Each payment is stored within ten seconds.
func TestSoakBusyAddressIsReadToItsEnd(t *testing.T) {
	for _, c := range []struct {
		name        string
		short, soak int // payments
		every       time.Duration
	}{
		{"one in each slot", 40, 60, slotTime},
		{"one a second", 50, 300, time.Second},
		{"six a second", 120, 400, time.Second / 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			to := newAddress(t)
			p := newPaced(t, n, n.byAddress(t), to, newAddress(t))

			payments := c.short
			if os.Getenv("SOAKTIME") != "" {
				payments = c.soak
			}

			paid := map[string]time.Time{}
			next := p.now

			for len(paid) < payments {
				for ; !next.After(p.now) && len(paid) < payments; next = next.Add(c.every) {
					paid[n.pay(t, to, nativeAsset, 5_000_000)] = next
				}

				p.wait(slotTime)
			}

			p.wait(20 * time.Second)
			p.reportDelays(to, paid, 10*time.Second)
		})
	}
}

// reportDelays fails the test unless 99 of 100 payments were stored soon, and all of them.
func (p *paced) reportDelays(to chain.Address, paid map[string]time.Time, limit time.Duration) {
	p.t.Helper()

	var delays []time.Duration

	for hash, at := range paid {
		stored, ok := p.times[hash+"/"+string(to)]
		if !ok {
			stored = at.Add(time.Hour)
		}

		delays = append(delays, stored.Sub(at))
	}

	slices.Sort(delays)

	n := len(delays)
	missing := n - len(
		slices.DeleteFunc(slices.Clone(delays), func(d time.Duration) bool { return d >= time.Hour }),
	)
	p99 := delays[n*99/100]
	p.t.Logf("%d payments, %d not stored, p50 %v, p99 %v, last %v", n, missing, delays[n/2], p99, delays[n-1])

	if missing > 0 || p99 > limit {
		p.t.Errorf(
			"%d payments are not stored; of the others 99 %% are within %v, not %v",
			missing,
			p99,
			limit,
		)
	}
}

// TestSoakEqualPaymentAfterEachSweep pays the same amount again in the very slot of the sweep, so that no balance shows
// it. Under make soak it does so five times as often.
func TestSoakEqualPaymentAfterEachSweep(t *testing.T) {
	for _, name := range []string{"coin", "token"} {
		t.Run(name, func(t *testing.T) {
			const amount = 5_000_000

			rounds, between := 8, 8 // between pauses
			if os.Getenv("SOAKTIME") != "" {
				rounds, between = 40, 10
			}

			n := startNode(t, solanago.TokenProgramID)
			from := newKey(t)
			to, master := chain.Address(from.PublicKey().String()), newKey(t).PublicKey()
			p := newPaced(t, n, n.byAddress(t), to, chain.Address(master.String()))

			asset := nativeAsset
			sweep := []solanago.Instruction{
				system.NewTransferInstruction(amount, from.PublicKey(), master).Build(),
			}

			if name == "token" {
				asset = n.asset
				sweep = []solanago.Instruction{
					n.createAccount(n.authority.PublicKey(), master),
					solanago.NewInstruction(n.program, solanago.AccountMetaSlice{
						solanago.Meta(n.accountOf(from.PublicKey())).WRITE(),
						solanago.Meta(n.mint),
						solanago.Meta(n.accountOf(master)).WRITE(),
						solanago.Meta(from.PublicKey()).SIGNER(),
					}, append(binary.LittleEndian.AppendUint64([]byte{12}, amount), 6)), // TransferChecked
				}
			}

			paid := map[string]time.Time{}

			for i := range rounds {
				if i > 0 {
					_, err := n.send(sweep, n.authority, from)
					must(t, err)
				}

				hash := n.pay(t, to, asset, amount)
				paid[hash] = p.now

				// Some sweeps are long after the last payment, some at once.
				p.wait([]time.Duration{4 * time.Second, 10 * time.Second}[i%2])

				if i%between == between/2 {
					p.wait(3 * time.Minute)
				}
			}

			p.wait(15 * time.Second)
			p.reportDelays(to, paid, 15*time.Second)
		})
	}
}

// TestNewAddressNeedsNoOldBlocks has a node that was just restored from a snapshot, with few blocks. An address that is
// made now and a process that starts now are read all the same.
func TestNewAddressNeedsNoOldBlocks(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	first, second := newAddress(t), newAddress(t)

	must(t, n.SolanaNode.Mine(60))

	p := newPaced(t, n, n.byAddress(t), first)
	paid := map[string]time.Time{n.pay(t, first, nativeAsset, 5_000_000): p.now}
	p.wait(8 * time.Second)

	// The node has what follows the block that was read last, and no block before it.
	must(t, n.Prune(p.cursor.Final.Height))
	must(t, n.PruneRecords(p.cursor.Final.Height))

	p.restart(n.byAddress(t))
	p.addresses = append(p.addresses, second)

	again := map[string]time.Time{n.pay(t, first, nativeAsset, 5_000_000): p.now}
	to := map[string]time.Time{n.pay(t, second, n.asset, 5_000_000): p.now}

	p.wait(15 * time.Second)

	if p.cursor.Stopped != "" {
		t.Fatalf("the network was stopped: %s", p.cursor.Stopped)
	}

	p.reportDelays(first, paid, 10*time.Second)
	p.reportDelays(first, again, 10*time.Second)
	p.reportDelays(second, to, 10*time.Second)
}
