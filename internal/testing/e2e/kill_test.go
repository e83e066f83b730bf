package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// everyCrash is which share TestKill runs of the crashes that it does not run all of: one in so
// many, an odd number so that those before a moment and those after one have their share.
const everyCrash = 45

// TestKill plays the main scenario (an invoice is made, paid, settled and released) once in peace, and
// then again and again, with the process killed at a moment of the first run: before or after a
// commit of the store or a call of the node. Whatever the moment, another process over the same
// file brings everything to the same end, and on the chain everything happens once.
//
// It dies after each commit that moves the scenario and after each transaction that it sends, and a
// share of the other crashes; TestSoakKill dies them all.
func TestKill(t *testing.T) {
	t.Parallel()

	killEverywhere(
		t,
		func(m moment, after bool, i int) bool { return after && m.moves() || i%everyCrash == everyCrash/2 },
	)
}

// TestSoakKill is TestKill without leaving a crash out. It ends when it has run them all, whatever
// SOAKTIME says.
func TestSoakKill(t *testing.T) {
	t.Parallel()

	if os.Getenv("SOAKTIME") == "" {
		t.Skip("TestKill runs a share of the same crashes; set SOAKTIME to run them all")
	}

	killEverywhere(t, func(moment, bool, int) bool { return true })
}

// moves reports whether the moment leaves something that the scenario goes on from: a record or a
// transaction sent.
func (m moment) moves() bool {
	return strings.HasPrefix(m.Name, "commit ") || strings.Contains(m.Name, "sendRaw")
}

func killEverywhere(t *testing.T, wanted func(m moment, after bool, i int) bool) {
	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	begun := time.Now()
	template, key := killTemplate(t)

	lanes := make([]*lane, max(2, runtime.NumCPU()))
	for i := range lanes {
		lanes[i] = newLane(t, template, key)
	}

	calm := lanes[0].run(t, 0, false, "")

	var commits, requests, calls int

	for _, m := range calm.moments {
		if m.Calls == 0 {
			commits++
		} else {
			requests++
			calls += m.Calls
		}
	}

	if commits < 10 || requests < 20 {
		t.Fatalf("the undisturbed run made only %d commits and %d requests", commits, requests)
	}

	for i, m := range lanes[1].run(t, 0, false, "").moments {
		if i >= len(calm.moments) || m != calm.moments[i] {
			t.Fatalf("two undisturbed runs differ at moment %d, %s", i+1, m.Name)
		}
	}

	type crash struct {
		at    int
		after bool
	}

	var crashes []crash

	for i := range 2 * len(calm.moments) {
		if wanted(calm.moments[i/2], i%2 == 1, i) {
			crashes = append(crashes, crash{i/2 + 1, i%2 == 1})
		}
	}

	var wg sync.WaitGroup

	next := make(chan crash)

	for _, l := range lanes {
		wg.Go(func() {
			for d := range next {
				m := calm.moments[d.at-1]
				when := map[bool]string{false: "before", true: "after"}[d.after]
				t.Run(fmt.Sprintf("%s moment %d, %s", when, d.at, m.Name), func(t *testing.T) {
					if diff := cmp.Diff(
						calm.end, l.run(t, d.at, d.after, m.Name).end,
						cmp.Comparer(func(a, b chain.Amount) bool { return a == b }),
					); diff != "" {
						t.Errorf("it ended otherwise than the undisturbed run:\n%s", diff)
					}
				})
			}
		})
	}

	for _, d := range crashes {
		next <- d
	}

	close(next)
	wg.Wait()
	t.Logf(
		"an undisturbed run makes %d commits and %d requests to the node, which carry %d calls: %d "+
			"moments, so %d crashes before and after them; %d of these were run, in %s",
		commits,
		requests,
		calls,
		len(calm.moments),
		2*len(calm.moments),
		len(crashes),
		time.Since(begun).Round(time.Second),
	)
}

