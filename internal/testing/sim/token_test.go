package sim_test

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// blockAt returns the block at a height.
func blockAt(t *testing.T, c *sim.Chain, height uint64) chain.Block {
	t.Helper()

	blocks, err := c.Blocks(t.Context(), height, height)
	if err != nil || len(blocks) != 1 {
		t.Fatalf("block %d: %+v, %v", height, blocks, err)
	}

	return blocks[0]
}

// pooled returns the transfers that the pool shows, in its order.
func pooled(t *testing.T, c *sim.Chain) (transfers []chain.Transfer) {
	t.Helper()

	pool, err := c.Pool(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for _, tx := range pool {
		transfers = append(transfers, tx.Transfers...)
	}

	return transfers
}

func TestBlockListsEveryTransaction(t *testing.T) {
	c := newChain(t)
	to := c.NewAddress()
	hashes := map[string]bool{ // failed or not
		c.Pay(to, "USDX", dollars(1)):              false,
		c.PayFailing(to, "USDX", dollars(2)):       true,
		c.PayInternal(to, coin(1)):                 false,
		c.Pay(to, "USDX", chain.Amount{}):          false,
		c.LogTransfer(to, to, "USDX", dollars(3)):  false,
		c.TransferFrom(to, to, "USDX", dollars(9)): true,
	}
	c.Mine(1)

	spent := blockAt(t, c, 1).Spent
	if len(spent) != len(hashes) {
		t.Fatalf("spent %+v, want %d", spent, len(hashes))
	}

	senders := map[chain.Address]bool{}

	for _, s := range spent {
		failed, known := hashes[s.By]
		if !known || s.Failed != failed || s.Sender == "" || s.Sender == to || s.Nonce != 0 || s.Shared {
			t.Errorf("spend %+v, want failed %t", s, failed)
		}

		senders[s.Sender] = true
	}

	if len(senders) != len(hashes) {
		t.Errorf("%d senders, want %d", len(senders), len(hashes))
	}
}

func TestTokenRules(t *testing.T) {
	const bps = 250 // of 40 dollars: 1 dollar

	for name, test := range map[string]struct {
		rules sim.TokenRules
		// amounts of the logs: to the receiver, out of the sender and out of the receiver to the collector
		in, fromSender, fromReceiver uint64
		balance                      uint64
	}{
		"plain":               {sim.TokenRules{}, 40, 0, 0, 40},
		"logs the net":        {sim.TokenRules{FeeBPS: bps}, 39, 1, 0, 39},
		"logs the gross":      {sim.TokenRules{FeeBPS: bps, Log: sim.LogGross}, 40, 0, 0, 39},
		"takes the fee after": {sim.TokenRules{FeeBPS: bps, Log: sim.LogGrossThenFee}, 40, 0, 1, 39},
		"takes everything":    {sim.TokenRules{FeeBPS: 10_000, Log: sim.LogGross}, 40, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t)
			to, collector, token := c.NewAddress(), c.NewAddress(), asset(t, c, "USDX").ID
			test.rules.Collector = collector
			c.SetToken("USDX", test.rules)
			hash := c.Pay(to, "USDX", dollars(40))

			claims := pooled(t, c)
			if len(claims) != 1 || claims[0].Amount != dollars(40) || claims[0].To != to {
				t.Fatalf("the pool shows %+v, want the amount before the fee", claims)
			}

			from := claims[0].From

			c.Mine(1)

			var want []chain.Transfer

			for _, log := range []struct {
				from, to chain.Address
				amount   uint64
			}{{from, to, test.in}, {from, collector, test.fromSender}, {to, collector, test.fromReceiver}} {
				if log.amount > 0 {
					want = append(want, chain.Transfer{
						TxHash:  hash,
						Index:   uint32(1 + len(want)),
						From:    log.from,
						To:      log.to,
						AssetID: token,
						Amount:  dollars(log.amount),
					})
				}
			}

			if got := blockAt(t, c, 1).Transfers; !slices.Equal(got, want) {
				t.Errorf("transfers %+v, want %+v", got, want)
			}

			found, err := c.Transaction(t.Context(), hash)
			if err != nil || !slices.Equal(found.Transfers, want) {
				t.Errorf("by hash %+v, %v, want %+v", found, err, want)
			}

			got := c.Balance(to, "USDX")
			fees := c.Balance(collector, "USDX")

			if got != dollars(test.balance) || got.Add(fees) != dollars(40) {
				t.Errorf("balance %s and fees %s, want %d dollars of 40", got, fees, test.balance)
			}
		})
	}
}

