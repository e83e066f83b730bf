package httpapi

import (
	"context"
	"reflect"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
)

// access is the set of keys that an operation accepts.
type access int

const (
	secretKey access = iota
	anyKey           // publishable keys too
	noKey
)

// idempotent is whether a POST requires an Idempotency-Key.
type idempotent int

const (
	keyOptional idempotent = iota
	keyRequired
)

// operation is one entry of the API. Routing, input checks and the OpenAPI document are made from it.
type operation struct {
	// id is the document's operationId. The path's wildcards are ids.
	id, method, path string // spec 9.1
	tag, summary     string
	// description is the document's longer text; may be empty.
	description string
	scope       account.Scope
	access      access
	// testOnly refuses live keys.
	testOnly    bool
	idempotency idempotent
	// claimFirst claims an Idempotency-Key before it is looked up; see requestkey.Request.
	claimFirst bool
	// bodyOptional lets the body be left out.
	bodyOptional bool
	// sends is set when it sends money: only keys that may pay the same destinations may read its stored
	// answer.
	sends bool
	// codes are the operation's own error codes, each as "status code", such as "409 invoice_not_open".
	codes []string

	// The remaining fields are set by get, list and write.

	query, body, answer *shape
	paged               bool
	read                func(ctx context.Context, c *call) (any, error)
	prepare             func(ctx context.Context, c *call) (commit[any], error)
}

// commit does the work of an operation inside a transaction and returns the answer. It may run twice.
type commit[R any] func(ctx context.Context, tx payments.Tx) (R, error)

// none is a query or a body without fields.
type none struct{}

// get completes an operation with the function that reads one object.
func get[Q, R any](op operation, f func(ctx context.Context, c *call, q Q) (R, error)) operation {
	op.method = "GET"
	op.query, op.answer = shapeOf[Q]("query"), shapeOf[R]("json")
	op.read = func(ctx context.Context, c *call) (any, error) { return f(ctx, c, c.query.Interface().(Q)) }

	return op
}

// list completes an operation with the function that reads a page.
func list[Q, R any](op operation, f func(ctx context.Context, c *call, q Q) (page[R], error)) operation {
	op.method, op.paged = "GET", true
	op.query, op.answer = shapeOf[Q]("query"), shapeOf[listing[R]]("json")
	op.read = func(ctx context.Context, c *call) (any, error) {
		p, err := f(ctx, c, c.query.Interface().(Q))
		if err != nil {
			return nil, err
		}

		out := listing[R]{Data: p.rows, HasMore: p.more}
		if out.Data == nil {
			out.Data = []R{}
		}

		if p.more {
			next := c.cursor(p.last)
			out.NextCursor = &next
		}

		return out, nil
	}

	return op
}

// write completes an operation with f, which prepares a change without effects and returns its commit.
func write[B, R any](
	op operation,
	f func(ctx context.Context, c *call, b B) (commit[R], error),
) operation {
	op.query, op.body, op.answer = shapeOf[none]("query"), shapeOf[B]("json"), shapeOf[R]("json")
	op.prepare = func(ctx context.Context, c *call) (commit[any], error) {
		commitBody, err := f(ctx, c, c.body.Interface().(B))
		if err != nil {
			return nil, err
		}

		return func(ctx context.Context, tx payments.Tx) (any, error) { return commitBody(ctx, tx) }, nil
	}

	return op
}

// listing is the body of a page (specification 4.1).
type listing[R any] struct { // spec 4.1.5
	Data       []R     `json:"data" nullable:"false"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// page is the answer of a list operation: its rows, and the key of the last one when there are more.
type page[R any] struct {
	rows []R
	more bool
	last string
}

// pageOf returns the page of records, rendered. key returns a record's sort key, which the cursor holds.
func pageOf[T, R any](
	records []T,
	more bool,
	err error,
	render func(T) R,
	key func(T) string,
) (page[R], error) {
	if err != nil {
		return page[R]{}, err
	}

	p := page[R]{rows: make([]R, len(records)), more: more && len(records) > 0}
	for i, record := range records {
		p.rows[i] = render(record)
	}

	if p.more {
		p.last = key(records[len(records)-1])
	}

	return p, nil
}

// zero returns a new value of the shape's type.
func (s *shape) zero() reflect.Value { return reflect.New(s.typ).Elem() }
