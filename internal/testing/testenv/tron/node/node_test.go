package main

// The strictness that the tests of the driver rely on.

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

const (
	richKey  = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	rich     = "41f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
	stranger = "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"
)

func testNode(t *testing.T, c Config) *node {
	t.Helper()

	c.Balances = map[string]int64{rich: 100_000_000}

	n, err := newNode(c)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

func (n *node) pay(t *testing.T, p payment) *transaction {
	t.Helper()

	p.PrivateKey = richKey
	if p.To == "" {
		p.To = stranger
	}

	x, err := n.makePayment(&p)
	if err != nil {
		t.Fatal(err)
	}

	return x
}

func TestBroadcastIsChecked(t *testing.T) {
	n := testNode(t, Config{})
	for name, c := range map[string]struct {
		change func(x *transaction)
		code   string
	}{
		"another reference block": {func(x *transaction) { x.refHash = bytes.Repeat([]byte{1}, 8) }, "TAPOS_ERROR"},
		"no reference block":      {func(x *transaction) { x.refBytes = nil }, "TAPOS_ERROR"},
		"a block to come":         {func(x *transaction) { x.refBytes = []byte{0, 9} }, "TAPOS_ERROR"},
		"expired": {
			func(x *transaction) { x.expiration = n.head().timestamp },
			"TRANSACTION_EXPIRATION_ERROR",
		},
		"valid for two days": {
			func(x *transaction) { x.expiration = n.head().timestamp + 2*maxLifetime },
			"TRANSACTION_EXPIRATION_ERROR",
		},
		"no signature":          {func(x *transaction) { x.signature = nil }, "SIGERROR"},
		"a changed signature":   {func(x *transaction) { x.signature[7] ^= 1 }, "SIGERROR"},
		"somebody else's money": {func(x *transaction) { x.owner[3] ^= 1 }, "SIGERROR"},
		"another id":            {func(x *transaction) { x.id[0] ^= 1 }, "SIGERROR"},
		"too much":              {func(x *transaction) { x.amount = 100_000_001 }, "CONTRACT_VALIDATE_ERROR"},
		"nothing":               {func(x *transaction) { x.amount = 0 }, "CONTRACT_VALIDATE_ERROR"},
		"to itself":             {func(x *transaction) { x.to = x.owner }, "CONTRACT_VALIDATE_ERROR"},
		"a call of no contract": {func(x *transaction) { x.kind = typeTrigger }, "CONTRACT_VALIDATE_ERROR"},
	} {
		x := n.pay(t, payment{Amount: 1_000_000})
		c.change(x)

		if refused := n.broadcast(x); refused == nil || refused.code != c.code {
			t.Errorf("%s: %v, want %s", name, refused, c.code)
		}
	}

	x := n.pay(t, payment{Amount: 1_000_000})
	if refused := n.broadcast(x); refused != nil {
		t.Fatal(refused)
	}

	for range 2 {
		if refused := n.broadcast(x); refused == nil || refused.code != "DUP_TRANSACTION_ERROR" {
			t.Errorf("twice: %v", refused)
		}

		if err := n.mineBlocks(1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBytesAreParsedStrictly(t *testing.T) {
	n := testNode(t, Config{})

	good := n.pay(t, payment{Amount: 1_000_000, Memo: "memo"}).bytes
	if _, err := parseTransaction(good); err != nil {
		t.Fatal(err)
	}

	for name, b := range map[string][]byte{
		"cut":              good[:len(good)-1],
		"empty":            nil,
		"an unknown field": append(bytes.Clone(good), 0x78, 0x01),
		"two signatures":   append(bytes.Clone(good), good[len(good)-67:]...),
		"another type":     bytes.Replace(good, []byte("TransferContract"), []byte("TransferContracX"), 1),
		"no contract":      newMessage("Transaction", nil).encode(),
	} {
		if x, err := parseTransaction(b); err == nil {
			t.Errorf("%s: parsed as %+v", name, x)
		}
	}
	// The fields of raw_data in another order.
	raw, err := parse("Transaction", good)
	if err != nil {
		t.Fatal(err)
	}

	inner := raw.sub("raw_data").encode()
	tag := bytes.Index(inner, []byte{0x22, 0x08}) // ref_block_hash

	moved := append(append(bytes.Clone(inner[:tag]), inner[tag+10:]...), inner[tag:tag+10]...)
	if _, err := parse("raw", moved); err == nil || !strings.Contains(err.Error(), "canonical") {
		t.Errorf("fields in another order: %v", err)
	}
}

// Bandwidth, activation and memo are charged as java-tron does, to the sun.
func TestCharges(t *testing.T) {
	n := testNode(t, Config{})
	spent := func() int64 { return 100_000_000 - n.pending.balance(address(mustHex(t, rich)[1:])) }
	take := func(p payment) *transaction {
		t.Helper()

		x := n.pay(t, p)
		if refused := n.broadcast(x); refused != nil {
			t.Fatal(refused)
		}

		return x
	}
	take(payment{Amount: 1}) // activates

	if got := spent(); got != 1+1_100_000 {
		t.Errorf("the first transfer cost %d", got)
	}

	x := take(payment{Amount: 1})
	if size := x.bandwidth(); size < 260 || size > 270 || spent() != 2+1_100_000 {
		t.Errorf("the second, of %d bytes, cost %d", size, spent()-1_100_001)
	}

	take(payment{Amount: 1})

	before := spent()

	x = take(payment{Amount: 1}) // the allowance of 600 is used up
	if got, want := spent()-before, 1+1_000*x.bandwidth(); got != want {
		t.Errorf("the fourth cost %d, want %d", got, want)
	}

	before = spent()

	x = take(payment{Amount: 1, Memo: "memo"})
	if got, want := spent()-before, 1+1_000*x.bandwidth()+1_000_000; got != want {
		t.Errorf("one with a memo cost %d, want %d", got, want)
	}
}

func TestForksAndFinality(t *testing.T) {
	n := testNode(t, Config{SolidLag: 2})

	one, two := n.pay(t, payment{Amount: 1}), n.pay(t, payment{Amount: 2})
	for _, x := range []*transaction{one, two} {
		if refused := n.broadcast(x); refused != nil {
			t.Fatal(refused)
		}
	}

	if err := n.mineBlocks(1); err != nil {
		t.Fatal(err)
	}

	old := n.head()
	if err := n.fork(1, []string{hexBytes(two.id[:])}); err != nil {
		t.Fatal(err)
	}

	if b, _ := n.included(one.id); b != nil || n.waiting(one.id) != nil {
		t.Error("what was not kept is still there")
	}

	if b, _ := n.included(
		two.id,
	); b == nil || b.height != old.height || b.id == old.id ||
		b.parent != old.parent {
		t.Errorf("what was kept is in %+v", b)
	}

	if n.head().height != old.height+1 || n.head().parent != n.blocks[old.height].id {
		t.Errorf("the tip is %d", n.head().height)
	}

	if refused := n.broadcast(one); refused != nil {
		t.Errorf("what a fork dropped: %v", refused)
	}

	if err := n.mineBlocks(5); err != nil {
		t.Fatal(err)
	}

	if err := n.fork(3, nil); err == nil {
		t.Error("a fork below the solidified block")
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()

	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}

	return b
}
