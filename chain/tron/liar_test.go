//go:build unix

package tron_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// deadNode is the URL of a node that does not answer.
const deadNode = "http://127.0.0.1:1"

// forgeReceipts has a node show the receipts of transactions changed, by block and by id.
func (p *proxy) forgeReceipts(change func(hash string, receipt map[string]any)) {
	forge := func(receipt map[string]any) {
		if hash, ok := receipt["id"].(string); ok {
			change(hash, receipt)
		}
	}

	p.intercept(func(path string, ask func() answer) answer {
		a := ask()

		switch path {
		case "/wallet/gettransactioninfobyid":
			return edit(a, forge)
		case "/wallet/gettransactioninfobyblocknum":
			return editList(a, func(receipts []any) []any {
				for _, receipt := range receipts {
					forge(receipt.(map[string]any))
				}

				return receipts
			})
		}

		return a
	})
}

// logsOf returns the logs of a receipt.
func logsOf(receipt map[string]any) []any {
	logs, _ := receipt["log"].([]any)
	return logs
}

// copied returns a copy of a log.
func copied(log any) map[string]any {
	text, _ := json.Marshal(log)

	var out map[string]any

	_ = json.Unmarshal(text, &out)

	return out
}

// topicOf is an address as the topic of a log.
func topicOf(a chain.Address) string { return strings.Repeat("0", 24) + testenv.TronHex(string(a))[2:] }

// word is an amount as the data of a log.
func word(amount uint64) string {
	w := chain.Units(amount).Bytes32()
	return hex.EncodeToString(w[:])
}

// paidBlock is a block with a payment of tokens to an address, and one to a bystander.
type paidBlock struct {
	*harness
	to, bystander, thief chain.Address
	paid                 string // hash
	at                   chain.Block
}

const (
	paidAmount = 1_000_000
	moreAmount = 500_000_000
)

func newPaidBlock(t *testing.T) *paidBlock {
	t.Helper()

	h := newHarness(t, testenv.TronOptions{SolidLag: 6})
	p := &paidBlock{harness: h, to: h.stranger(), bystander: h.stranger(), thief: h.stranger()}

	h.mine(2)

	var err error

	p.paid, err = h.Pay(t.Context(), p.to, h.usdt, chain.Units(paidAmount))
	h.must(err)
	_, err = h.Pay(t.Context(), p.bystander, h.usdt, chain.Units(paidAmount))
	h.must(err)
	h.mine(1)
	p.at = h.latestBlock()

	return p
}

// forgeries are what a liar changes in the receipt of the payment.
func (p *paidBlock) forgeries() map[string]func(hash string, receipt map[string]any) {
	onPayment := func(change func(receipt map[string]any)) func(string, map[string]any) {
		return func(hash string, receipt map[string]any) {
			if hash == p.paid && len(logsOf(receipt)) > 0 {
				change(receipt)
			}
		}
	}

	return map[string]func(hash string, receipt map[string]any){
		"amount": onPayment(func(receipt map[string]any) {
			logsOf(receipt)[0].(map[string]any)["data"] = word(paidAmount + moreAmount)
		}),
		"sender": onPayment(func(receipt map[string]any) {
			logsOf(receipt)[0].(map[string]any)["topics"].([]any)[1] = topicOf(p.thief)
		}),
		"invented log": onPayment(func(receipt map[string]any) {
			receipt["log"] = append(logsOf(receipt), copied(logsOf(receipt)[0]))
		}),
		"left-out log": onPayment(func(receipt map[string]any) { delete(receipt, "log") }),
	}
}

// moved returns what a block's transfers of a transaction bring an address.
func moved(block chain.Block, hash string, to chain.Address) (sum chain.Amount) {
	for _, m := range block.Transfers {
		if m.TxHash == hash && m.To == to {
			sum = sum.Add(m.Amount)
		}
	}

	return sum
}

// senderOf returns the sender of the first transfer to an address.
func senderOf(block chain.Block, to chain.Address) chain.Address {
	for _, m := range block.Transfers {
		if m.To == to {
			return m.From
		}
	}

	return ""
}

