package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// asServer has the test binary run as the program itself.
const asServer = "PAYMENTS_EXAMPLE_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}

	os.Exit(testenv.Main(m))
}

// TestServer runs the program as an operator does: tables, signer, server, merchant, a paid invoice, audit, stop.
func TestServer(t *testing.T) {
	node := testenv.Anvil(t, testenv.AnvilOptions{Args: []string{"--block-time", "1"}})
	o := newOperator(t, node.URL)

	o.run("migrate")
	o.start("signer", "the signer is ready")
	server := o.start("serve", "the server is ready")

	shop := o.client("https://" + server.field("listen"))
	for line := range strings.Lines(o.run("merchant", "Corner Shop")) {
		if key, ok := strings.CutPrefix(line, "key "); ok {
			shop.key = strings.TrimSpace(key)
		}
	}

	var inv struct {
		ID      string
		Options []struct {
			AmountDue string `json:"amount_due"`
			Address   string
		}
	}

	shop.call("POST", "/v1/invoices", `{"price":{"currency":"USD","amount":"25"}}`, &inv)
	pay(t, node.URL, inv.Options[0].Address, inv.Options[0].AmountDue)

	await(t, "the payment is released", func() (string, bool) {
		var page struct {
			Data []struct {
				Settlement struct{ Status string }
			}
		}

		shop.call("GET", "/v1/invoices/"+inv.ID+"/payments", "", &page)

		return fmt.Sprint(page), len(page.Data) == 1 && page.Data[0].Settlement.Status == "released"
	})

	admin := o.client("http://" + server.field("admin"))

	await(t, "the server is healthy", func() (string, bool) {
		body := admin.get("/metrics")

		return body, strings.Contains(body, "\npayments_ok 1\n") &&
			strings.Contains(body, `payments_network_stopped{network="local"} 0`)
	})
	admin.get("/readyz")

	if said := o.run("audit"); said != "the records agree with every network\n" {
		t.Errorf("the audit says %q", said)
	}

	if err := server.stop(); err != nil {
		t.Errorf("told to stop, the server ended with %v", err)
	}
}

// operator has the files and the environment of an installation.
type operator struct {
	t    *testing.T
	env  []string
	cert *x509.CertPool
}

func newOperator(t *testing.T, node string) *operator {
	t.Helper()

	// The path of a socket has at most 107 bytes, and those of t.TempDir are long.
	dir, err := os.MkdirTemp("", "pay")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { os.RemoveAll(dir) })

	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		return path
	}

	cert, key := certificate(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)

	return &operator{
		t,
		append(
			os.Environ(),
			asServer+"=1",
			"DATABASE_URL="+testenv.Postgres(t),
			"BASE_URL=https://pay.example.com",
			"LISTEN=127.0.0.1:0",
			"ADMIN_LISTEN=127.0.0.1:0",
			"TLS_CERT="+write("cert.pem", string(cert)),
			"TLS_KEY="+write("key.pem", string(key)),
			"SECRET_KEY_FILE="+write(
				"secret",
				base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
			),
			"MNEMONIC_FILE="+write("mnemonic", testenv.WellKnownDevMnemonic+"\n"),
			"SIGNER_SOCKET="+filepath.Join(dir, "signer.sock"),
			"NETWORKS=local",
			"NODES_LOCAL="+node,
			"PRICES=ETH/USD=2500",
		),
		pool,
	}
}

// variables returns the environment.
func (o *operator) variables() map[string]string {
	all := map[string]string{}

	for _, pair := range o.env {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}

	return all
}

func (o *operator) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(o.t.Context(), os.Args[0], args...)
	cmd.Env = o.env

	return cmd
}

// run runs a command to its end and returns what it prints.
func (o *operator) run(args ...string) string {
	o.t.Helper()

	cmd := o.command(args...)

	var log bytes.Buffer

	cmd.Stderr = &log

	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("%v: %v\n%s%s", args, err, out, log.Bytes())
	}

	return string(out)
}

// process is a running command, and the line of its log that said it is ready.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ready map[string]any
	ended chan error
}

// start runs a command until the test ends, and returns when its log says that it is ready.
func (o *operator) start(name, ready string) *process {
	o.t.Helper()

	p := &process{t: o.t, cmd: o.command(name), ended: make(chan error, 1)}

	log, err := p.cmd.StderrPipe()
	if err != nil {
		o.t.Fatal(err)
	}

	if err := p.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}

	o.t.Cleanup(func() { _ = p.stop() })

	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if json.Unmarshal(lines.Bytes(), &p.ready) == nil && p.ready["msg"] == ready {
			go func() {
				_, _ = io.Copy(io.Discard, log)

				p.ended <- p.cmd.Wait()
			}()

			return p
		}

		o.t.Logf("%s: %s", name, lines.Text())
	}

	p.ended <- p.cmd.Wait()

	o.t.Fatalf("%s ended before it was ready", name)

	return nil
}

func (p *process) field(name string) string { return p.ready[name].(string) }

// stop stops the process, and returns how it ended.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)

	err := <-p.ended
	p.ended <- err

	return err
}

// client is an HTTP client of one site.
type client struct {
	t         *testing.T
	http      *http.Client
	base, key string
}

func (o *operator) client(base string) *client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: o.cert}}
	o.t.Cleanup(transport.CloseIdleConnections)

	return &client{t: o.t, http: &http.Client{Transport: transport}, base: base}
}

func (c *client) get(path string) string { return string(c.call("GET", path, "", nil)) }

func (c *client) call(method, path, body string, answer any) []byte {
	c.t.Helper()

	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}

	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")

	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %s %v\n%s", method, path, resp.Status, err, text)
	}

	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			c.t.Fatal(err)
		}
	}

	return text
}

// await asks again until it is so.
func await(t *testing.T, what string, so func() (seen string, ok bool)) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	for {
		seen, ok := so()
		if ok {
			return
		}

		select {
		case <-ctx.Done():
			t.Fatalf("never came true: %s; last seen:\n%s", what, seen)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// pay sends coin from a development account of the node, whose keys are public.
func pay(t *testing.T, url, to, amount string) {
	t.Helper()

	value, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		t.Fatalf("the amount %q is no number", amount)
	}

	body := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{"from":%q,"to":%q,"value":"0x%x"}]}`,
		testenv.WellKnownDevAccounts[1].Address,
		to,
		value,
	)

	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(text, []byte(`"result"`)) {
		t.Fatalf("the payer's node answered %s, %v", text, err)
	}
}

// certificate returns a certificate for 127.0.0.1 that signs itself, and its key, in PEM.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}

	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}

	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}
