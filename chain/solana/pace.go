package solana

import "time"

const (
	// callsPerRound is the number of calls of a reading besides those for accounts: four for the head, one for
	// the cursor's block, one for the end of the range.
	callsPerRound = 6

	// accountCalls is the number of calls for accounts in one reading, of maxAccountsPerCall each.
	accountCalls = 5

	// maxTries is the number of readings within which every address is read.
	maxTries = 10

	// blockRound is the time between two readings of blocks. Three calls of a reading are not for a block.
	blockRound = 5 * time.Second
)

// ReadingPace returns the part of the addresses that one reading asks for and the time between two readings, so
// that Config.CallsPerSecond is kept while nothing arrives.
func (d *driver) ReadingPace(addresses int) (perReading int, every time.Duration) {
	accounts := 1 + len(d.mints)

	perReading = max(accountCalls*maxAccountsPerCall/accounts, (addresses+maxTries-1)/maxTries)
	perReading = min(perReading, addresses)

	calls := callsPerRound + (perReading*accounts+maxAccountsPerCall-1)/maxAccountsPerCall
	calls = min(calls, callsPerRound+accountCalls)

	return perReading, time.Duration(calls) * time.Second / time.Duration(d.config.CallsPerSecond)
}

// ReadingPace returns the time between two readings of blocks, which are read whatever the addresses are.
func (d *blockDriver) ReadingPace(addresses int) (perReading int, every time.Duration) {
	return addresses, 2 * blockRound / time.Duration(d.config.CallsPerSecond)
}
