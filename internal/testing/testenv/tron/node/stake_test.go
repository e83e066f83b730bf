package main

import (
	"strings"
	"testing"
)

// Delegations are refused as java-tron's actuators refuse them, and what a receiver used of one is used up for its
// owner afterwards.
func TestStakeFollowsTheActuators(t *testing.T) {
	const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

	sender, receiver := "41f39fd6e51aad88f6f4ce6ab8827279cfffb92266", "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"

	// A contract that accepts every call, and an account that exists.
	n, err := newNode(Config{
		Balances:  map[string]int64{sender: 1_000_000_000, receiver: 1},
		Contracts: []Deployment{{Bytecode: "600160005360016000f3"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := n.change(sender, func(a *account) { a.staked = 10_000_000 }); err != nil {
		t.Fatal(err)
	}

	send := func(p payment) string {
		t.Helper()

		p.PrivateKey = key

		x, err := n.makePayment(&p)
		if err != nil {
			t.Fatal(err)
		}

		if refused := n.broadcast(x); refused != nil {
			return refused.message
		}

		return ""
	}
	at := func(text string) account {
		a, _ := addressHex(text)
		return n.pending.accounts[a]
	}

	for _, c := range []struct {
		payment
		want string
	}{
		{payment{To: receiver, Amount: 999_999, Stake: typeDelegate}, "greater than or equal to 1 TRX"},
		{payment{To: receiver, Amount: 10_000_001, Stake: typeDelegate}, "available FreezeEnergyV2 balance"},
		{payment{To: sender, Amount: 1_000_000, Stake: typeDelegate}, "must not be the same"},
		{payment{To: "41" + strings.Repeat("7", 40), Amount: 1_000_000, Stake: typeDelegate}, "not exists"},
		{payment{To: n.deployed[0], Amount: 1_000_000, Stake: typeDelegate}, "contract addresses"},
		{payment{To: receiver, Amount: 1_000_000, Stake: typeUndelegate}, "does not exist"},
		{payment{To: receiver, Amount: 8_000_000, Stake: typeDelegate}, ""},
		{payment{To: receiver, Amount: 8_000_001, Stake: typeUndelegate}, "unlock_balance=8000000"},
	} {
		if got := send(c.payment); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%+v: %q, want %q", c.payment, got, c.want)
		}
	}

	if of, to := at(sender), at(receiver); of.delegatable() != 2_000_000 || to.energyLeft() != 80 {
		t.Errorf("%d sun can be delegated, the receiver has %d energy", of.delegatable(), to.energyLeft())
	}

	if err := n.change(receiver, func(a *account) { a.energyUsed = 50 }); err != nil {
		t.Fatal(err)
	}

	if got := send(payment{To: receiver, Amount: 8_000_000, Stake: typeUndelegate}); got != "" {
		t.Error(got)
	}

	of, to := at(sender), at(receiver)
	if of.energyUsed != 50 || of.delegatable() != 5_000_000 || to.energyLeft() != 0 || to.energyUsed != 0 {
		t.Errorf("after the delegation: %+v, %+v", of, to)
	}
}
