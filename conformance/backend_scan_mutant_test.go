package conformance_test

import (
	"bytes"
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// scanMutants break what Scan visits.
var scanMutants = map[string]backendMutant{
	"to is in the range": {
		"Order",
		wrongScan(
			func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
				return r.Scan(from, append(bytes.Clone(to), 0), descending, visit)
			},
		),
	},
	"a descending scan begins at to": {
		"Order",
		wrongScan(
			func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
				if descending {
					to = append(bytes.Clone(to), 0)
				}

				return r.Scan(from, to, descending, visit)
			},
		),
	},
	"a descending scan leaves from out": {
		"Order",
		wrongScan(
			func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
				return r.Scan(from, to, descending, func(key, value []byte) bool {
					return descending && bytes.Equal(key, from) || visit(key, value)
				})
			},
		),
	},
	"a descending scan passes over a key": {
		"Order",
		wrongScan(
			func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
				passed := !descending

				return r.Scan(from, to, descending, func(key, value []byte) bool {
					if !passed {
						passed = true
						return true
					}

					return visit(key, value)
				})
			},
		),
	},
	"a descending scan does not stop": {
		"Order/Stop",
		wrongScan(
			func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
				return r.Scan(
					from,
					to,
					descending,
					func(key, value []byte) bool { return visit(key, value) || descending },
				)
			},
		),
	},
	"a scan ends after 1,000 keys": {
		"Order/Long",
		wrongScan(
			func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
				visited := 0

				return r.Scan(from, to, descending, func(key, value []byte) bool {
					visited++
					return visit(key, value) && visited < 1000
				})
			},
		),
	},
	"own puts are scanned last": {
		"Order/OwnWrites",
		wrongWrites(func(w kv.Writer) kv.Writer {
			return ownLast{writes{Writer: w, own: map[string][]byte{}}}
		}),
	},
	"own deletes are scanned": {
		"Order/OwnWrites",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) error {
				var gone [][]byte

				return m.Update(ctx, func(w kv.Writer) error {
					late := writes{
						Writer: w,
						own:    map[string][]byte{},
						delete: func(_ writes, key []byte) error {
							gone = append(gone, key)
							return nil
						},
					}

					err := f(late)
					for _, key := range gone {
						err = errors.Join(err, w.Delete(key))
					}

					return err
				})
			}
		}),
	},
}
