package kv

import (
	"context"
	"time"
)

// pruneBatch is how many records prune reads in one scan.
const pruneBatch = 100

// prune deletes up to limit records of an index by time that are older than a time, oldest first. It keeps
// records for which kept is true (nil: none), and returns how many it deleted.
func prune[T any](
	ctx context.Context,
	tx *transaction,
	ix *index[T],
	before time.Time,
	limit int,
	kept func(*T) (bool, error),
) (pruned int, err error) {
	w := window[T]{to: since(before), limit: pruneBatch}

	for {
		old, err := list(ctx, &tx.reader, ix, nil, w)
		if err != nil {
			return 0, err
		}

		for i := range old {
			if limit > 0 && pruned == limit {
				return pruned, nil
			}

			if kept != nil {
				keep, err := kept(&old[i])
				if err != nil {
					return 0, err
				}

				if keep {
					continue
				}
			}

			if err := remove(ctx, tx, ix.of, ix.of.recordKey(&old[i])); err != nil {
				return 0, err
			}

			pruned++
		}

		if len(old) < pruneBatch {
			return pruned, nil
		}

		// The next batch begins above the last one's entries.
		last := &old[len(old)-1]
		w.from = after(ix.entry(ix.of.recordKey(last), last)[len(ix.prefix):])
	}
}
