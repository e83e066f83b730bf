package failover

import (
	"net/url"
	"strings"
)

const (
	// minSecret is the length in bytes of the shortest URL part that is treated as secret. Shorter
	// ones are names such as "v3" or "rpc".
	minSecret = 8
	// maxMessage is the length in bytes to which a node's message is cut.
	maxMessage = 200
)

// Secrets lists the strings that no message about a node may contain.
type Secrets []string

// SecretsOf returns the secret parts of a URL (user info, path, query), where providers put API
// keys, together with others.
func SecretsOf(nodeURL *url.URL, others ...string) (secrets Secrets) {
	parts := append(strings.Split(nodeURL.Path, "/"), others...)
	if nodeURL.User != nil {
		password, _ := nodeURL.User.Password()
		parts = append(parts, nodeURL.User.Username(), password)
	}

	for _, values := range nodeURL.Query() {
		parts = append(parts, values...)
	}

	for _, part := range parts {
		if len(part) >= minSecret {
			secrets = append(secrets, part, url.PathEscape(part), url.QueryEscape(part))
		}
	}

	return secrets
}

// Clean returns a node's message as one short line of valid UTF-8 without the secrets.
func (s Secrets) Clean(message string) string {
	for _, secret := range s {
		message = strings.ReplaceAll(message, secret, "…")
	}

	message = strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), "")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}

	return message
}
