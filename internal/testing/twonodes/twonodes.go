// Package twonodes shows what a driver with two nodes answers while one of them is in trouble: one table for every
// family, printed with -v.
//
// The package is for tests.
package twonodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The troubles that Transport makes; the others are made by a family's own fake node.
const (
	Dead   = "dead"
	Slow   = "answers after 20 s"
	Behind = "two blocks behind"
	Forked = "on another fork"
)

// Places are which of two nodes is in trouble.
var Places = []string{"the first", "the second"}

// Transport sends requests, but for those to a host that is dead or slow: the latter outlasts every timeout.
type Transport struct {
	Host    string // with its port
	Trouble string
}

// RoundTrip sends a request.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.Host {
		return http.DefaultTransport.RoundTrip(r)
	}

	switch t.Trouble {
	case Dead:
		return nil, errors.New("connection refused")
	case Slow:
		<-r.Context().Done()

		return nil, r.Context().Err()
	default:
		return http.DefaultTransport.RoundTrip(r)
	}
}

// Answers are what a driver of two nodes answers: the code of each error, empty where it answers.
type Answers struct {
	Head, Agreed, Fee, Build string
	// Lag is how many blocks the agreed tip is below the one that is read.
	Lag uint64
	// Named are the troubles of both nodes.
	Named [2]chain.NodeTrouble
}

// Of asks a driver. Without an order it asks nothing of fees.
func Of(ctx context.Context, driver chain.Driver, order chain.Order) (a Answers) {
	head, err := driver.Head(ctx)
	a.Head = fault.Code(err)

	nodes := driver.(chain.Agreed)

	agreed, err := nodes.AgreedHead(ctx)
	if a.Agreed = fault.Code(err); err == nil && agreed.Tip.Height < head.Tip.Height {
		a.Lag = head.Tip.Height - agreed.Tip.Height
	}

	for i, node := range nodes.Nodes() {
		a.Named[i] = node.Trouble
	}

	if len(order.Outputs) > 0 {
		order.MaxFee, err = driver.(chain.FeeEstimator).EstimateFee(ctx, order)
		a.Fee = fault.Code(err)

		_, err = driver.(chain.Sender).Build(ctx, order)
		a.Build = fault.Code(err)
	}

	return a
}

// Print prints a row of the table.
func (a Answers) Print(t testing.TB, family, trouble, place string) {
	t.Helper()

	named := strings.TrimSpace(fmt.Sprintf("%s %s", a.Named[0], a.Named[1]))

	t.Logf(
		"%-8s %-19s %-10s | reads: %-5s agrees: %-16s lag %d | fee: %-16s built: %-16s | named: %s",
		family, trouble, place, said(a.Head), said(a.Agreed), a.Lag, said(a.Fee), said(a.Build), named,
	)
}

// Named returns what a driver says of its nodes, "ok" of one without trouble: what Health shows.
func Named(driver chain.Driver) string {
	var named []string

	for _, node := range driver.(chain.Agreed).Nodes() {
		trouble := string(node.Trouble)
		if trouble == "" {
			trouble = "ok"
		}

		named = append(named, trouble)
	}

	return strings.Join(named, ", ")
}

func said(code string) string {
	if code == "" {
		return "yes"
	}

	return code
}

// Check holds what every family does: it reads; what two have to say alike is said, some blocks later, while one is
// only behind, and else waits; and the node is named. It prices and makes transactions, where its blocks bound what one
// node may say; proven is false where two have to.
func (a Answers) Check(t testing.TB, trouble, place string, proven bool) {
	t.Helper()

	if a.Head != "" {
		t.Errorf("%s is %s: reading is %q", place, trouble, a.Head)
	}

	missing := trouble == Dead || trouble == Slow
	if goesOn := proven || !missing; (a.Fee == "") != goesOn || (a.Build == "") != goesOn {
		t.Errorf("%s is %s: a fee is %q, a transaction %q", place, trouble, a.Fee, a.Build)
	}

	want := map[string]string{Dead: "nodes_missing", Slow: "nodes_missing", Forked: "nodes_disagree"}[trouble]
	if a.Agreed != want {
		t.Errorf("%s is %s: what is agreed on is %q, want %q", place, trouble, a.Agreed, want)
	}

	index := 0
	if place == Places[1] {
		index = 1
	}

	if trouble != Behind && a.Named[index] == "" {
		t.Errorf("%s is %s, and is not named: %v", place, trouble, a.Named)
	}
}