func TestTransfersOutOfAnyAddress(t *testing.T) {
	for name, test := range map[string]struct {
		send    func(c *sim.Chain, from, to chain.Address) string
		claimed uint64 // in the pool
		logged  uint64
		moved   uint64
		failed  bool
	}{
		"0 by anybody": {
			send: func(c *sim.Chain, from, to chain.Address) string {
				return c.TransferFrom(from, to, "USDX", chain.Amount{})
			},
		},
		"with an allowance": {
			send: func(c *sim.Chain, from, to chain.Address) string {
				return c.TransferFrom(from, to, "USDX", dollars(5))
			},
			claimed: 5,
			logged:  5,
			moved:   5,
		},
		"more than there is": {
			send: func(c *sim.Chain, from, to chain.Address) string {
				return c.TransferFrom(from, to, "USDX", dollars(11))
			},
			claimed: 11,
			failed:  true,
		},
		"a log only": {
			send: func(c *sim.Chain, from, to chain.Address) string {
				return c.LogTransfer(from, to, "USDX", dollars(11))
			},
			logged: 11,
		},
		"a log of 0": {
			send: func(c *sim.Chain, from, to chain.Address) string {
				return c.LogTransfer(from, to, "USDX", chain.Amount{})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t)
			from, to := c.NewAddress(), c.NewAddress()
			c.Fund(from, "USDX", dollars(10))
			hash := test.send(c, from, to)

			check := func(what string, shown []chain.Transfer, amount uint64) {
				t.Helper()

				if len(shown) > 1 || (len(shown) == 1) != (amount > 0) {
					t.Fatalf("the %s shows %+v, want %d dollars", what, shown, amount)
				}

				if amount > 0 &&
					(shown[0].From != from || shown[0].To != to || shown[0].Amount != dollars(amount)) {
					t.Errorf("the %s shows %+v, want %d dollars from %s to %s", what, shown, amount, from, to)
				}
			}
			check("pool", pooled(t, c), test.claimed)
			c.Mine(1)

			block := blockAt(t, c, 1)
			check("block", block.Transfers, test.logged)

			if s := block.Spent[0]; len(block.Spent) != 1 || s.By != hash || s.Sender == from ||
				s.Failed != test.failed {
				t.Errorf("spent %+v, want one of another sender, failed %t", block.Spent, test.failed)
			}

			left, arrived := c.Balance(from, "USDX"), c.Balance(to, "USDX")
			if arrived != dollars(test.moved) || left.Add(arrived) != dollars(10) {
				t.Errorf("%s left and %s arrived, want %d dollars moved", left, arrived, test.moved)
			}
		})
	}
}

// Coin from a contract and a payment reach an address in one block, which shows only the payment.
func TestHiddenPaymentBesideAnother(t *testing.T) {
	c := newChain(t)
	to := c.NewAddress()
	c.Pay(to, "SIM", coin(1))
	c.PayInternal(to, coin(2))
	c.Mine(1)

	if got := blockAt(t, c, 1); len(got.Transfers) != 1 || got.Transfers[0].Amount != coin(1) ||
		len(got.Spent) != 2 {
		t.Errorf("block %+v, want one transfer and two transactions", got)
	}

	if got := c.Balance(to, "SIM"); got != coin(3) {
		t.Errorf("balance %s, want both", got)
	}
}
