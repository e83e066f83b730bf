// Package receiver tests the receivers of the four languages with deliveries of a running engine.
package receiver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// deadline is how long each thing that is waited for may take.
const deadline = time.Minute

func TestGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "receiver")

	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./go").
		CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}

	testReceiver(t, program)
}

func TestNode(t *testing.T) { testReceiver(t, installed(t, "node"), "node/receiver.mjs") }

func TestPython(t *testing.T) { testReceiver(t, installed(t, "python3"), "python/receiver.py") }

func TestPHP(t *testing.T) {
	testReceiver(t, installed(t, "php"), "-S", "127.0.0.1:PORT", "php/receiver.php")
}

// An event whose handling throws is answered 500, and handled when it comes again.
func TestPHPHandlesWhatFailed(t *testing.T) {
	php := installed(t, "php")

	text, err := os.ReadFile("php/receiver.php")
	if err != nil {
		t.Fatal(err)
	}

	const prints = "    file_put_contents('php://stdout', "

	failed := filepath.Join(t.TempDir(), "failed")
	throws := "    if (@fopen('" + failed + "', 'x')) {\n        throw new Exception('not now');\n    }\n"
	path := filepath.Join(t.TempDir(), "receiver.php")

	if bytes.Count(text, []byte(prints)) != 1 {
		t.Fatalf("receiver.php does not have the line %q once", prints)
	}

	if err := os.WriteFile(
		path,
		bytes.Replace(text, []byte(prints), []byte(throws+prints), 1),
		0o600,
	); err != nil {
		t.Fatal(err)
	}

	const secret, body = "whsec_a", `{"id":"evt_1","type":"invoice.paid"}`

	address := freeAddress(t)
	output := start(t, address, secret, php, "-d", "display_errors=1", "-S", "127.0.0.1:PORT", path)

	for _, want := range []int{
		http.StatusInternalServerError,
		http.StatusNoContent,
		http.StatusNoContent,
	} {
		header := webhook.Sign([]byte(body), time.Now(), secret)
		if got := post(t, "http://"+address+"/webhooks", body, header); got != want {
			t.Errorf("answered %d, want %d", got, want)
		}
	}

	if got := strings.Count(output.String(), "received invoice.paid evt_1\n"); got != 1 {
		t.Errorf("the event was handled %d times, want once:\n%s", got, output)
	}
}

// A receiver that cannot work says which variable is wrong, and what belongs into it.
func TestReceiversSayWhatIsMissing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	for language, command := range map[string][]string{
		"go":     {"go", "run", "./go"},
		"node":   {"node", "node/receiver.mjs"},
		"python": {"python3", "python/receiver.py"},
	} {
		for name, c := range map[string]struct{ secret, port, says string }{
			"no secret":    {"", port, "WEBHOOK_SECRET is not set: set it to"},
			"no port":      {"whsec_a", "", `PORT is "": set it to a free port`},
			"no number":    {"whsec_a", "http", `PORT is "http": set it to a free port`},
			"a taken port": {"whsec_a", port, "PORT " + port + ": "},
		} {
			t.Run(language+" "+name, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), installed(t, command[0]), command[1:]...)

				cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+c.secret, "PORT="+c.port)

				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), c.says) ||
					strings.Count(string(out), "\n") > 2 {
					t.Errorf("it ended with %v, without %q in one line:\n%s", err, c.says, out)
				}
			})
		}
	}
}

// installed returns the path of a language's program, and skips the test by name where there is none.
func installed(t *testing.T, program string) string {
	t.Helper()

	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s: needs %s, which is not installed: this receiver is NOT tested here", t.Name(), program)
	}

	return path
}

// testReceiver runs a receiver and delivers to it. PORT in an argument stands for the port to listen on.
func testReceiver(t *testing.T, program string, args ...string) {
	t.Helper()

	service := newService(t)
	address := freeAddress(t)

	endpoint, secret, err := service.engine.Webhooks.CreateEndpoint(t.Context(), webhook.EndpointParams{
		Owner:  service.owner,
		URL:    "http://" + address + "/webhooks",
		Events: []event.Type{event.InvoicePaid},
	})
	if err != nil {
		t.Fatal(err)
	}

	output := start(t, address, secret, program, args...)

	// A delivery of the running engine is received.
	paid := service.payInvoice(t)
	line := "received invoice.paid " + paid.ID + "\n"
	service.awaitDelivered(t, paid.ID, 1)

	if got := output.String(); !strings.Contains(got, line) {
		t.Fatalf("the output lacks %q:\n%s", line, got)
	}

	// The same event once more is taken, and not handled again.
	if _, err := service.engine.Webhooks.ResendEvent(t.Context(), service.owner, paid.ID); err != nil {
		t.Fatal(err)
	}

	service.awaitDelivered(t, paid.ID, 2)

	if got := strings.Count(output.String(), line); got != 1 {
		t.Errorf("the event was handled %d times, want once", got)
	}

	refuses(t, endpoint.URL, secret, string(paid.Envelope))
}

