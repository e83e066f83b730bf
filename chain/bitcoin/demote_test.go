package bitcoin_test

import "testing"

// A node whose answers contradict another's is demoted: the next one is asked first from then on.
func TestADemotedNodeIsNotPreferred(t *testing.T) {
	first, second := newFake(t), newFake(t)
	for _, node := range []*fakeNode{first, second} {
		node.on("getrawmempool", func(params) any { return []string{} })
	}

	c := first.config()
	c.RPCs = []string{second.URL}
	d := newDriver(t, c)

	for _, want := range [][2]int{{1, 0}, {1, 1}, {2, 1}} {
		if _, err := d.Pool(t.Context()); err != nil {
			t.Fatal(err)
		}

		if got := [2]int{first.called("getrawmempool"), second.called("getrawmempool")}; got != want {
			t.Errorf("the nodes were asked %d times, want %d", got, want)
		}

		d.DemoteNode("it contradicts itself")
	}
}
