package main

// view is one side of the node: what is solidified, or everything with the pool.
type view struct {
	n     *node
	solid bool
}

func (v view) newest() *block {
	if v.solid {
		return v.n.solid()
	}

	return v.n.head()
}

func (v view) workspace() (*workspace, error) {
	if !v.solid {
		return v.n.pending, nil
	}

	return v.n.store.open(v.n.solid().state)
}

func (v view) at(height int64) *block {
	if b := v.n.at(height); b != nil && b.height <= v.newest().height {
		return b
	}

	return nil
}

type handler func(n *node, v view, body []byte) (any, error)
