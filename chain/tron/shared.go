package tron

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/fault"
)

// No block proves what a node says of prices, energy, resources and accounts. Where several nodes are configured, what
// a transaction may cost and who pays for it is what two of them make of it.

// word is what one node answers: a value, or the fault that refuses it.
type word[V any] struct {
	node    *endpoint
	value   V
	refusal error
}

// askTwo asks nodes one after the other until two of them answer alike, and returns that: values of which alike says
// so, with what they have in common, or refusals with one code. The only node that is configured answers alone. words
// are the answers where several are not alike. Errors:
//   - those of failover.Set.Ask, and the refusal of two nodes
//   - fault.Unavailable (nodes_disagree): no two answers are alike
//   - fault.Unavailable (node_unavailable): several nodes are configured, and one alone answers
func askTwo[V any](
	ctx context.Context,
	d *driver,
	subject string,
	read func(ctx context.Context, node *endpoint) (V, error),
	alike func(ctx context.Context, a, b word[V]) (V, bool),
) (value V, words []word[V], err error) {
	readWord := func(ctx context.Context, node *endpoint) (said word[V], err error) {
		said.node = node
		said.value, err = read(ctx, node)

		if _, refused := errors.AsType[*fault.Error](err); refused {
			said.refusal, err = err, nil
		}

		return said, err
	}

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		said, err := readWord(ctx, node)
		words = []word[V]{said}

		return err
	})
	if err != nil {
		return value, nil, err
	}

	if !d.hasSeveral() {
		return words[0].value, nil, words[0].refusal
	}

	var agreed *word[V]

	err = d.nodes.AskAllBeside(
		ctx,
		words[0].node,
		0,
		func(ctx context.Context, node *endpoint) (bool, error) {
			said, err := readWord(ctx, node)
			if err != nil {
				return false, err
			}

			agreed = firstAlike(ctx, words, said, alike)
			words = append(words, said)

			return agreed != nil, nil
		},
	)

	switch {
	case err != nil:
		return value, nil, err
	case agreed != nil:
		return agreed.value, nil, agreed.refusal
	case len(words) == 1:
		return value, nil, d.notShared(ctx, subject, 1)
	}

	return value, words, d.notShared(ctx, subject, len(words))
}

// firstAlike returns what a word and the first one that is like it say; nil where none is.
func firstAlike[V any](
	ctx context.Context,
	words []word[V],
	said word[V],
	alike func(ctx context.Context, a, b word[V]) (V, bool),
) *word[V] {
	for _, earlier := range words {
		if earlier.refusal != nil || said.refusal != nil {
			if earlier.refusal != nil && said.refusal != nil &&
				fault.Code(earlier.refusal) == fault.Code(said.refusal) {
				return &said
			}

			continue
		}

		if value, ok := alike(ctx, earlier, said); ok {
			return &word[V]{node: said.node, value: value}
		}
	}

	return nil
}

// notShared returns and logs the error of something that no two nodes say alike, of as many as answered.
func (d *driver) notShared(ctx context.Context, subject string, answered int) error {
	if answered == 1 {
		return fault.New(
			fault.Unavailable, "node_unavailable", "network %s has no second node that says the same of %s",
			d.network.Slug, subject,
		)
	}

	d.nodes.Log.WarnContext(ctx, "nodes disagree", "network", d.network.Slug, "about", subject)

	return fault.New(
		fault.Unavailable, "nodes_disagree", "the nodes of network %s say different things of %s",
		d.network.Slug, subject,
	)
}
