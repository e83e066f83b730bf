package main

// scope is where a word is not to be used.
type scope int

const (
	anywhere    scope = iota // a word of an identifier or of a comment, in any case
	identifiers              // a word of an identifier, in any case
	names                    // a whole identifier, in this case
	functions                // the whole name of a function or method, in this case
	qualified                // package.Name of an exported declaration
	fileNames                // the name of a file
)

// forbidden is a group of words with what the field says instead.
type forbidden struct {
	words   []string
	instead string
	scope   scope
}

// glossary lists the words that we do not use. A word with a plain meaning beside the wrong one is
// forbidden only where it has the wrong one. `Release` with its several meanings is not here: a program
// cannot distinguish them.
var glossary = []forbidden{
	{[]string{"lift", "lifts", "lifted", "lifting", "lifter", "lifters"}, "CPFP bump", anywhere},
	{[]string{"desk", "desks"}, "wallet worker", anywhere},
	{[]string{"journey", "journeys"}, "release update", anywhere},
	{[]string{"narrow"}, "domain view", identifiers},
	{[]string{"box", "boxes"}, "sealer", identifiers},
	{[]string{"rounds"}, "balance sweep loop", identifiers},
	{[]string{"sink", "sinks"}, "block handler", anywhere},
	{[]string{"hush", "hushed"}, "stop", anywhere},
	{[]string{"tell", "tells", "told", "telling"}, "publish, notify, return, state", anywhere},
	{[]string{"hear", "hears", "heard"}, "is notified, receives", anywhere},
	{[]string{"again.go"}, "reread.go", fileNames},
	{[]string{"numbers.go"}, "sequence.go", fileNames},
	{[]string{"loan", "loans", "lender", "lend", "lends", "lent"}, "borrowed tx, revoke", anywhere},
	{[]string{"mortal"}, "crashtest", anywhere},
	{[]string{"world", "worlds"}, "harness", anywhere},
	{[]string{"story", "stories"}, "scenario", anywhere},
	{[]string{"room", "rooms"}, "package", anywhere},
	{[]string{"house", "houses"}, "engine, project", anywhere},
	{[]string{"fault.Word"}, "Kind", qualified},
	{[]string{"fault.In"}, "WithParam", qualified},
	{[]string{"sight", "sights", "sighting", "sightings", "sighted"}, "observed transfer", anywhere},
	{[]string{"movement", "movements"}, "transfer id", anywhere},
	{[]string{"doubt", "doubts", "doubted", "doubter"}, "suspect, node demoter", anywhere},
	{[]string{"RestsOn", "restsOn"}, "unconfirmed parents", names},
	{[]string{"flying"}, "in flight", anywhere},
	{[]string{"Carries", "carries", "Ride", "ride", "Rides", "rides"}, "batch members", names},
	{[]string{"book", "books", "booked"}, "UTXO index; record", anywhere},
	{[]string{"foremost"}, "lowest nonce", anywhere},
	{[]string{"died", "death", "deaths"}, "expired, terminal reason", anywhere},
	{[]string{"leaves", "took", "bearing"}, "residue delta, with residue owed", functions},
	{[]string{"Opening", "opening"}, "open params", names},
	{[]string{"gather", "place"}, "eligible, release key", functions},
	{[]string{"struggling"}, "backing off", anywhere},
	{[]string{"parked"}, "queued", anywhere},
	{[]string{"judge", "judges", "judged"}, "apply results", anywhere},
	{[]string{"again", "held", "rest", "left", "step"}, "a verb and its object", functions},
}