func isUnread(block chain.Block, hash string) bool {
	return slices.ContainsFunc(block.Unread, func(u chain.Unread) bool { return u.TxHash == hash })
}

// No hash binds what is in a receipt. What one node of several forges in one, or leaves out, is in no block that is
// read, nor in one that is read again, until two nodes say the same of it; the others in the block are.
func TestOneNodeForgesNoReceipt(t *testing.T) {
	p := newPaidBlock(t)
	payer := senderOf(p.at, p.to)

	for name, forge := range p.forgeries() {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, p.TronNode)
			liar.forgeReceipts(forge)

			for _, c := range []struct {
				nodes []string
				code  string // of the error when the block is read again; "" for a block
				waits bool   // until two nodes say the same of the payment
			}{
				{nodes: []string{p.URL}},
				{nodes: []string{p.URL, p.URL}},
				{nodes: []string{liar.URL, p.URL}, waits: true},
				{nodes: []string{p.URL, liar.URL}, waits: true},
				{nodes: []string{liar.URL, p.URL, p.URL}},
				{nodes: []string{p.URL, liar.URL, p.URL}},
				{nodes: []string{deadNode, liar.URL, p.URL}, waits: true},
				{nodes: []string{liar.URL, deadNode}, code: "nodes_missing"},
			} {
				d := p.driver(t, viaNodes(c.nodes...))

				check := func(block chain.Block) {
					t.Helper()

					want, sender := chain.Units(paidAmount), payer
					if c.waits {
						want, sender = chain.Amount{}, ""
					}

					if got := moved(block, p.paid, p.to); got != want || senderOf(block, p.to) != sender {
						t.Errorf("%v: it moved %s of %s, want %s of %s",
							c.nodes, got, senderOf(block, p.to), want, sender)
					}

					if senderOf(block, p.bystander) != payer {
						t.Errorf("%v: another payment in the block is lost: %+v", c.nodes, block.Transfers)
					}

					if !slices.ContainsFunc(block.Spent, func(s chain.Spend) bool {
						return s.By == p.paid && s.Sender == payer && !s.Failed
					}) {
						t.Errorf(
							"%v: the block's id proves that the payment is in it: %+v",
							c.nodes,
							block.Spent,
						)
					}

					if isUnread(block, p.paid) != c.waits {
						t.Errorf("%v: unread is %+v", c.nodes, block.Unread)
					}
				}

				for range 3 { // whichever node is preferred meanwhile
					if c.code == "" {
						blocks, err := d.Blocks(t.Context(), p.at.Height, p.at.Height)
						p.must(err)
						check(blocks[0])
					}

					for _, hashes := range [][]string{{p.paid, moveOf(p.at, p.bystander)}} {
						block, err := agreedOf(t, d).AgreedBlock(t.Context(), p.at.Ref, hashes)
						if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
							t.Fatalf("%v: %+v, %v; want code %q", c.nodes, block, err, c.code)
						}

						if err == nil {
							check(block)
						}

						if err == nil && (block.Unverified != "") != c.waits {
							t.Errorf("%v: unverified %q", c.nodes, block.Unverified)
						}
					}
				}
			}
		})
	}
}

// moveOf returns the hash of the first transfer to an address.
func moveOf(block chain.Block, to chain.Address) string {
	for _, m := range block.Transfers {
		if m.To == to {
			return m.TxHash
		}
	}

	return ""
}

// agreedOf returns the ability of a driver to say what nodes agree on.
func agreedOf(t *testing.T, d any) chain.Agreed {
	t.Helper()

	reader, ok := d.(chain.Agreed)
	if !ok {
		t.Fatal("blocks cannot be read again: what one node shows in them confirms")
	}

	return reader
}

