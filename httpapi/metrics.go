package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/health"
)

// MetricsHandler serves GET /metrics: the figures of Engine.Health in Prometheus's text format 0.0.4. They
// name accounts and processes and are not authenticated: mount it where only the host's monitoring can reach
// it.
func MetricsHandler(e *payments.Engine) http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		report, err := e.Health(r.Context())
		if err != nil {
			http.Error(w, "the request ended", http.StatusServiceUnavailable)
			return
		}

		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")

		_, _ = w.Write(metricsOf(report)) // an error: the client is gone
	})

	return mux
}

// metrics writes gauges.
type metrics struct{ bytes.Buffer }

// gauge writes a gauge's heading.
func (m *metrics) gauge(name, help string) {
	fmt.Fprintf(m, "# HELP payments_%s %s\n# TYPE payments_%s gauge\n", name, help, name)
}

// value writes one value under pairs of label names and values.
func (m *metrics) value(name string, value float64, labels ...string) {
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+labelEscapes.Replace(labels[i+1])+`"`)
	}

	braces := ""
	if len(pairs) > 0 {
		braces = "{" + strings.Join(pairs, ",") + "}"
	}

	fmt.Fprintf(m, "payments_%s%s %s\n", name, braces, strconv.FormatFloat(value, 'g', -1, 64))
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// metricsOf returns a report as metrics.
func metricsOf(report health.Report) []byte {
	m := &metrics{}

	m.gauge("ok", "1 while Report.OK.")
	m.value("ok", oneIf(report.OK()))
	m.gauge("ready", "1 while Report.Ready.")
	m.value("ready", oneIf(report.Ready()))
	m.gauge("prices_ready", "1 while Report.PricesReady.")
	m.value("prices_ready", oneIf(report.PricesReady()))
	m.gauge("clock_skew_seconds", "How far the clock is ahead of the store's.")
	m.value("clock_skew_seconds", report.ClockSkew.Seconds())
	m.gauge(
		"needs_person",
		"How many wallets wait for a person or do not send, settlements have failed, and networks are stopped; "+
			"failed payouts are in payments_attention.",
	)
	m.value("needs_person", float64(needPerson(report)))

	m.attention(report)

	m.gauge("check_failing", "1 while a kind of work fails.")

	for _, c := range report.Checks {
		m.value("check_failing", oneIf(c.Error != ""), "check", c.Name)
	}

	m.gauge("check_age_seconds", "How long ago a kind of work last succeeded.")

	for _, c := range report.Checks {
		m.value("check_age_seconds", c.Age.Seconds(), "check", c.Name)
	}

	m.networks(report)
	m.nodes(report)

	m.gauge("process_still_seconds", "How long another process's heartbeat has stood still.")

	for _, p := range report.Processes {
		m.value("process_still_seconds", p.Still.Seconds(), "process", p.Name)
	}

	m.gauge("process_failing", "How many kinds of work fail in another process.")

	for _, p := range report.Processes {
		m.value("process_failing", float64(len(p.Failing)), "process", p.Name)
	}

	m.backlogs(report)

	return m.Bytes()
}

// needPerson returns how many wallets, settlements and networks need a person.
func needPerson(report health.Report) int {
	sum := len(report.Wallets)

	for _, a := range report.Attention {
		if a.NeedsPerson() {
			sum += a.Count
		}
	}

	for _, n := range report.Networks {
		if n.NeedsPerson() {
			sum++
		}
	}

	return sum
}

// attention writes the settlements and payouts that wait or failed.
func (m *metrics) attention(report health.Report) {
	labels := func(a health.Attention) []string {
		return []string{"object", a.Object, "network", a.Network, "status", a.Status, "reason", a.Reason}
	}

	m.gauge("attention", "How many settlements and payouts are held, wait or failed; see Report.Attention.")

	for _, a := range report.Attention {
		m.value("attention", float64(a.Count), labels(a)...)
	}

	m.gauge(
		"attention_oldest_timestamp_seconds",
		"Since when the oldest of them has waited, or when it failed.",
	)

	for _, a := range report.Attention {
		m.value("attention_oldest_timestamp_seconds", float64(a.Since.Unix()), labels(a)...)
	}
}

