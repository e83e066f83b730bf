package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// A commit wakes those who do what it made work of, on its network, and nobody else.
func TestCommitWakesWhoHasWork(t *testing.T) {
	w := newWoken(t)
	shop := w.merchant()

	w.woke("nothing", "")

	inv, err := w.engine.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner: shop,
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	w.woke("an invoice that no webhook tells of", "")

	if _, _, err := w.engine.Webhooks.CreateEndpoint(t.Context(), webhook.EndpointParams{
		Owner:  shop,
		URL:    "https://shop.example.com/",
		Events: []event.Type{"*"},
	}); err != nil {
		t.Fatal(err)
	}

	if _, err := w.engine.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:   shop,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	}); err != nil {
		t.Fatal(err)
	}

	w.woke("an invoice that a webhook tells of", "delivering")

	w.pay(inv)
	w.woke("a confirmed payment", "delivering, settling on simnet")

	balances, err := w.engine.Payouts.Balances(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}

	w.chain.Fund(balances[0].Address, "SIM", chain.Pow10(18).Mul(2))
	w.chain.Mine(1)

	if err := w.engine.Transactions.RefreshBalances(t.Context(), "simnet"); err != nil {
		t.Fatal(err)
	}

	w.take()

	if _, err := w.engine.Payouts.Create(t.Context(), payout.Params{
		Owner:       shop,
		Network:     "simnet",
		Asset:       "SIM",
		Amount:      chain.Pow10(18),
		Destination: string(w.chain.NewAddress()),
	}); err != nil {
		t.Fatal(err)
	}

	w.woke("a payout", "delivering, settling on simnet, sending on simnet")

	w.engine.Wake()
	w.woke(
		"the host", "delivering, "+
			"reading on othernet, retrying on othernet, settling on othernet, sending on othernet, "+
			"reading on simnet, retrying on simnet, settling on simnet, sending on simnet",
	)
}

// A process that runs wakes others for what it does not do itself; one that does not run, for everything.
func TestOthersAreWokenForWhatIsNotDoneHere(t *testing.T) {
	w := &wakes{}
	all := wakeUp{"simnet": sending | settling | retrying, "": delivering | showing}

	if got := w.forOthers(all); got != sending|settling|retrying|delivering|showing {
		t.Errorf("a process that does not run wakes others for %b", got)
	}

	w.subscribe(sending, "simnet")
	w.subscribe(settling, "othernet")

	if got := w.forOthers(all); got != settling|retrying|showing {
		t.Errorf("a process that sends on simnet wakes others for %b", got)
	}

	if got := w.forOthers(wakeUp{"": everything}); got != everything&^delivering {
		t.Errorf("a host that may mean any network has others woken for %b", got)
	}
}

// A worker that looks into the store rests for as long as that is dear; one that asks a node keeps its pace, and one
// that reads blocks looks again in time.
func TestWorkersRestWhereLookingIsDear(t *testing.T) {
	for _, c := range []struct {
		kinds             kinds
		took, rest, again time.Duration
	}{
		{sending, time.Millisecond, 4 * time.Millisecond, 500 * time.Millisecond},
		{settling, 30 * time.Millisecond, 120 * time.Millisecond, 1500 * time.Millisecond},
		{sending, time.Minute, 500 * time.Millisecond, 5 * time.Second},
		{reading, 200 * time.Millisecond, 0, 300 * time.Millisecond},
		{reading, time.Second, 0, 0},
		{0, time.Second, 0, 500 * time.Millisecond},
	} {
		w := worker{pace: 500 * time.Millisecond, kinds: c.kinds}
		if rest, again := w.pauses(c.took); rest != c.rest || again != c.again {
			t.Errorf("%b after a look of %s rests %s and looks again after %s", c.kinds, c.took, rest, again)
		}
	}
}

// What another process notifies of wakes the same kinds there.
func TestWakeUpsSayOfWhichKind(t *testing.T) {
	for _, k := range []kinds{reading, settling | sending, delivering, everything} {
		if got, from := readNote(note(k, "shop:1")); got != k || from != "shop:1" {
			t.Errorf("a wake-up for %b from shop:1 is read as %b from %s", k, got, from)
		}
	}

	for _, text := range []string{"", "zz:shop", "fff:shop"} {
		if got, from := readNote(text); got != everything || from != "" {
			t.Errorf("the wake-up %q is read as %b from %q, not as everything", text, got, from)
		}
	}

	if long := note(everything, strings.Repeat("x", maxProcess)); len(long) > 200 {
		t.Errorf("a wake-up has %d bytes, more than a Waker takes", len(long))
	}
}

// woken is an engine over two networks whose workers are replaced by listeners.
type woken struct {
	t         *testing.T
	engine    *Engine
	chain     *sim.Chain
	listeners []listener
}

type listener struct {
	name string
	*sleeper
}

func newWoken(t *testing.T) *woken {
	t.Helper()

	other := sim.DefaultNetwork()
	other.Slug, other.CAIP2 = "othernet", "sim:2"

	w := &woken{t: t, chain: sim.New(sim.Config{})}

	w.engine = newEngine(t, map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{w.chain, sim.New(sim.Config{Network: other})},
	})

	for _, network := range []string{"othernet", "simnet"} {
		for _, k := range []struct {
			name string
			kind kinds
		}{{"reading", reading}, {"retrying", retrying}, {"settling", settling}, {"sending", sending}} {
			w.listeners = append(
				w.listeners, listener{k.name + " on " + network, w.engine.wakes.subscribe(k.kind, network)},
			)
		}
	}

	// Whatever has no kind is never woken: the heartbeat, the probes, retention.
	w.listeners = append(w.listeners, listener{"the heartbeat", w.engine.wakes.subscribe(0, "")})

	// The deliverer listens by itself.
	deliverer := &sleeper{wake: make(chan struct{}, 1)}
	w.engine.wakes.delivering = func() {
		select {
		case deliverer.wake <- struct{}{}:
		default:
		}
	}
	w.listeners = append([]listener{{"delivering", deliverer}}, w.listeners...)

	return w
}

// merchant makes an account, and returns what it owns in test mode.
func (w *woken) merchant() event.Owner {
	w.t.Helper()

	made, err := w.engine.Accounts.CreateAccount(w.t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		w.t.Fatal(err)
	}

	w.take()

	return event.Owner{AccountID: made.ID}
}

// pay has an invoice paid and its payment confirmed.
func (w *woken) pay(inv invoice.Invoice) {
	w.t.Helper()

	follow := func() {
		for did := true; did; {
			var err error
			if did, err = w.engine.Follow(w.t.Context(), "simnet"); err != nil {
				w.t.Fatal(err)
			}
		}
	}

	follow() // the first reading is at the present
	w.chain.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
	w.chain.Mine(1)
	follow()
	w.take()
	w.chain.Mine(6)
	follow()
}

// take returns who was woken since it was called last.
func (w *woken) take() string {
	var names []string

	for _, l := range w.listeners {
		select {
		case <-l.wake:
			names = append(names, l.name)
		default:
		}
	}

	return strings.Join(names, ", ")
}

func (w *woken) woke(by, want string) {
	w.t.Helper()

	if got := w.take(); got != want {
		w.t.Errorf("%s woke %q, want %q", by, got, want)
	}
}
