package sim

// history stores the value of each key after every block that changed it: balances and nonces. Any
// height can be read, and a fork truncates it. The zero value is empty.
type history[K comparable, V any] struct {
	values  map[K][]versioned[V] // ascending by height
	changed map[uint64][]K       // keys by the height that changed them
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

// set stores the value of a key after the newest block, that of the height.
func (h *history[K, V]) set(key K, height uint64, value V) {
	if h.values == nil {
		h.values, h.changed = map[K][]versioned[V]{}, map[uint64][]K{}
	}

	versions := h.values[key]
	if n := len(versions); n > 0 && versions[n-1].height == height {
		versions[n-1].value = value
		return
	}

	h.values[key] = append(versions, versioned[V]{height, value})
	h.changed[height] = append(h.changed[height], key)
}

// updateAll changes the value of a key at every height, genesis included.
func (h *history[K, V]) updateAll(key K, change func(V) V) {
	var zero V

	if versions := h.values[key]; len(versions) == 0 || versions[0].height != 0 {
		if h.values == nil {
			h.values, h.changed = map[K][]versioned[V]{}, map[uint64][]K{}
		}

		h.values[key] = append([]versioned[V]{{0, zero}}, versions...)
	}

	versions := h.values[key]
	for i := range versions {
		versions[i].value = change(versions[i].value)
	}
}

// revert undoes the changes of the newest block, that of the height.
func (h *history[K, V]) revert(height uint64) {
	for _, key := range h.changed[height] {
		versions := h.values[key]
		h.values[key] = versions[:len(versions)-1]
	}

	delete(h.changed, height)
}
