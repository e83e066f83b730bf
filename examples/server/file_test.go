package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const wholeFile = `# /etc/payments/settings.yaml
database_url: postgres:///payments
base_url: https://pay.example.com
listen: 127.0.0.1:8080
admin_listen: 127.0.0.1:9091
tls_cert: cert.pem
tls_key: key.pem
trusted_proxies: [10.1.0.0/16, "fd00::/8"]
secret_key_file: secret_key
epoch: 1
signer_socket: signer.sock
mnemonic_file: mnemonic
signer_largest: {USDC: 5000000000}
networks:
  - name: sepolia
    nodes: [https://one.example.com, https://two.example.com]
    fee_address: 0x70997970C51812dc3A010C7d01b50e0d17dc79C8
  - name: bitcoin-signet
    nodes: [http://127.0.0.1:38332]
prices: {ETH/USD: 2500.10}
webhook_allow: [10.0.0.0/8, 192.168.0.0/16]
`

// A file says the same as the variables that it stands for, and nothing of it is lost.
func TestFileStandsForTheEnvironment(t *testing.T) {
	fromFile, err := readSettings(lookup(map[string]string{"SETTINGS_FILE": written(t, wholeFile)}))
	if err != nil {
		t.Fatal(err)
	}

	fromEnvironment, err := readSettings(lookup(map[string]string{
		"DATABASE_URL":         "postgres:///payments",
		"BASE_URL":             "https://pay.example.com",
		"LISTEN":               "127.0.0.1:8080",
		"ADMIN_LISTEN":         "127.0.0.1:9091",
		"TLS_CERT":             "cert.pem",
		"TLS_KEY":              "key.pem",
		"TRUSTED_PROXIES":      "10.1.0.0/16 fd00::/8",
		"SECRET_KEY_FILE":      "secret_key",
		"EPOCH":                "1",
		"SIGNER_SOCKET":        "signer.sock",
		"MNEMONIC_FILE":        "mnemonic",
		"SIGNER_LARGEST":       "USDC=5000000000",
		"NETWORKS":             "sepolia bitcoin-signet",
		"NODES_SEPOLIA":        "https://one.example.com https://two.example.com",
		"FEE_ADDRESS_SEPOLIA":  "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		"NODES_BITCOIN_SIGNET": "http://127.0.0.1:38332",
		"PRICES":               "ETH/USD=2500.10",
		"WEBHOOK_ALLOW":        "10.0.0.0/8 192.168.0.0/16",
	}))
	if err != nil {
		t.Fatal(err)
	}

	if !reflect.DeepEqual(fromFile, fromEnvironment) {
		t.Errorf("the file says\n%+v\nthe environment says\n%+v", fromFile, fromEnvironment)
	}

	for i := range reflect.TypeFor[settings]().NumField() {
		if reflect.ValueOf(fromFile).Field(i).IsZero() {
			t.Errorf("the file does not set %s", reflect.TypeFor[settings]().Field(i).Name)
		}
	}
}

// What the environment says counts, so that a password stays out of the file.
func TestEnvironmentComesBeforeTheFile(t *testing.T) {
	s, err := readSettings(lookup(map[string]string{
		"SETTINGS_FILE": written(t, wholeFile),
		"DATABASE_URL":  "postgres://other/payments",
	}))
	if err != nil {
		t.Fatal(err)
	}

	if s.databaseURL != "postgres://other/payments" || s.baseURL != "https://pay.example.com" {
		t.Errorf("DATABASE_URL is %q and BASE_URL %q", s.databaseURL, s.baseURL)
	}
}

func TestFileIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"an unknown key":             {"listen: :1\nlistens: :2\n", "line 2: field listens not found"},
		"an unknown key of networks": {"networks:\n  - {name: sepolia, node: https://a}\n", "field node not found"},
		"a key twice":                {"listen: :1\nlisten: :2\n", `"listen" already defined`},
		"no YAML":                    {"\t{", "README.md lists the keys"},
		"two documents":              {"listen: :1\n---\nlisten: :2\n", "more than one document"},
		"a network without a name":   {"networks:\n  - nodes: [https://a]\n", "networks[0] has no name"},
		"a network without nodes":    {"networks:\n  - name: sepolia\n", "NODES_SEPOLIA is empty"},
		"a list for a text":          {"listen: [a, b]\n", "line 1: cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, c.text)

			_, err := readSettings(lookup(map[string]string{"SETTINGS_FILE": path}))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, not %q", err, c.says)
			}
		})
	}

	_, err := readSettings(lookup(map[string]string{"SETTINGS_FILE": "nowhere.yaml"}))
	if err == nil || !strings.Contains(err.Error(), "SETTINGS_FILE cannot be read: open nowhere.yaml") {
		t.Errorf("without the file the error is %v", err)
	}

	if _, err := readSettings(
		lookup(map[string]string{"SETTINGS_FILE": written(t, "# nothing\n")}),
	); err != nil {
		t.Errorf("of a file with comments alone the error is %v", err)
	}
}

// FuzzParseSettings: no file makes the program panic, and what is read is the same when it is read again.
func FuzzParseSettings(f *testing.F) {
	f.Add([]byte(wholeFile))
	f.Add([]byte("networks: [{name: a, nodes: [b]}]"))
	f.Add([]byte("a: &a [*a]"))

	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := parseSettings(text)
		if err != nil {
			return
		}

		second, err := parseSettings(text)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("read again, it is %+v and %v, not %+v", second, err, first)
		}

		first.variables()
	})
}

// lookup returns the environment of a map.
func lookup(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// written returns the path of a file with the text.
func written(t *testing.T, text string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}