// killTemplate makes a database file with a merchant and returns its path and the merchant's key.
func killTemplate(t *testing.T) (path, key string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "template.db")
	engine, db := assemble(
		life{DB: path, RPC: "http://127.0.0.1:1", ChainID: testenv.DefaultChainID}, &reaper{},
		time.Now,
	)

	a, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	if _, key, err = engine.Accounts.CreateKey(t.Context(), account.KeyParams{AccountID: a.ID}); err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	return path, key
}

// lane is a node on which one scenario after the other runs, each from the same state.
type lane struct {
	url, template, key string
	payer              *payer
	miner              miner
	http               *http.Client
}

func newLane(t *testing.T, template, key string) *lane {
	t.Helper()
	// Without a base fee a transaction costs the same in whatever block it ends up.
	node := testenv.Anvil(
		t, testenv.AnvilOptions{Args: []string{"--no-mining", "--block-base-fee-per-gas", "0"}},
	)

	client, err := rpc.DialContext(t.Context(), node.URL)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)
	l := &lane{
		url:      node.URL,
		template: template,
		key:      key,
		payer:    newPayer(t, node.URL, node.ChainID),
		miner:    miner{t, client},
		http:     &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience},
	}
	l.miner.mine(3)

	return l
}

// ending is what a scenario leaves: records as the API shows them, without what is different by
// nature, and the chain.
type ending struct {
	Invoice, Payments, Events any
	Audit                     audit.Network
	Chain                     []transferred
}

// transferred is a transaction on the chain, and what its sender had sent before.
type transferred struct {
	From, To string
	Nonce    uint64
	Value    string
}

// outcome is a scenario that ran to its end.
type outcome struct {
	moments []moment
	end     ending
}

// run runs the scenario once, with the process killed at a moment; 0: never.
func (l *lane) run(t *testing.T, at int, after bool, name string) outcome {
	t.Helper()

	var snapshot hexutil.Uint64

	m := miner{t, l.miner.client}

	m.ask(&snapshot, "evm_snapshot")
	defer func() {
		if err := errors.Join(
			m.client.Call(nil, "anvil_dropAllTransactions"),
			m.client.Call(nil, "evm_revert", snapshot),
		); err != nil {
			t.Errorf("going back to the snapshot: %v", err)
		}
	}()

	s := &scenario{lane: *l, t: t, dir: t.TempDir(), now: time.Now(), at: at, after: after, name: name}
	s.payer, s.miner = s.payer.in(t), m
	first := s.payer.tip()

	template, err := os.ReadFile(l.template)
	if err == nil {
		err = os.WriteFile(s.db(), template, 0o600)
	}

	if err != nil {
		t.Fatal(err)
	}

	s.boot()
	defer s.stop()

	s.play()

	if crashed := s.crashes == 1; crashed != (at > 0) {
		t.Errorf("the process crashed %d times", s.crashes)
	}

	var out outcome
	s.get("/moments", &out.moments)
	out.end = s.ending(first)

	return out
}

// ask is call with an answer.
func (m miner) ask(answer any, method string, args ...any) {
	m.t.Helper()

	if err := m.client.CallContext(m.t.Context(), answer, method, args...); err != nil {
		m.t.Fatalf("%s: %v", method, err)
	}
}

// scenario is one run: the file, and one process over it at a time.
type scenario struct {
	lane
	t     *testing.T
	dir   string
	now   time.Time
	at    int
	after bool
	// name is the moment at which the process is to die.
	name    string
	crashes int

	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
	base  string
	logs  syncBuffer
}

func (s *scenario) db() string { return filepath.Join(s.dir, "payments.db") }

// boot starts a process over the file. Only the first is to die.
func (s *scenario) boot() {
	s.t.Helper()

	l := life{DB: s.db(), RPC: s.url, ChainID: testenv.DefaultChainID}
	if s.crashes == 0 {
		l.At, l.After = s.at, s.after
	}

	text, err := json.Marshal(l)
	if err != nil {
		s.t.Fatal(err)
	}

	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}

	s.cmd = exec.Command(program)

	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), lifeEnv+"="+string(text), "GOGC=400"), &s.logs
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}

	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}

	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}

	s.out = bufio.NewReader(stdout)
	line, err := s.out.ReadString('\n')

	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		s.t.Fatalf("the service process does not listen: %q, %v\n%s", line, err, s.logs.String())
	}

	s.base = "http://" + address
}

