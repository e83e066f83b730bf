package thing

// A sink is forbidden here, sinkhole is not, and bookKeeper is two words. What is left may be left, and the rest held.
var (
	blockSink int
	sinking   int
)

func left(narrowView int) {
	// A local name and a plain narrow comment.
	took, HTTPDesk := 1, narrowView
	_, _ = took, HTTPDesk
}
