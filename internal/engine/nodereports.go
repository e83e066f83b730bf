package engine

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/health"
)

// nodeReports returns what a driver last saw of its nodes; nil where it does not tell.
func nodeReports(driver chain.Driver) []health.NodeReport {
	reporter, ok := driver.(chain.NodeReporter)
	if !ok {
		return nil
	}

	seen := reporter.NodeReports()

	reports := make([]health.NodeReport, len(seen))
	for i, node := range seen {
		reports[i] = health.NodeReport(node)
	}

	return reports
}
