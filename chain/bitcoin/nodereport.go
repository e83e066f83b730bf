package bitcoin

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// NodeReports returns what was last seen of each node. It does no I/O.
func (d *driver) NodeReports() []chain.NodeReport {
	reports := make([]chain.NodeReport, len(d.nodes.Nodes))
	for i, node := range d.nodes.Nodes {
		reports[i] = node.seen.get()
		reports[i].Host = node.Host
	}

	return reports
}

// nodeSeen is what was last seen of a node. The zero value has seen nothing. It is safe for concurrent use.
type nodeSeen struct {
	mu     sync.Mutex
	report chain.NodeReport
}

func (s *nodeSeen) get() chain.NodeReport {
	s.mu.Lock()
	defer s.mu.Unlock()

	report := s.report
	report.Warnings = slices.Clone(report.Warnings)

	return report
}

// setProblem stores why the node is not believed; "" when it is. The time of the first problem in a row stays.
func (s *nodeSeen) setProblem(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case problem == "":
		s.report.Since = time.Time{}
	case s.report.Problem == "":
		s.report.Since = time.Now().UTC()
	}

	s.report.Problem = problem
}

func (s *nodeSeen) setVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.report.Version = version
}

func (s *nodeSeen) setWarnings(warnings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.report.Warnings = warnings
}

// nodeWarnings are the warnings in an answer of getblockchaininfo: a list, or one text before Bitcoin Core 28.
type nodeWarnings []string

// UnmarshalJSON ignores what is neither a list of texts nor a text: warnings decide nothing.
func (w *nodeWarnings) UnmarshalJSON(data []byte) error {
	var (
		list []string
		text string
	)

	*w = nil

	if json.Unmarshal(data, &list) == nil {
		*w = list
	} else if json.Unmarshal(data, &text) == nil && text != "" {
		*w = nodeWarnings{text}
	}

	return nil
}

// maxWarnings bounds the warnings of a node that are shown.
const maxWarnings = 5

// shown returns the warnings as people may see them: few, without secrets of the node's URL.
func (w nodeWarnings) shown(node *endpoint) (shown []string) {
	for _, warning := range w[:min(len(w), maxWarnings)] {
		if warning = strings.TrimSpace(node.Clean(warning)); warning != "" {
			shown = append(shown, warning)
		}
	}

	return shown
}
