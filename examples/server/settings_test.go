package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSettingsNameWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		says string
	}{
		"a network without a node": {map[string]string{"NETWORKS": "base-sepolia"}, "NODES_BASE_SEPOLIA is empty"},
		"a price without a pair":   {map[string]string{"PRICES": "2500"}, "PRICES has the form"},
		"a limit without a number": {map[string]string{"SIGNER_LARGEST": "ETH=1e18"}, "SIGNER_LARGEST has the form"},
		"a range without a mask":   {map[string]string{"WEBHOOK_ALLOW": "10.0.0.1"}, "WEBHOOK_ALLOW lists"},
		"a proxy without a mask":   {map[string]string{"TRUSTED_PROXIES": "10.0.0.1"}, "TRUSTED_PROXIES lists"},
		"an epoch in words":        {map[string]string{"EPOCH": "first"}, "EPOCH counts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readSettings(func(variable string) string { return c.env[variable] })
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, not %q", err, c.says)
			}
		})
	}
}

func TestUnknownNetworkIsNamedWithTheKnownOnes(t *testing.T) {
	s, err := readSettings(func(variable string) string {
		return map[string]string{"NETWORKS": "etherium", "NODES_ETHERIUM": "https://secret@node"}[variable]
	})
	if err != nil {
		t.Fatal(err)
	}

	_, err = s.drivers(nil)
	if err == nil || !strings.Contains(err.Error(), `"etherium": there are arbitrum, `) ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestSecretsAreTheirOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")

	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"readable by others": {strings.Repeat("A", 43) + "=", 0o640, "chmod 600"},
		"too short":          {"c2hvcnQ=", 0o600, "openssl rand -base64 32"},
		"not base64":         {"?", 0o600, "openssl rand -base64 32"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}

			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}

			_, err := settings{secretKeyFile: path}.secretKey()
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.text) {
				t.Errorf("the error is %v, not %q", err, c.says)
			}
		})
	}
}