// stop ends the process at the end of the scenario.
func (s *scenario) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, s.out)

	_ = s.cmd.Wait()
	if s.t.Failed() {
		s.t.Log("logs of the service:\n" + s.logs.String())
	}
}

// buried checks that the process crashed as it was meant to, and starts another one when the leases of
// the first have run out.
func (s *scenario) buried(cause error) {
	s.t.Helper()
	last, _ := io.ReadAll(s.out)
	err := s.cmd.Wait()

	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL ||
		strings.TrimSpace(string(last)) != "dying at "+s.name {
		s.t.Fatalf(
			"the service process ended (%v) with %q, and not at %s: %v\n%s",
			err, last, s.name, cause, s.logs.String(),
		)
	}

	s.crashes++
	s.boot()

	// The successor takes the leases of the dead when it has seen their heartbeat stand still for their length.
	for range 4 {
		s.now = s.now.Add(30 * time.Second)
		s.request("POST", "/step", "")
	}
}

// request asks the process, and its successor when it dies meanwhile, as a client with an
// idempotency key does.
func (s *scenario) request(method, path, body string) []byte {
	s.t.Helper()

	for {
		req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}

		req.Header.Set(nowHeader, strconv.FormatInt(s.now.UnixMilli(), 10))
		req.Header.Set("Authorization", "Bearer "+s.key)

		if body != "" {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", "the-order")
		}

		resp, err := s.http.Do(req)
		if err != nil {
			s.buried(err)
			continue
		}

		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()

		if err != nil {
			s.buried(err)
			continue
		}

		if resp.StatusCode != http.StatusOK {
			s.t.Fatalf("%s %s answered %d: %s\n%s", method, path, resp.StatusCode, b, s.logs.String())
		}

		return b
	}
}

func (s *scenario) get(path string, v any) {
	s.t.Helper()

	if b := s.request("GET", path, ""); json.Unmarshal(b, v) != nil {
		s.t.Fatalf("GET %s answered %s", path, b)
	}
}

// work has everything done that can be done now.
func (s *scenario) work() {
	s.t.Helper()

	for range 100 {
		var did bool
		if b := s.request("POST", "/step", ""); json.Unmarshal(b, &did) != nil {
			s.t.Fatalf("a step answered %s", b)
		}

		if !did {
			return
		}
	}

	s.t.Fatalf("the service does not come to rest\n%s", s.logs.String())
}

// until works, and lets a block be made where there is something to go into it or on top of it, or
// else time pass.
func (s *scenario) until(what string, done func() bool) {
	s.t.Helper()

	for range 100 {
		s.work()

		if done() {
			return
		}

		if !s.mine() {
			s.now = s.now.Add(5 * time.Second)
		}
	}

	s.t.Fatalf("never came true: %s\n%s", what, s.logs.String())
}

// mine makes a block if transactions wait or the newest block has some.
func (s *scenario) mine() bool {
	s.t.Helper()

	var pool struct{ Pending hexutil.Uint64 }
	s.miner.ask(&pool, "txpool_status")

	var block struct{ Transactions []string }
	s.miner.ask(&block, "eth_getBlockByNumber", "latest", false)

	if pool.Pending == 0 && len(block.Transactions) == 0 {
		return false
	}

	s.miner.mine(1)
	s.now = s.now.Add(time.Second)

	return true
}

