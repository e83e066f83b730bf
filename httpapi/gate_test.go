package httpapi_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// lyingBuilder builds what its lie makes of an order, and says that it is the order.
type lyingBuilder struct {
	*sim.Chain
	lie func(o *chain.Order)
}

func (l *lyingBuilder) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	honest, err := l.Chain.Build(ctx, o)
	if err != nil {
		return honest, err
	}

	o.Outputs = append([]chain.Output(nil), o.Outputs...)
	l.lie(&o)

	built, err := l.Chain.Build(ctx, o)
	built.Outputs, built.MaxFee = honest.Outputs, honest.MaxFee

	return built, err
}

// TestTheGateComparesTheBytes: bytes that pay something else than the intent says are not signed, whoever built them.
func TestTheGateComparesTheBytes(t *testing.T) {
	for name, lie := range map[string]func(o *chain.Order, thief chain.Address){
		"nothing":             func(*chain.Order, chain.Address) {},
		"another destination": func(o *chain.Order, thief chain.Address) { o.Outputs[0].To = thief },
		"another amount": func(o *chain.Order, _ chain.Address) {
			o.Outputs[0].Amount = o.Outputs[0].Amount.Mul(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			network := sim.New(sim.Config{})
			thief := network.NewAddress()
			driver := &lyingBuilder{network, func(o *chain.Order) { lie(o, thief) }}

			s := &approvingShop{now: now}
			s.shop = bootWith(
				t,
				memory.New(),
				nil,
				func() time.Time { return s.now },
				func(c *payments.Config) {
					c.Drivers = []payments.ChainDriver{driver}
				},
			)
			s.network = network
			s.enter(t)
			s.fund(t, "SIM", chain.Pow10(20))

			s.there = string(network.NewAddress())
			s.pays = s.newKey(t, account.KeyParams{
				Scopes:       account.AllScopes(),
				Destinations: destinations(s.there),
			})

			id := s.pay(t, chain.Pow10(16))["id"].(string)

			s.work(t)

			p, err := storeOf(s.shop).PayoutByID(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}

			if signed := p.TxHash != ""; signed != (name == "nothing") {
				t.Errorf("%+v", p)
			}

			if got := network.Balance(thief, "SIM"); !got.IsZero() {
				t.Errorf("the thief got %s", got)
			}
		})
	}
}
