package failover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type endpoint struct {
	failover.Node
	vetted  int
	reached uint64
	reach   error
	verify  error
}

// newSet returns nodes named a, b, c.
func newSet(keep bool) *failover.Set[*endpoint] {
	s := &failover.Set[*endpoint]{
		Network: "net",
		Log:     slog.New(slog.DiscardHandler),
		Keep:    keep,
		Verify:  func(_ context.Context, e *endpoint) error { e.vetted++; return e.verify },
		Reach:   func(_ context.Context, e *endpoint, need uint64) error { e.reached = need; return e.reach },
	}
	for _, host := range []string{"a", "b", "c"} {
		s.Nodes = append(s.Nodes, &endpoint{Node: failover.Node{Host: host}})
	}

	return s
}

// callOrder runs ask with a function that answers as scripted (nil without a script) and returns the
// hosts that were called, in order.
func callOrder(
	script map[string]error,
	ask func(func(context.Context, *endpoint) error) error,
) (order string, err error) {
	err = ask(func(_ context.Context, e *endpoint) error {
		order += e.Host
		return script[e.Host]
	})

	return order, err
}

// askOnce makes one attempt.
func askOnce(t *testing.T, s *failover.Set[*endpoint], script map[string]error) (string, error) {
	return callOrder(
		script,
		func(f func(context.Context, *endpoint) error) error { return s.Ask(t.Context(), 1, 0, f) },
	)
}

// down returns a script in which the named hosts are unreachable.
func down(s *failover.Set[*endpoint], hosts string) map[string]error {
	script := map[string]error{}

	for _, e := range s.Nodes {
		if strings.Contains(hosts, e.Host) {
			script[e.Host] = e.Fail(failover.Unreachable, "down")
		}
	}

	return script
}

// wantOrder compares the hosts that were called.
func wantOrder(t *testing.T, what, got, wanted string) {
	t.Helper()

	if got != wanted {
		t.Errorf("%s: asked %q, want %q", what, got, wanted)
	}
}

func TestTheFittestIsAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(false)
		ask := func(what, hosts, wanted string) {
			t.Helper()
			got, _ := askOnce(t, s, down(s, hosts))
			wantOrder(t, what, got, wanted)
		}
		ask("all are well", "", "a")
		ask("the first fails", "a", "ab")
		ask("the first backs off", "", "b")
		ask("the others fail", "bc", "bca")
		time.Sleep(time.Minute)
		ask("all back-offs are over", "", "a")

		s.DemoteNode("it contradicts itself")
		ask("the first is demoted", "", "b")
		time.Sleep(time.Minute)

		s.Seen.Store(7)
		s.Nodes[0].SawTip(6)
		ask("the first lags", "", "b")
		ask("the others fail, which is worse", "bc", "bca")
	})
}

// A node that contradicts another one may have it demoted. That one is asked for its word all the same.
func TestADemotedNodeIsStillComparedWith(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSet(keep)
			s.DemoteNode("another node has later blocks")

			first, err := askOnce(t, s, nil)
			if err != nil || first != "b" {
				t.Fatalf("keep %t: asked %q, %v", keep, first, err)
			}

			beside, err := callOrder(nil, func(f func(context.Context, *endpoint) error) error {
				compare := func(ctx context.Context, e *endpoint) (bool, error) { return false, f(ctx, e) }
				return s.AskBeside(t.Context(), s.Nodes[1], 0, compare)
			})
			if err != nil || !strings.Contains(beside, "a") || len(beside) != 2 {
				t.Errorf("keep %t: compared with %q, %v", keep, beside, err)
			}

			again, _ := askOnce(t, s, nil)
			wantOrder(t, "it answered, and is demoted still", again, "b")
		})
	}
}

func TestTheLastToAnswerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(true)
		for _, c := range []struct{ what, down, want string }{
			{"all are well", "", "a"},
			{"the first fails", "a", "ab"},
			{"the first is well again", "", "b"},
			{"two fail", "bc", "bca"},
			{"back at the first", "", "a"},
			{"all fail", "abc", "abc"},
		} {
			got, _ := askOnce(t, s, down(s, c.down))
			wantOrder(t, c.what, got, c.want)
			time.Sleep(time.Minute)
		}

		for _, want := range []string{"b", "c", "a"} {
			s.DemoteNode("it contradicts itself")

			got, _ := askOnce(t, s, nil)
			wantOrder(t, "the one before is demoted", got, want)
		}

		refused := fault.New(fault.Invalid, "no", "no")

		script := map[string]error{"a": s.Nodes[0].Fail("", "down"), "b": refused}
		if got, err := askOnce(t, s, script); got != "ab" || !errors.Is(err, refused) {
			t.Errorf("asked %q: %v", got, err)
		}

		got, _ := askOnce(t, s, nil)
		wantOrder(t, "after a refusal, which is an answer", got, "b")
	})
}

