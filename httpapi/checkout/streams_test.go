//go:build unix

package checkout_test

// Many payers at once: every open page has a stream, which sends its own payment only.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

const (
	// manyStreams is how many payers look at their page at the same time.
	manyStreams = 2000
	// ownMemory is how many bytes of heap and stacks a stream may cost beside what net/http takes
	// for any answer that stays open.
	ownMemory = 20 << 10
	// streamsTimeout bounds everything that is waited for.
	streamsTimeout = 2 * time.Minute
)

// liveStream is one payer's connection: a real socket, and nothing of net/http on this side, so
// that what is measured is the server's.
type liveStream struct {
	invoiceID string
	address   chain.Address
	due       chain.Amount
	conn      net.Conn
}

// ask sends the request of a payer who has an address of their own behind the shop's proxy.
func (l *liveStream) ask(server *httptest.Server, path, client string, deadline time.Time) error {
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		return err
	}

	l.conn = conn
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}

	_, err = fmt.Fprintf(
		conn, "GET %s HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-For: %s\r\n\r\n",
		path, client,
	)

	return err
}

// answered waits for the status and leaves the rest in the socket.
func (l *liveStream) answered() error {
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(l.conn, status); err != nil {
		return err
	}

	if string(status) != "HTTP/1.1 200" {
		return fmt.Errorf("the answer begins with %q", status)
	}

	return nil
}

// follow reads states until the last one and returns them. A stream looks again by itself every so
// often, after a heartbeat; byChance says that the last state came from such a look and not because
// something changed.
func (l *liveStream) follow() (all []checkout.State, byChance bool, err error) {
	in := bufio.NewReader(l.conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return all, byChance, err
		}

		if strings.HasPrefix(line, "event: heartbeat") {
			byChance = true
		}

		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || strings.HasPrefix(data, "{}") {
			continue
		}

		var s checkout.State
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			return all, byChance, err
		}

		if all = append(all, s); s.Final {
			return all, byChance, nil
		}

		byChance = false
	}
}

// cost is what something takes per stream, in bytes.
type cost struct{ heap, stacks int64 }

func (c cost) sum() int64 { return c.heap + c.stacks }

func (c cost) String() string {
	return fmt.Sprintf(
		"%.1f kB (heap %.1f, stacks %.1f)",
		float64(c.sum())/1024, float64(c.heap)/1024, float64(c.stacks)/1024,
	)
}

// inUse is what the process holds after everything that nobody needs was freed.
func inUse() cost {
	// Two collections: pools give back at the second, and a stack shrinks by half at each.
	for range 3 {
		runtime.GC()
	}

	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return cost{int64(m.HeapAlloc), int64(m.StackInuse)}
}

// atRest is what the process holds once that no longer falls: a stream that was answered still has
// its first look to do.
func atRest() cost {
	for last := inUse(); ; {
		held := inUse()
		if held.sum() > last.sum()-last.sum()/100 {
			return held
		}

		last = held
	}
}

// connect opens every stream, waits until all are answered, and returns what one costs.
func connect(
	t *testing.T,
	server *httptest.Server,
	streams []*liveStream,
	path func(*liveStream) string,
	deadline time.Time,
) cost {
	t.Helper()

	before := inUse()

	for i, l := range streams {
		if err := l.ask(server, path(l), fmt.Sprintf("10.0.%d.%d", i/250, i%250), deadline); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { l.conn.Close() })
	}

	for i, l := range streams {
		if err := l.answered(); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}

	after, n := atRest(), int64(len(streams))

	return cost{(after.heap - before.heap) / n, (after.stacks - before.stacks) / n}
}