// A block that one node alone has reached is read once another one has it too, so that a liar gains nothing by being
// first. A node that stays behind holds up nothing.
func TestBlockWaitsForASecondNode(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(3)

	behind := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(h.URL, behind.URL))

	tip := func() uint64 {
		t.Helper()

		head, err := d.Head(t.Context())
		h.must(err)

		ref, err := d.RefAt(t.Context(), head.Tip.Height)
		h.must(err)

		if ref != head.Tip || head.Final.Height > head.Tip.Height {
			t.Errorf("the head is %+v, its block %+v", head, ref)
		}

		return head.Tip.Height
	}

	behind.intercept(frozenTip(t, h))

	for blocks, want := range []uint64{3, 3, 3, 3, 3, 8, 9} {
		if got := tip(); got != want {
			t.Errorf("a node has %d blocks more than another: the tip is %d, want %d", blocks, got, want)
		}

		h.mine(1)
	}

	behind.passThrough()

	if got := tip(); got != 10 {
		t.Errorf("both nodes have 10 blocks, the tip is %d", got)
	}
}

// Each block has the first node asked for its newest and its newest solidified block, for transactions, and for
// receipts where there are any. A second node is asked for its newest block, and where there are any for transactions
// and receipts. While no block is made, the first node's newest is all that is asked for.
func TestWhatABlockHasNodesAsked(t *testing.T) {
	const blocks, looks = 10, 4

	h := newHarness(t, testenv.TronOptions{SolidLag: 4})
	first, second := newProxy(t, h.TronNode), newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(first.URL, second.URL))

	h.must(d.Check(t.Context()))

	for _, c := range []struct {
		pays          int   // transactions in a block
		first, second int64 // requests
	}{{0, looks + 2, 1}, {1, looks + 3, 3}, {5, looks + 3, 3}} {
		before := []int64{first.requests.Load(), second.requests.Load()}

		for range blocks {
			for range c.pays {
				_, err := h.Pay(t.Context(), h.stranger(), h.usdt, chain.Units(1))
				h.must(err)
			}

			h.mine(1)

			var head chain.Head

			for range looks {
				var err error

				head, err = d.Head(t.Context())
				h.must(err)
			}

			_, err := d.Blocks(t.Context(), head.Tip.Height, head.Tip.Height)
			h.must(err)
		}

		asked := []int64{first.requests.Load() - before[0], second.requests.Load() - before[1]}
		if want := []int64{blocks * c.first, blocks * c.second}; !slices.Equal(asked, want) {
			t.Errorf("of %d blocks with %d transactions each the nodes were asked %v times, want %v",
				blocks, c.pays, asked, want)
		}
	}
}

// Once a liar says what the other node does, what it forged is read as it is: nothing remembers the lie.
func TestForgedBlockIsReadOnceTheLieIsOver(t *testing.T) {
	p := newPaidBlock(t)

	for name, forge := range p.forgeries() {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, p.TronNode)
			liar.forgeReceipts(forge)

			d := p.driver(t, viaNodes(liar.URL, p.URL))

			blocks, err := d.Blocks(t.Context(), p.at.Height, p.at.Height)
			p.must(err)

			if !isUnread(blocks[0], p.paid) {
				t.Fatalf("the payment is read: %+v", blocks[0])
			}

			liar.passThrough()

			blocks, err = d.Blocks(t.Context(), p.at.Height, p.at.Height)
			p.must(err)

			if got := moved(blocks[0], p.paid, p.to); got != chain.Units(paidAmount) ||
				len(blocks[0].Unread) > 0 {
				t.Errorf("%s arrived, unread %+v", got, blocks[0].Unread)
			}
		})
	}
}

