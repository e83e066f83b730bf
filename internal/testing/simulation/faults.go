package simulation

// fault is a row of docs/proof/pitfalls.md that a scenario shows.
type faultRow struct {
	// row is that of docs/proof/pitfalls.md; 0 for one that a seed found.
	row int
	// open is set while the library has the fault. Its scenario then has to break the rule.
	open bool
	// rule is the rule that the oracle reports on a library with the fault.
	rule string
	// kinds are the operations that lead to the fault. Random plans leave them out while it is open.
	kinds []Kind
	// everywhere is set where every plan leads to the fault. Random plans tolerate its rule while it is open.
	everywhere bool
}

// faultRows are the rows that scenarios show; see TestFaults.
var faultRows = []faultRow{
	{row: 35, open: false, rule: ruleConfirmed, kinds: []Kind{PayVariable}},
	{row: 36, open: false, rule: ruleConfirmed, kinds: []Kind{PayVariable}},
	{row: 37, open: false, rule: ruleRest, kinds: []Kind{PayVariable}},
	{row: 38, open: false, rule: ruleFailed, kinds: []Kind{DenyHashes}},
	{row: 39, open: false, rule: ruleFailed, kinds: []Kind{SilentReceipts}},
	{row: 40, open: false, rule: rulePublished, kinds: []Kind{PayHidden}},
	{row: 41, open: false, rule: ruleAudit, kinds: []Kind{PayHidden}},
	{row: 42, open: false, rule: ruleConfirmed, kinds: []Kind{PayBadToken}},
	{row: 43, open: false, rule: rulePublished},
	{row: 44, open: false, rule: ruleRest, kinds: []Kind{PayFailing}},
	{row: 45, open: false, rule: ruleSent, kinds: []Kind{RestoreBackup}},
	{row: 46, open: false, rule: ruleProgress, kinds: []Kind{StepClock}},
	{row: 47, open: false, rule: ruleProgress, kinds: []Kind{DeadNode}},
	{row: 48, open: false, rule: ruleFailed},
	{row: 49, open: false, rule: ruleFair},
	{row: 50, open: false, rule: ruleSpendable},
	{row: 51, open: false, rule: ruleProgress, kinds: []Kind{LagFar}},
	{row: 61, open: false, rule: ruleFrozen},
	{row: 0, open: false, rule: ruleReleased, everywhere: true},
	// A token that takes a fee, while the node does not answer for balances: the logs count.
	{row: 0, open: false, rule: ruleConfirmed, kinds: []Kind{PayBadToken}},
	// The node does not answer for balances for nine minutes: what could not be measured is asked for again at once.
	{row: 0, open: false, rule: ruleWaiting},
	{row: 63, open: false, rule: ruleValued, everywhere: true},
	{row: 63, open: false, rule: ruleObject, everywhere: true},
}

// held are the kinds that random plans leave out, because a fault that they lead to is open.
var held = heldKinds()

// tolerated are the rules that random plans do not report, for the same reason.
var tolerated = toleratedRules()

func toleratedRules() map[string]bool {
	rules := map[string]bool{}
	for _, row := range faultRows {
		rules[row.rule] = rules[row.rule] || row.open && row.everywhere
	}

	return rules
}

func heldKinds() map[Kind]bool {
	kinds := map[Kind]bool{}

	for _, row := range faultRows {
		for _, kind := range row.kinds {
			kinds[kind] = kinds[kind] || row.open
		}
	}

	return kinds
}