// Two thousand payers have their pages open in one process and pay in any order. Each
// stream sends its own payment, from seen to paid, and no other.
func TestManyStreams(t *testing.T) {
	needDescriptors(t, 2*manyStreams+200)

	network := sim.New(sim.Config{})
	shop := openShop(
		t, network,
		&checkout.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	)

	streams := make([]*liveStream, manyStreams)
	for i := range streams {
		inv, err := shop.engine.Invoices.GetByID(
			t.Context(), shop.order("49.90", invoice.OptionParams{Asset: "SIM", Network: "simnet"}),
		)
		if err != nil {
			t.Fatal(err)
		}

		streams[i] = &liveStream{
			invoiceID: inv.ID,
			address:   inv.Options[0].Address,
			due:       inv.Options[0].AmountDue,
		}
	}

	deadline := time.Now().Add(streamsTimeout)

	// What net/http takes for an answer that stays open, to know what is ours.
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.WriteString(
			w, "data: \n\n",
		); err == nil &&
			http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	}))

	others := make([]*liveStream, manyStreams)
	for i := range others {
		others[i] = &liveStream{}
	}

	least := connect(t, bare, others, func(*liveStream) string { return "/" }, deadline)
	for _, l := range others {
		l.conn.Close()
	}

	bare.Close()

	all := connect(
		t, shop.server, streams,
		func(l *liveStream) string { return shop.path(l.invoiceID) + "/events" }, deadline,
	)
	t.Logf("%d streams over sockets: %s each, of which net/http takes %s", manyStreams, all, least)

	if own := all.sum() - least.sum(); own > ownMemory {
		t.Errorf("a stream costs %d bytes beside net/http's own, more than %d", own, ownMemory)
	}

	began := time.Now()

	var readers sync.WaitGroup

	failures := make([]error, manyStreams)

	var byChance atomic.Int64

	for i, l := range streams {
		readers.Go(func() {
			states, chance, err := l.follow()
			failures[i] = errors.Join(err, l.check(states))

			if chance {
				byChance.Add(1)
			}
		})
	}
	// Payments arrive in several blocks while the streams are open, from the last payer to the first.
	for i := len(streams) - 1; i >= 0; i-- {
		network.Pay(streams[i].address, "SIM", streams[i].due)

		if i%500 == 0 {
			network.Mine(1)
			shop.engine.Wake()
		}
	}

	network.Mine(3)
	shop.engine.Wake()
	readers.Wait()

	for i, err := range failures {
		if err != nil {
			t.Errorf("payer %d: %v", i, err)
		}

		if i > 10 && t.Failed() {
			t.FailNow()
		}
	}
	// On a machine that is very slow, a look may come first for a few.
	if n := byChance.Load(); n > manyStreams/10 {
		t.Errorf("%d of %d streams found out by looking again, not by being told", n, manyStreams)
	}

	t.Logf("all were told within %s of the first payment", time.Since(began).Round(10*time.Millisecond))
}

// check returns an error unless the states begin with the request to pay, end with paid, and show
// the payer's own invoice and payment only.
func (l *liveStream) check(states []checkout.State) error {
	if len(states) < 2 || states[0].Phase != "pay" || states[len(states)-1].Phase != "paid" {
		return fmt.Errorf("was told %d states, of which the last is not paid: %+v", len(states), states)
	}

	for _, s := range states {
		if s.ID != l.invoiceID || len(s.Transactions) > 1 {
			return fmt.Errorf(
				"invoice %s was told of %s with %d payments",
				l.invoiceID, s.ID, len(s.Transactions),
			)
		}
	}

	last := states[len(states)-1]
	if len(last.OutcomeFlags) > 0 || len(last.Transactions) != 1 ||
		last.Transactions[0].Amount != l.due.String() {
		return fmt.Errorf("was told %+v", last)
	}

	return nil
}

// needDescriptors fails where the system allows fewer open files than the test needs. Go has raised
// the soft limit to the hard one already.
func needDescriptors(t *testing.T, n uint64) {
	t.Helper()

	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}

	if limit.Cur < n {
		t.Fatalf(
			"%d files may be open at once, and this test needs %d: raise the hard limit (ulimit -Hn)",
			limit.Cur, n,
		)
	}
}