// What one node shows in a block rolls no other node's balance: before a block is solidified its forged receipts
// make a balance that no other node says, and never one that is believed.
func TestForgedReceiptChangesNoBalance(t *testing.T) {
	p := newPaidBlock(t)
	holdings := []chain.Holding{
		{Address: p.to, AssetID: p.usdt.ID},
		{Address: p.bystander, AssetID: p.usdt.ID},
	}

	forgeries := maps.Clone(p.forgeries())
	delete(forgeries, "sender") // takes of a stranger

	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, p.TronNode)
			liar.forgeReceipts(forge)

			for _, c := range []struct {
				nodes    []string
				disputed bool
			}{
				{nodes: []string{liar.URL, p.URL}, disputed: true},
				{nodes: []string{p.URL, liar.URL}, disputed: true},
				{nodes: []string{liar.URL, p.URL, p.URL}},
			} {
				d := p.driver(t, viaNodes(c.nodes...))

				// What the scan has read of the liar is in no other's answer.
				_, err := d.Blocks(t.Context(), p.at.Height, p.at.Height)
				p.must(err)

				amounts, err := d.Balances(t.Context(), p.at.Ref, holdings)
				unreadable, disputed := errors.AsType[*chain.UnreadableError](err)

				if disputed != c.disputed || err != nil && !disputed ||
					disputed && (len(unreadable.Holdings) != 1 || unreadable.Holdings[0].Index != 0) {
					t.Fatalf("%v: %v, %v; want that the first is disputed: %t",
						c.nodes, amounts, err, c.disputed)
				}

				want := []chain.Amount{chain.Units(paidAmount), chain.Units(paidAmount)}
				if disputed {
					want[0] = chain.Amount{}
				}

				if !slices.Equal(amounts, want) {
					t.Errorf("%v: the balances are %v, want %v", c.nodes, amounts, want)
				}
			}
		})
	}
}

// What a transaction cost and did is two nodes' word, where several are configured.
func TestOneNodeForgesNoStatus(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 2})
	from := h.wallet(1000)
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))
	signed := h.sign(h.order(from, h.usdt, h.stranger(), 1_000_000))
	want := h.include(signed)
	h.mine(3)

	for name, forge := range map[string]func(receipt map[string]any){
		"fee": func(receipt map[string]any) {
			fee, _ := receipt["fee"].(float64)
			receipt["fee"] = int64(fee) + 1_000_000
		},
		"amount": func(receipt map[string]any) {
			logsOf(receipt)[0].(map[string]any)["data"] = word(2_000_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, h.TronNode)
			liar.forgeReceipts(func(hash string, receipt map[string]any) {
				if hash == signed.TxHash && len(logsOf(receipt)) > 0 {
					forge(receipt)
				}
			})

			for _, c := range []struct {
				nodes []string
				code  string
			}{
				{nodes: []string{h.URL}},
				{nodes: []string{h.URL, h.URL}},
				{nodes: []string{liar.URL, h.URL}, code: "nodes_disagree"},
				{nodes: []string{h.URL, liar.URL}, code: "nodes_disagree"},
				{nodes: []string{liar.URL, h.URL, h.URL}},
				{nodes: []string{deadNode, liar.URL, h.URL, h.URL}},
				{nodes: []string{liar.URL, deadNode}, code: "nodes_missing"},
			} {
				d := h.driver(t, viaNodes(c.nodes...))

				status, err := d.Status(t.Context(), signed)
				if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
					t.Fatalf("%v: %+v, %v; want code %q", c.nodes, status, err, c.code)
				}

				if err == nil && (status.Fee != want.Fee || status.State != chain.TxIncluded ||
					!status.Final || !slices.Equal(status.Transfers, want.Transfers)) {
					t.Errorf("%v: %+v, want %+v", c.nodes, status, want)
				}
			}
		})
	}
}

// A node that is behind shows no transaction yet: it is included once a second node shows it.
func TestStatusWaitsForASecondNode(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from := h.wallet(100)
	signed := h.sign(h.order(from, h.native, h.stranger(), 1_000_000))
	h.include(signed)

	behind := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(h.URL, behind.URL))

	behind.intercept(func(path string, ask func() answer) answer {
		if strings.Contains(path, "gettransaction") {
			return ok("{}")
		}

		return ask()
	})

	_, err := d.Status(t.Context(), signed)
	wantFault(t, err, fault.Unavailable, "node_behind")

	// The one that does not show it is not believed either, whichever is asked first.
	_, err = h.driver(t, viaNodes(behind.URL, h.URL)).Status(t.Context(), signed)
	wantFault(t, err, fault.Unavailable, "node_behind")

	behind.passThrough()

	status, err := d.Status(t.Context(), signed)
	if err != nil || status.State != chain.TxIncluded {
		t.Errorf("%+v, %v", status, err)
	}
}

