package httpapi

import (
	"context"
	"reflect"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/store"
)

// access says which keys an operation takes.
type access int

const (
	secretKey access = iota
	anyKey           // publishable keys too
	noKey
)

// idempotent says what a POST does with an Idempotency-Key.
type idempotent int

const (
	keyOptional idempotent = iota
	keyRequired
)

// operation is one entry of the API: one value from which routing, checking and the document are made.
type operation struct {
	// id is the operationId, method and path where it is served; the path's wildcards are ids.
	id, method, path string
	tag, summary     string
	// description says more in the document; may be empty.
	description string
	scope       account.Scope
	access      access
	// testOnly refuses live keys.
	testOnly    bool
	idempotency idempotent
	// bodyOptional lets the body be left out.
	bodyOptional bool
	// codes are the error codes that the operation may answer besides those that all share.
	codes []string

	// The rest is filled in by get, list and write.

	query, body, answer *shape
	paged               bool
	read                func(ctx context.Context, c *call) (any, error)
	prepare             func(ctx context.Context, c *call) (commit, error)
}

// commit does an operation's work inside a transaction and returns what to answer. It may run again.
type commit func(ctx context.Context, tx store.Tx) (any, error)

// none stands for a query or a body without fields.
type none struct{}

// get completes an operation that reads one thing.
func get[Q, R any](op operation, f func(ctx context.Context, c *call, q Q) (R, error)) operation {
	op.method = "GET"
	op.query, op.answer = shapeOf[Q]("query"), shapeOf[R]("json")
	op.read = func(ctx context.Context, c *call) (any, error) { return f(ctx, c, c.query.Interface().(Q)) }

	return op
}

// list completes an operation that reads a page.
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

// write completes an operation that changes something: f prepares (no effect) and returns what to commit.
func write[B, R any](
	op operation,
	f func(ctx context.Context, c *call, b B) (func(ctx context.Context, tx store.Tx) (R, error), error),
) operation {
	op.query, op.body, op.answer = shapeOf[none]("query"), shapeOf[B]("json"), shapeOf[R]("json")
	op.prepare = func(ctx context.Context, c *call) (commit, error) {
		inside, err := f(ctx, c, c.body.Interface().(B))
		if err != nil {
			return nil, err
		}

		return func(ctx context.Context, tx store.Tx) (any, error) { return inside(ctx, tx) }, nil
	}

	return op
}

// listing is the body of a page (specification 4.1).
type listing[R any] struct {
	Data       []R     `json:"data" nullable:"false"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// page is what a list operation found: the rows as they are answered, and where the next page begins.
type page[R any] struct {
	rows []R
	more bool
	last string
}

// pageOf renders records; key names a record's place in the list.
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
	for i, r := range records {
		p.rows[i] = render(r)
	}

	if p.more {
		p.last = key(records[len(records)-1])
	}

	return p, nil
}

// zero returns a new value of the shape's type.
func (s *shape) zero() reflect.Value { return reflect.New(s.typ).Elem() }
