package evm

import (
	"encoding/json"
	"errors"
	"testing"
)

// A simulation lowers an estimate by no more than estimates may be too high, and only where the transfer succeeded in
// it: what else a node says of it, or does not know, leaves the estimate.
func TestASimulationLowersAnEstimateWithinItsMargin(t *testing.T) {
	const estimate = 207_391

	answer := func(s string) *call { return &call{result: json.RawMessage(s)} }

	for name, c := range map[string]struct {
		used *call
		want uint64
	}{
		"what it used":                 {answer(`[{"calls":[{"status":"0x1","gasUsed":"0x31f38"}]}]`), 204_600},
		"the estimate":                 {answer(`[{"calls":[{"status":"0x1","gasUsed":"0x32a1f"}]}]`), estimate},
		"at the margin":                {answer(`[{"calls":[{"status":"0x1","gasUsed":"0x319ec"}]}]`), 203_244},
		"below the margin":             {answer(`[{"calls":[{"status":"0x1","gasUsed":"0x319eb"}]}]`), estimate},
		"far below":                    {answer(`[{"calls":[{"status":"0x1","gasUsed":"0x1"}]}]`), estimate},
		"above the estimate":           {answer(`[{"calls":[{"status":"0x1","gasUsed":"0x32a20"}]}]`), estimate},
		"it failed":                    {answer(`[{"calls":[{"status":"0x0","gasUsed":"0x31f38"}]}]`), estimate},
		"no call":                      {answer(`[{"calls":[]}]`), estimate},
		"null":                         {answer(`null`), estimate},
		"another form":                 {answer(`{"gasUsed":"0x31f38"}`), estimate},
		"a node without the method":    {&call{err: errors.New("method not found")}, estimate},
		"a transfer that is not exact": {nil, estimate},
	} {
		if got := (quoteCalls{used: c.used}).exactGas(estimate); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
