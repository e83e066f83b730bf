package checkout

// The tests over the real engine read the JSON of the page and its stream.
type (
	State  = pageState
	Choice = choice
)