func TestOthersTakeTurns(t *testing.T) {
	s := newSet(false)

	var firsts []string

	for range 4 {
		got, err := callOrder(
			nil,
			func(f func(context.Context, *endpoint) error) error { return s.AskOthers(t.Context(), 0, f) },
		)
		if err != nil {
			t.Fatal(err)
		}

		firsts = append(firsts, got)
	}

	slices.Sort(firsts)
	wantOrder(t, "second opinions", strings.Join(firsts, ""), "bbcc")

	got, _ := callOrder(
		down(s, "bc"),
		func(f func(context.Context, *endpoint) error) error { return s.AskOthers(t.Context(), 0, f) },
	)
	if len(got) != 3 || got[2] != 'a' {
		t.Errorf("asked %q: the preferred node is the last resort", got)
	}
}

func TestNodesAreVettedOnceAndAskedForNothingAboveTheirTip(t *testing.T) {
	s := newSet(false)
	s.Nodes[0].verify = &failover.Mismatch{Host: "a", Shows: "serves 5", Want: "1"}
	s.Nodes[1].reach = fmt.Errorf("node b: %w", failover.ErrLagging)
	s.Nodes[2].SawTip(9)

	for range 2 {
		got, err := callOrder(
			nil,
			func(f func(context.Context, *endpoint) error) error { return s.Ask(t.Context(), 1, 9, f) },
		)
		if err != nil {
			t.Fatal(err)
		}

		wantOrder(t, "a is foreign and b is behind", got, "c")
	}

	a, b, c := s.Nodes[0], s.Nodes[1], s.Nodes[2]
	if a.vetted != 2 || b.vetted != 1 || c.vetted != 1 || a.reached != 0 || b.reached != 9 || c.reached != 0 {
		t.Errorf(
			"vetted %d, %d, %d times; asked to reach %d, %d, %d",
			a.vetted, b.vetted, c.vetted, a.reached, b.reached, c.reached,
		)
	}
}

func TestVerdicts(t *testing.T) {
	failure := func(after time.Duration) error {
		return &failover.Failure{Host: "n", Kind: "kind", What: "what", Code: "node_odd", RetryAfter: after}
	}

	foreign := &failover.Mismatch{Host: "n", Shows: "serves 5", Want: "1"}
	foreignText := "node n of network net serves 5, not 1"
	moved := fault.New(fault.Unavailable, "moved", "it moved")
	noState := fault.Wrap(failover.ErrNoState, fault.Unavailable, "too_old", "it is too old")

	for _, c := range []struct {
		name     string
		a, b     error
		word     error
		code     string
		attempts int // of 3
		holds    string
	}{
		{"foreign nodes", foreign, foreign, fault.Stopped, "chain_id_mismatch", 1, foreignText},
		{"one lags", foreign, failover.ErrLagging, fault.Unavailable, "node_behind", 1, ""},
		{"all have pruned", failover.ErrPruned, failover.ErrPruned, fault.Stopped, "node_pruned", 3, ""},
		{"one has pruned", failover.ErrPruned, failover.ErrLagging, fault.Unavailable, "node_behind", 1, ""},
		{"one does not know", failover.ErrPruned, failover.ErrMissing, fault.NotFound, "transaction_unknown", 1, ""},
		{"no state", failover.ErrMissing, noState, fault.Unavailable, "too_old", 1, ""},
		{"one has no state", noState, failure(0), fault.Unavailable, "node_odd", 3, "node n: what (kind)"},
		{"one fails", failure(0), failover.ErrMissing, fault.Unavailable, "node_odd", 3, "node n: what (kind)"},
		{"one is unavailable", failover.ErrPruned, moved, fault.Unavailable, "moved", 3, "it moved"},
		{"something else", errors.New("boo"), foreign, fault.Unavailable, "node_unavailable", 3, "boo"},
		{"an answer", failure(0), fault.New(fault.NotFound, "unknown", "no"), fault.NotFound, "unknown", 1, ""},
	} {
		for name, order := range map[string][]error{c.name: {c.a, c.b}, c.name + ", the other way round": {c.b, c.a}} {
			synctest.Test(t, func(t *testing.T) {
				s := newSet(true)
				s.Nodes = s.Nodes[:2]
				calls := 0

				err := s.Ask(t.Context(), 3, 0, func(_ context.Context, e *endpoint) error {
					calls++
					return order[slices.Index(s.Nodes, e)]
				})
				if !errors.Is(err, c.word) || fault.Code(err) != c.code ||
					!strings.Contains(err.Error(), c.holds) {
					t.Errorf("%s: %v (%s)", name, err, fault.Code(err))
				}

				if attempts := (calls + 1) / 2; attempts != c.attempts {
					t.Errorf("%s: %d attempts, want %d", name, attempts, c.attempts)
				}
			})
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, want := range []time.Duration{3 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newSet(false)
			s.Nodes = s.Nodes[:1]
			e := s.Nodes[0]
			start, calls := time.Now(), 0

			err := s.Ask(t.Context(), 2, 0, func(context.Context, *endpoint) error {
				if calls++; calls == 1 {
					e.Refused(want)
					return e.Fail(failover.Throttled, "no")
				}

				return nil
			})
			if want > 10*time.Second { // too long to wait for: the caller gets it
				if fault.RetryAfter(err) != want || calls != 1 {
					t.Errorf("%v after %d calls, retry after %v", err, calls, fault.RetryAfter(err))
				}

				if _, err := askOnce(t, s, nil); fault.RetryAfter(err) != want {
					t.Errorf("asked again: %v", err)
				}
			} else if waited := time.Since(start); err != nil || waited < want || waited > want+time.Second {
				t.Errorf("%v after %v", err, waited)
			}
		})
	}
	// One throttled node does not end the attempts on another.
	synctest.Test(t, func(t *testing.T) {
		s := newSet(true)
		s.Nodes = s.Nodes[:2]
		s.Nodes[0].Refused(time.Minute)

		calls := 0

		err := s.Ask(t.Context(), 2, 0, func(_ context.Context, e *endpoint) error {
			if calls++; calls == 1 {
				return e.Fail(failover.Unreachable, "down")
			}

			return nil
		})
		if err != nil || calls != 2 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

func TestTheCallersContextEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(false)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()

		err := s.Ask(
			ctx, 99, 0,
			func(_ context.Context, e *endpoint) error { return e.Fail(failover.Garbled, "x") },
		)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fault.Unavailable) {
			t.Errorf("during a pause: %v", err)
		}

		got, err := askOnce(t, s, nil)
		if got != "a" || err != nil {
			t.Fatal(got, err)
		}

		got, err = callOrder(
			down(s, "abc"),
			func(f func(context.Context, *endpoint) error) error { return s.Ask(ctx, 9, 0, f) },
		)
		if len(got) != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its end, %q were asked: %v", got, err)
		}
	})
}

