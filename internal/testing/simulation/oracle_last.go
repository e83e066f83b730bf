package simulation

import (
	"encoding/json"
	"strings"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
)

const ruleLast = "the last event of a settlement that ended shows it as it is"

// checkLast compares the settlements of a commit that have ended with what the last event about each shows: a merchant
// who reads events only knows all that he could read.
func (o *oracle) checkLast(c *commit) {
	for _, e := range c.events {
		if strings.HasPrefix(string(e.Type), "settlement.") {
			o.records.lastShown[e.ObjectID] = o.shownBy(e)
		}
	}

	for id, s := range c.settlements {
		if s.Status != settlement.Released && s.Status != settlement.Failed {
			continue
		}

		now, err := json.Marshal(s.Resource())
		if err != nil {
			o.violate(ruleLast, "settlement %s cannot be shown: %v", id, err)
			continue
		}

		if last := o.records.lastShown[id]; last != string(now) {
			o.violate(ruleLast, "settlement %s is %s, and its last event shows %s", id, now, last)
		}
	}
}

// shownBy returns the object of an event, as JSON.
func (o *oracle) shownBy(e event.Event) string {
	var envelope struct {
		Data struct {
			Object json.RawMessage `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(e.Envelope, &envelope); err != nil {
		o.violate(ruleLast, "the envelope of %s cannot be read: %v", e.ID, err)
	}

	return string(envelope.Data.Object)
}