// refuses sends what is no genuine delivery, and wants 401 for each; and 204 for a genuine one.
func refuses(t *testing.T, url, secret, body string) {
	t.Helper()

	now := time.Now()
	genuine := webhook.Sign([]byte(body), now, secret)
	stamp, _, _ := strings.Cut(genuine, ",")

	for _, c := range []struct {
		name, body, header string
		status             int
	}{
		{"genuine", body, genuine, http.StatusNoContent},
		{"two secrets", body, webhook.Sign([]byte(body), now, "whsec_older", secret), http.StatusNoContent},
		{"no signature", body, "", http.StatusUnauthorized},
		{"another body", body + " ", genuine, http.StatusUnauthorized},
		{"another secret", body, webhook.Sign([]byte(body), now, "whsec_other"), http.StatusUnauthorized},
		{"old", body, webhook.Sign([]byte(body), now.Add(-6*time.Minute), secret), http.StatusUnauthorized},
		{"from the future", body, webhook.Sign([]byte(body), now.Add(6*time.Minute), secret), http.StatusUnauthorized},
		{"two times", body, genuine + "," + stamp, http.StatusUnauthorized},
		{"not hex", body, stamp + ",v1=zz", http.StatusUnauthorized},
		{"not ASCII", body, stamp + ",v1=\xc3\xa9", http.StatusUnauthorized},
		{"no time", body, "v1=" + strings.Repeat("0", 64), http.StatusUnauthorized},
	} {
		if got := post(t, url, c.body, c.header); got != c.status {
			t.Errorf("%s: answered %d, want %d", c.name, got, c.status)
		}
	}
}

// post sends a body with a signature, and returns the status of the answer.
func post(t *testing.T, url, body, signature string) int {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set(webhook.SignatureHeader, signature)

	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}

	answer.Body.Close()

	return answer.StatusCode
}

// service is a running engine with one account.
type service struct {
	engine *payments.Engine
	owner  event.Owner
}

func newService(t *testing.T) *service {
	t.Helper()

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	engine, err := payments.New(payments.Config{
		Store:        memory.New(),
		Drivers:      []payments.ChainDriver{sim.New(sim.Config{}).Driver()},
		Signer:       sim.NewSigner(1, nil),
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{1}, 32),
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}

	shop, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Shop"})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- engine.Run(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	return &service{engine: engine, owner: event.Owner{AccountID: shop.ID}}
}

// payInvoice returns the event of an invoice that is paid.
func (s *service) payInvoice(t *testing.T) event.Event {
	t.Helper()

	inv, err := s.engine.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner: s.owner,
		Price: &invoice.Price{Currency: "USD", Amount: "25.00"},
	})
	if err != nil {
		t.Fatal(err)
	}

	_, _, err = s.engine.Invoices.Simulate(t.Context(), invoice.SimulateParams{
		Owner:     s.owner,
		InvoiceID: inv.ID,
		Outcome:   invoice.SimulatePaid,
	})
	if err != nil {
		t.Fatal(err)
	}

	events, _, err := s.engine.Webhooks.ListEvents(t.Context(), event.Filter{Owner: s.owner, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}

	for _, ev := range events {
		if ev.Type == event.InvoicePaid {
			return ev
		}
	}

	t.Fatal("there is no event invoice.paid")

	return event.Event{}
}

// awaitDelivered waits until so many deliveries of an event have succeeded.
func (s *service) awaitDelivered(t *testing.T, eventID string, want int) {
	t.Helper()
	await(t, "the delivery of "+eventID, func() bool {
		deliveries, _, err := s.engine.Webhooks.ListDeliveries(t.Context(), webhook.DeliveryFilter{
			Owner:   s.owner,
			EventID: eventID,
			Limit:   10,
		})
		if err != nil {
			t.Fatal(err)
		}

		done := 0

		for _, d := range deliveries {
			if d.Status == webhook.DeliverySucceeded {
				done++
			}
		}

		return done >= want
	})
}

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	return listener.Addr().String()
}

// start runs a receiver until the test ends and returns what it prints.
func start(t *testing.T, address, secret, program string, args ...string) *output {
	t.Helper()

	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}

	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "PORT", port)
	}

	out := &output{}
	cmd := exec.Command(program, args...)

	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, "PORT="+port, "TMPDIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = out, out

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()

		if t.Failed() {
			t.Logf("the receiver printed:\n%s", out)
		}
	})

	await(t, "the receiver", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}

		return err == nil
	})

	return out
}

// await waits until a condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()

	limit := time.After(deadline)
	tick := time.NewTicker(20 * time.Millisecond)

	defer tick.Stop()

	for !condition() {
		select {
		case <-limit:
			t.Fatalf("%s was not seen within %s", what, deadline)
		case <-tick.C:
		}
	}
}

// output is what a receiver prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.buf.Write(p)
}

// String returns all output so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.buf.String()
}