// play runs the scenario: an invoice is made, paid, settled and released.
func (s *scenario) play() {
	s.t.Helper()
	s.work()

	var inv invoiceView

	order := `{"price":{"currency":"USD","amount":"100"},"options":[{"asset":"ETH","network":"local"}]}`
	if b := s.request(
		"POST", "/v1/invoices", order,
	); json.Unmarshal(b, &inv) != nil ||
		len(inv.Options) != 1 {
		s.t.Fatalf("the new invoice is %s", b)
	}

	read := func() (v invoiceView) {
		s.get("/v1/invoices/"+inv.ID, &v)
		return v
	}

	s.work()
	tx := s.payer.signedNative(inv.Options[0].Address, amount(s.t, inv.Options[0].AmountDue))
	s.payer.send(tx)
	s.work()

	if v := read(); v.Status != "pending" {
		s.t.Fatalf("with the payment in the pool the invoice is %+v\n%s", v, s.logs.String())
	}

	s.until("the invoice is paid", func() bool { return read().Status == "paid" })
	s.until("its payment is released", func() bool {
		var page struct{ Data []paymentView }
		s.get("/v1/invoices/"+inv.ID+"/payments", &page)

		return len(page.Data) == 1 && page.Data[0].Settlement != nil &&
			page.Data[0].Settlement.Status == "released"
	})

	for s.mine() {
		s.work()
	}

	s.now = s.now.Add(time.Minute) // what was put off is done
	s.work()
}

// ending reads what the scenario left. The blocks after first are its own.
func (s *scenario) ending(first uint64) ending {
	s.t.Helper()

	invoices := s.list("/v1/invoices")
	if len(invoices) != 1 {
		s.t.Fatalf("%d invoices were made", len(invoices))
	}

	events := s.list("/v1/events?limit=100")
	slices.Reverse(events) // the oldest first

	for _, e := range events {
		delete(e, "request") // a client that asks again makes another one
	}

	var audit audit.Report
	s.get("/audit", &audit)

	if !audit.Clean() {
		s.t.Errorf("the audit is not clean: %+v", audit.Differences())
	}

	n := names{}

	out := ending{
		Invoice:  n.of(invoices[0]),
		Payments: n.all(s.list("/v1/invoices/" + invoices[0]["id"].(string) + "/payments")),
		Events:   n.all(events),
		Audit:    audit.Networks[0],
		Chain:    s.transactions(first),
	}
	for i, tx := range out.Chain {
		out.Chain[i].From, out.Chain[i].To = n.of(tx.From).(string), n.of(tx.To).(string)
	}

	out.Audit.At = chain.Ref{}
	for i, w := range out.Audit.Wallets {
		out.Audit.Wallets[i].Address = chain.Address(n.of(string(w.Address)).(string))
	}

	return out
}

func (s *scenario) list(path string) []map[string]any {
	s.t.Helper()

	var page struct{ Data []map[string]any }
	s.get(path, &page)

	return page.Data
}

// transactions lists everything that the blocks after first hold.
func (s *scenario) transactions(first uint64) (all []transferred) {
	s.t.Helper()

	for height := first + 1; height <= s.payer.tip(); height++ {
		var block struct {
			Transactions []struct {
				From, To string
				Nonce    hexutil.Uint64
				Value    *hexutil.Big
			}
		}
		s.miner.ask(&block, "eth_getBlockByNumber", hexutil.Uint64(height), true)

		for _, tx := range block.Transactions {
			all = append(all, transferred{tx.From, tx.To, uint64(tx.Nonce), tx.Value.ToInt().String()})
		}
	}

	return all
}

// names gives ids, hashes and addresses names by the order in which they appear, so that two
// scenarios can be compared. A process that dies may have reserved numbers and addresses that nobody
// gets.
type names map[string]string

var (
	named = regexp.MustCompile(`^(evt_)?[0-9a-f]{24}$|^0x[0-9a-fA-F]{40}$|^0x[0-9a-f]{64}$`)
	ofID  = regexp.MustCompile(`[0-9a-f]{24}$`) // at the end of a URL
	timed = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+Z$`)
)

func (n names) of(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if out[key] = n.of(v[key]); key == "number" || key == "invoice_number" {
				out[key] = "a number"
			}
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.of(v[i])
		}

		return out
	case string:
		switch {
		case timed.MatchString(v):
			return "a time"
		case named.MatchString(v):
			return n.name(strings.ToLower(v))
		}

		return ofID.ReplaceAllStringFunc(v, n.name)
	}

	return v
}

func (n names) all(list []map[string]any) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = n.of(list[i])
	}

	return out
}

func (n names) name(s string) string {
	if n[s] == "" {
		n[s] = fmt.Sprintf("name %d", len(n)+1)
	}

	return n[s]
}
