package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settingsFile is the file that SETTINGS_FILE names: the variables of the environment in a form that is easier to
// read when there are many networks.
type settingsFile struct {
	DatabaseURL string `yaml:"database_url"`
	BaseURL     string `yaml:"base_url"`

	Listen      string `yaml:"listen"`
	AdminListen string `yaml:"admin_listen"`
	TLSCert     string `yaml:"tls_cert"`
	TLSKey      string `yaml:"tls_key"`

	TrustedProxies []string `yaml:"trusted_proxies"`

	SecretKeyFile string `yaml:"secret_key_file"`
	Epoch         string `yaml:"epoch"`

	SignerSocket  string            `yaml:"signer_socket"`
	MnemonicFile  string            `yaml:"mnemonic_file"`
	SignerLargest map[string]string `yaml:"signer_largest"` // base units by symbol

	Networks []networkSettings `yaml:"networks"`
	Prices   map[string]string `yaml:"prices"` // by pair, such as ETH/USD

	WebhookAllow []string `yaml:"webhook_allow"`
}

type networkSettings struct {
	Name       string   `yaml:"name"`
	Nodes      []string `yaml:"nodes"`
	FeeAddress string   `yaml:"fee_address"`
}

// withFile returns a lookup of variables that takes those which the environment lacks from the file that
// SETTINGS_FILE names, if it names one.
func withFile(env func(string) string) (func(string) string, error) {
	path := env("SETTINGS_FILE")
	if path == "" {
		return env, nil
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("SETTINGS_FILE cannot be read: %w: correct the path, or unset it", err)
	}

	file, err := parseSettings(text)
	if err != nil {
		return nil, fmt.Errorf("SETTINGS_FILE %s: %w", path, err)
	}

	variables := file.variables()

	return func(name string) string { return or(env(name), variables[name]) }, nil
}

// parseSettings reads one YAML document. A key that is not known is an error, and so is a second document.
func parseSettings(text []byte) (settingsFile, error) {
	var file settingsFile

	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)

	if err := decoder.Decode(&file); errors.Is(err, io.EOF) {
		return file, nil // empty, or comments alone
	} else if err != nil {
		return file, fmt.Errorf("%s: README.md lists the keys", sentence(err))
	}

	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return file, errors.New("it has more than one document: keep one")
	}

	for i, n := range file.Networks {
		if n.Name == "" {
			return file, fmt.Errorf("networks[%d] has no name: give it one, such as sepolia", i)
		}
	}

	return file, nil
}

// sentence returns what is wrong with a document in one line.
func sentence(err error) string {
	text := err.Error()

	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(wrong.Errors, "; ")
	}

	return text
}

// variables returns the file as the variables of the environment that it stands for.
func (f settingsFile) variables() map[string]string {
	all := map[string]string{
		"DATABASE_URL":    f.DatabaseURL,
		"BASE_URL":        f.BaseURL,
		"LISTEN":          f.Listen,
		"ADMIN_LISTEN":    f.AdminListen,
		"TLS_CERT":        f.TLSCert,
		"TLS_KEY":         f.TLSKey,
		"TRUSTED_PROXIES": strings.Join(f.TrustedProxies, " "),
		"SECRET_KEY_FILE": f.SecretKeyFile,
		"EPOCH":           f.Epoch,
		"SIGNER_SOCKET":   f.SignerSocket,
		"MNEMONIC_FILE":   f.MnemonicFile,
		"SIGNER_LARGEST":  pairs(f.SignerLargest),
		"PRICES":          pairs(f.Prices),
		"WEBHOOK_ALLOW":   strings.Join(f.WebhookAllow, " "),
	}

	var names []string

	for _, n := range f.Networks {
		names = append(names, n.Name)
		all["NODES_"+variableName(n.Name)] = strings.Join(n.Nodes, " ")
		all["FEE_ADDRESS_"+variableName(n.Name)] = n.FeeAddress
	}

	all["NETWORKS"] = strings.Join(names, " ")

	return all
}

// pairs returns a map in the form a=1 b=2.
func pairs(values map[string]string) string {
	var all []string

	for name, value := range values {
		all = append(all, name+"="+value)
	}

	return strings.Join(all, " ")
}
