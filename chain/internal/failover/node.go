package failover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Node is what is remembered of a node between calls, for a driver's endpoint to embed. Without a
// history it is fit for anything. It is safe for concurrent use.
type Node struct {
	Host    string // all of its URL that may be shown
	Secrets        // the parts of it that may not

	mu          sync.Mutex
	verified    bool
	tip         uint64
	rest        *backoff.ExponentialBackOff
	restUntil   time.Time
	barredUntil time.Time
}

// State returns the node of what embeds it.
func (n *Node) State() *Node { return n }

// Fail returns a failure of the node.
func (n *Node) Fail(kind Kind, format string, args ...any) *Failure {
	return &Failure{Host: n.Host, Kind: kind, What: fmt.Sprintf(format, args...)}
}

// Garbled is an answer that cannot be right.
func (n *Node) Garbled(format string, args ...any) error { return n.Fail(Garbled, format, args...) }

// Why says what an error of the transport is, without the URL that it may hold.
func (n *Node) Why(err error, timeout time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", timeout)
	}

	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}

	return n.Clean(err.Error())
}

// SawTip keeps the newest height that the node showed.
func (n *Node) SawTip(height uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.tip = height
}

// KnownTip is the newest height that the node showed; 0 before the first.
func (n *Node) KnownTip() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.tip
}

// HearRetryAfter reads how long an answer asks to leave the node alone, an hour at most, for Barred.
func (n *Node) HearRetryAfter(answer *http.Response) {
	s, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || s <= 0 {
		return
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	n.barredUntil = time.Now().Add(time.Duration(min(s, 3600)) * time.Second)
}

// Barred is a failure while the node wants to be left alone, else nil.
func (n *Node) Barred() *Failure {
	wait := n.barred()
	if wait == 0 {
		return nil
	}

	f := n.Fail(Throttled, "it asked to be left alone for a while")
	f.RetryAfter = wait

	return f
}

func (n *Node) barred() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	return max(0, time.Until(n.barredUntil))
}

// failed has other nodes preferred for a while that grows with every failure in a row.
func (n *Node) failed() {
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.rest == nil {
		n.rest = backoff.NewExponentialBackOff()
	}

	n.restUntil = time.Now().Add(n.rest.NextBackOff())
}

// worked ends that.
func (n *Node) worked() {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.rest, n.restUntil = nil, time.Time{}
}

// unfit counts what speaks against asking the node for a height.
func (n *Node) unfit(need uint64) (penalty int) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if time.Now().Before(n.restUntil) {
		penalty += 2
	}

	if n.tip != 0 && n.tip < need {
		penalty++
	}

	return penalty
}

// Secrets are what must never appear in a message about a node.
type Secrets []string

// SecretsOf lists what of a URL is secret, and other words: providers put keys into user info, path
// and query. Words shorter than 8 bytes are names such as "v3" or "rpc".
func SecretsOf(u *url.URL, others ...string) (s Secrets) {
	parts := append(strings.Split(u.Path, "/"), others...)
	if u.User != nil {
		password, _ := u.User.Password()
		parts = append(parts, u.User.Username(), password)
	}

	for _, values := range u.Query() {
		parts = append(parts, values...)
	}

	for _, p := range parts {
		if len(p) >= 8 {
			s = append(s, p, url.PathEscape(p), url.QueryEscape(p))
		}
	}

	return s
}

// Clean makes a node's words fit for an error: short, on one line, valid text, without the secrets.
func (s Secrets) Clean(words string) string {
	for _, secret := range s {
		words = strings.ReplaceAll(words, secret, "…")
	}

	words = strings.ToValidUTF8(strings.Join(strings.Fields(words), " "), "")
	if len(words) > 200 {
		words = strings.ToValidUTF8(words[:200], "") + "…"
	}

	return words
}