// A newest block that one node alone has is no tip, at whatever height: the one before it is, which two nodes have. A
// third node decides at once. While no two nodes have the same block, there is none.
func TestOneNodeMakesNoNewestBlockUp(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	h.mine(8)

	newest := h.latestBlock().Ref
	before, err := h.d.RefAt(t.Context(), newest.Height-1)
	h.must(err)

	forged := newProxy(t, h.TronNode)
	forgeNewest(t, forged, "/wallet/getnowblock", later(time.Hour))

	elsewhere := newProxy(t, h.TronNode) // on a branch of its own
	elsewhere.intercept(func(path string, ask func() answer) answer {
		said := ask()
		if path != "/wallet/getnowblock" && path != "/wallet/getblockbynum" {
			return said
		}

		return edit(said, func(block map[string]any) {
			raw := block["block_header"].(map[string]any)["raw_data"].(map[string]any)
			if number, _ := raw["number"].(float64); number > 0 {
				later(time.Second)(raw)
				rehash(t, block, raw)
			}
		})
	})

	for name, c := range map[string]struct {
		nodes []string
		tip   chain.Ref
		code  string
	}{
		"honest nodes":             {nodes: []string{h.URL, h.URL}, tip: newest},
		"the liar first":           {nodes: []string{forged.URL, h.URL}, tip: before},
		"the liar second":          {nodes: []string{h.URL, forged.URL}, tip: before},
		"a third decides":          {nodes: []string{forged.URL, h.URL, h.URL}, tip: newest},
		"two branches":             {nodes: []string{elsewhere.URL, h.URL}, code: "nodes_disagree"},
		"two branches, the other":  {nodes: []string{h.URL, elsewhere.URL}, code: "nodes_disagree"},
		"two branches and a third": {nodes: []string{elsewhere.URL, h.URL, h.URL}, tip: newest},
		"nobody beside":            {nodes: []string{h.URL, deadNode}, tip: newest},
	} {
		t.Run(name, func(t *testing.T) {
			d := h.driver(t, viaNodes(c.nodes...))

			for range 3 {
				head, err := d.Head(t.Context())
				if fault.Code(err) != c.code || head.Tip.Hash != c.tip.Hash {
					t.Errorf("the tip is %+v, %v; want %+v and code %q", head.Tip, err, c.tip, c.code)
				}
			}
		})
	}

	// The tip that two nodes had stays while the newest block of one of them is another one.
	liar := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(liar.URL, h.URL))

	for range 2 {
		head, err := d.Head(t.Context())
		h.must(err)

		if head.Tip.Hash != newest.Hash {
			t.Errorf("the tip is %+v, want %+v", head.Tip, newest)
		}

		forgeNewest(t, liar, "/wallet/getnowblock", later(time.Hour))
	}
}

// A node that takes transactions and drops them holds none up: another one has them too.
func TestDroppedTransactionIsAtAnotherNode(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address

	drops := newProxy(t, h.TronNode)
	drops.intercept(func(path string, ask func() answer) answer {
		if path == "/wallet/broadcasthex" {
			return ok(`{"result":true}`)
		}

		return ask()
	})

	for _, nodes := range [][]string{{drops.URL, h.URL}, {h.URL, drops.URL}, {h.URL, deadNode}} {
		signed := h.sign(h.order(from, h.native, to, 1_000_000))
		h.must(h.driver(t, viaNodes(nodes...)).Broadcast(t.Context(), signed))
		h.mine(1)

		if status, err := h.d.Status(t.Context(), signed); err != nil || status.State != chain.TxIncluded {
			t.Errorf("sent to %v it is %+v, %v", nodes, status, err)
		}
	}
}
