package ledger

import (
	"fmt"
	"testing"
)

// What one more fact costs at a place whose deposits were released one by one, and where they all wait; in the last,
// the others are behind a checkpoint.
func BenchmarkFold(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		var waiting, released []fact

		for i := range n {
			id := fmt.Sprintf("deposit%06d", i)
			waiting = append(waiting, coin(id, 100))
			released = append(released, coin(id, 100))
			released = append(released, swept(fmt.Sprint("plan", i), id, 10, 1, 87, 2)...)
		}

		if n > 1000 {
			released = nil // the history is built by scanning; what it costs is linear
		}

		for name, facts := range map[string][]fact{"waiting": waiting, "released": released} {
			if facts == nil {
				continue
			}

			f := factsOf(facts)

			b.Run(fmt.Sprintf("%d %s", n, name), func(b *testing.B) {
				for b.Loop() {
					Fold(f)
				}
			})
		}
	}

	f := factsOf([]fact{coin("a", 100)})
	f.Since = Fold(factsOf(swept("r", "b", 10, 1, 87, 2))).Checkpoint()

	b.Run("1 after a checkpoint", func(b *testing.B) {
		for b.Loop() {
			Fold(f)
		}
	})
}