// networks writes how far each network is read.
func (m *metrics) networks(report health.Report) {
	for _, figure := range []struct {
		name, help string
		of         func(n health.Network) float64
	}{
		{
			"behind_blocks",
			"How many blocks are not read yet.",
			func(n health.Network) float64 { return float64(n.Behind) },
		},
		{
			"stopped",
			"1 while the network waits for Engine.Resume.",
			func(n health.Network) float64 { return oneIf(n.Stopped != "") },
		},
		{
			"stale",
			"1 while the newest block of a live network is old.",
			func(n health.Network) float64 { return oneIf(n.Stale) },
		},
		{
			"failing",
			"1 while this process cannot read the network.",
			func(n health.Network) float64 { return oneIf(n.Follower.LastError != "") },
		},
		{
			"unagreed",
			"1 while no two nodes agree, so that payments wait that need two.",
			func(n health.Network) float64 { return oneIf(n.Unagreed != "") },
		},
		{
			"unread",
			"Transfers, histories and blocks that could not be read yet, up to some hundreds.",
			func(n health.Network) float64 { return float64(len(n.Follower.Unread)) },
		},
		{
			"waiting_payments",
			"Payments that wait for two nodes to agree.",
			func(n health.Network) float64 { return float64(n.WaitingPayments) },
		},
		{
			"waiting_transactions",
			"Transactions that wait for two nodes to agree.",
			func(n health.Network) float64 { return float64(n.WaitingTransactions) },
		},
	} {
		m.gauge("network_"+figure.name, figure.help)

		for _, n := range report.Networks {
			m.value("network_"+figure.name, figure.of(n), "network", n.Network)
		}
	}
}

// nodes writes the state of each node.
func (m *metrics) nodes(report health.Report) {
	for _, figure := range []struct {
		name, help string
		of         func(n health.Node) float64
	}{
		{"ok", "1 while nothing is wrong with a node.", func(n health.Node) float64 { return oneIf(n.Trouble == "") }},
		{"tip", "The newest block that a node showed.", func(n health.Node) float64 { return float64(n.Tip) }},
		{
			"alone",
			"1 while the network goes on with this node alone.",
			func(n health.Node) float64 { return oneIf(n.Alone) },
		},
	} {
		m.gauge("node_"+figure.name, figure.help)

		for _, network := range report.Networks {
			for _, node := range network.Nodes {
				m.value("node_"+figure.name, figure.of(node), "network", network.Network, "node", node.Name)
			}
		}
	}
}

// backlogs writes the webhooks of the process and of its accounts.
func (m *metrics) backlogs(report health.Report) {
	for _, figure := range []struct {
		name, help string
		of         func(b health.Backlog) float64
	}{
		{
			"due",
			"Deliveries that are due, whichever process sends them.",
			func(b health.Backlog) float64 { return float64(b.Due) },
		},
		{
			"in_flight",
			"Deliveries being sent.",
			func(b health.Backlog) float64 { return float64(b.InFlight) },
		},
		{
			"waiting",
			"Deliveries that wait for a slot.",
			func(b health.Backlog) float64 { return float64(b.Waiting) },
		},
		{
			"age_seconds",
			"How long the oldest delivery that waits has been due.",
			func(b health.Backlog) float64 { return b.Age.Seconds() },
		},
	} {
		m.gauge("webhooks_"+figure.name, figure.help)
		m.value("webhooks_"+figure.name, figure.of(report.Backlog))
		m.gauge("webhooks_account_"+figure.name, figure.help)

		for _, b := range report.Backlogs {
			m.value(
				"webhooks_account_"+figure.name, figure.of(b),
				"account", b.AccountID, "livemode", strconv.FormatBool(b.Livemode),
			)
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}

	return 0
}
