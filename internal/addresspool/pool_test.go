package addresspool_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/internal/addresspool"
)

// harness is a pool over the simulated network, with a counter of indexes that may fail.
type harness struct {
	*addresspool.Pool
	driver chain.Driver
	signer *hdkey.Signer

	mu   sync.Mutex
	next int64
	err  error
}

func newHarness(t *testing.T) *harness {
	t.Helper()

	signer, err := hdkey.FromSeed(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}

	h := &harness{driver: sim.New(sim.Config{}).Driver(), signer: signer}

	registry, err := chain.NewRegistry(h.driver)
	if err != nil {
		t.Fatal(err)
	}

	h.Pool = addresspool.New(addresspool.Config{
		Registry: registry,
		Keys:     signer,
		Reserve: func(_ context.Context, counter string, n int) (int64, error) {
			h.mu.Lock()
			defer h.mu.Unlock()

			first := h.next
			h.next += int64(n)

			return first, h.err
		},
	})

	return h
}

func (h *harness) slug() string { return h.driver.Network().Slug }

// fill derives what is missing.
func (h *harness) fill(t *testing.T) {
	t.Helper()

	if _, err := h.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// takeAll takes until nothing is held.
func (h *harness) takeAll() (taken []chain.Party) {
	for {
		p, ok := h.Take(h.slug())
		if !ok {
			return taken
		}

		taken = append(taken, p)
	}
}

func TestAddressesAreThoseOfTheirKeys(t *testing.T) {
	h := newHarness(t)
	h.fill(t)

	taken := h.takeAll()
	if len(taken) != 16 {
		t.Fatalf("%d addresses are held, want 16", len(taken))
	}

	for i, p := range taken {
		public, err := h.signer.PublicKey(t.Context(), p.Key)
		if err != nil {
			t.Fatal(err)
		}

		want, err := h.driver.(chain.Deriver).DeriveAddress(public)
		if err != nil || p.Address != want || p.Key.Index != uint32(i) || p.Key.Role != chain.RoleDeposit {
			t.Errorf("address %d is %s of key %s, want %s (error %v)", i, p.Address, p.Key, want, err)
		}
	}
}

func TestNothingIsHeldBeforeTheFirstStep(t *testing.T) {
	h := newHarness(t)

	if p, ok := h.Take(h.slug()); ok {
		t.Errorf("an address of nobody: %s", p.Address)
	}

	select {
	case <-h.Low():
		t.Error("a pool that nothing fills says that it is low")
	default:
	}
}

func TestNoAddressIsGivenTwice(t *testing.T) {
	h := newHarness(t)
	h.fill(t)

	var (
		takers sync.WaitGroup
		mu     sync.Mutex
	)

	given := map[chain.Address]bool{}

	for range 8 {
		takers.Go(func() {
			for range 500 {
				p, ok := h.Take(h.slug())
				if !ok {
					if _, err := h.Step(t.Context()); err != nil {
						t.Error(err)
					}

					continue
				}

				mu.Lock()
				if given[p.Address] {
					t.Errorf("%s is given twice", p.Address)
				}

				given[p.Address] = true
				mu.Unlock()
			}
		})
	}

	takers.Wait()
}

func TestPoolIsBounded(t *testing.T) {
	h := newHarness(t)

	held := 0

	for range 20 {
		h.fill(t)
		held = len(h.takeAll())
	}

	if held != 512 {
		t.Errorf("%d addresses are held after many demands, want 512", held)
	}
}

func TestFullPoolReservesNothing(t *testing.T) {
	h := newHarness(t)
	h.fill(t)

	for range 7 {
		h.Take(h.slug())
	}

	if did, err := h.Step(t.Context()); did || err != nil || h.next != 16 {
		t.Errorf("a pool with more than half is filled: %t, %v, next index %d", did, err, h.next)
	}

	h.Take(h.slug())

	select {
	case <-h.Low():
	default:
		t.Error("a pool with half is not low")
	}

	if did, err := h.Step(t.Context()); !did || err != nil || h.next != 24 {
		t.Errorf("a pool with half is not filled: %t, %v, next index %d", did, err, h.next)
	}
}

// TestFailedReservationGivesNothing holds that an index whose reservation is unknown is never given out.
func TestFailedReservationGivesNothing(t *testing.T) {
	h := newHarness(t)
	h.err = errors.New("the database is down")

	if _, err := h.Step(t.Context()); !errors.Is(err, h.err) {
		t.Fatalf("error %v, want %v", err, h.err)
	}

	if p, ok := h.Take(h.slug()); ok {
		t.Errorf("given out without an index: %s", p.Address)
	}

	h.err = nil
	h.fill(t)

	if p, ok := h.Take(h.slug()); !ok || p.Key.Index != 16 {
		t.Errorf("given out %t with index %d, want 16", ok, p.Key.Index)
	}
}

func TestLastIndexes(t *testing.T) {
	h := newHarness(t)
	h.next = 1<<31 - 3
	h.fill(t)

	if taken := h.takeAll(); len(taken) != 3 {
		t.Errorf("%d addresses of the last 3 indexes", len(taken))
	}
}