func TestSecretsStayInside(t *testing.T) {
	u, err := url.Parse(
		"https://longuser:pa%2Fss%20word@host/v3/abcdef1234567890/rpc?api-key=zyxwvut9876&n=1",
	)
	if err != nil {
		t.Fatal(err)
	}

	n := failover.Node{Host: u.Host, Secrets: failover.SecretsOf(u, "header-key")}
	for words, want := range map[string]string{
		"v3 rpc at host":                            "v3 rpc at host",
		"GET /v3/abcdef1234567890":                  "GET /v3/…",
		"longuser:pa/ss word longuser pa%2Fss+word": "…:… … …",
		"pa%2Fss%20word&api-key=zyxwvut9876":        "…&api-key=…",
		"header-key\n\tbad":                         "… bad",
		"bad \xff\xfe text":                         "bad  text",
		strings.Repeat("x", 300):                    strings.Repeat("x", 200) + "…",
	} {
		if got := n.Clean(words); got != want {
			t.Errorf("%q became %q, want %q", words, got, want)
		}
	}

	if got := n.Clean(strings.Repeat("é…", 200)); !utf8.ValidString(got) || len(got) > 210 {
		t.Errorf("%d bytes: %q", len(got), got)
	}

	lost := &url.Error{Op: "Post", URL: u.String(), Err: errors.New("refused by abcdef1234567890")}
	if got := n.Describe(lost, time.Second); got != "refused by …" {
		t.Errorf("%q", got)
	}

	lost.Err = context.DeadlineExceeded
	if got := n.Describe(lost, time.Second); got != "no answer within 1s" {
		t.Errorf("%q", got)
	}
}

func TestClientFollowsNoRedirects(t *testing.T) {
	ours := &http.Client{Timeout: time.Second}
	for name, c := range map[string]*http.Client{
		"by default":      failover.Client(nil),
		"of the caller's": failover.Client(ours),
	} {
		if c.CheckRedirect == nil || !errors.Is(c.CheckRedirect(nil, nil), http.ErrUseLastResponse) ||
			name == "of the caller's" && c.Timeout != time.Second {
			t.Errorf("%s: %+v", name, c)
		}
	}

	if ours.CheckRedirect != nil {
		t.Error("the caller's own client was changed")
	}

	if failover.Positive(-1, 3) != 3 || failover.Positive(0, 3) != 3 || failover.Positive(2, 3) != 2 {
		t.Error("Positive")
	}
}
