package sim

// What accounts hold and how often they sent, at every block.

// history keeps the value of each key after every block that changed it, so that the state at any height can
// be read and a fork is a truncation. The zero value is empty.
type history[K comparable, V any] struct {
	values  map[K][]versioned[V] // ascending by height
	touched map[uint64][]K
}

type versioned[V any] struct {
	height uint64
	value  V
}

// at returns the value after the block of a height.
func (h *history[K, V]) at(key K, height uint64) (value V) {
	versions := h.values[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].height <= height {
			return versions[i].value
		}
	}

	return value
}

// set stores the value after the block of a height, which is the newest.
func (h *history[K, V]) set(key K, height uint64, value V) {
	if h.values == nil {
		h.values, h.touched = map[K][]versioned[V]{}, map[uint64][]K{}
	}

	versions := h.values[key]
	if n := len(versions); n > 0 && versions[n-1].height == height {
		versions[n-1].value = value
		return
	}

	h.values[key] = append(versions, versioned[V]{height, value})
	h.touched[height] = append(h.touched[height], key)
}

// rewrite changes the value of a key at every height, genesis included.
func (h *history[K, V]) rewrite(key K, change func(V) V) {
	var zero V

	if versions := h.values[key]; len(versions) == 0 || versions[0].height != 0 {
		if h.values == nil {
			h.values, h.touched = map[K][]versioned[V]{}, map[uint64][]K{}
		}

		h.values[key] = append([]versioned[V]{{0, zero}}, versions...)
	}

	versions := h.values[key]
	for i := range versions {
		versions[i].value = change(versions[i].value)
	}
}

// forget takes back everything that the block of a height, the newest, has changed.
func (h *history[K, V]) forget(height uint64) {
	for _, key := range h.touched[height] {
		versions := h.values[key]
		h.values[key] = versions[:len(versions)-1]
	}

	delete(h.touched, height)
}
