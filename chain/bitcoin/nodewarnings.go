package bitcoin

import (
	"encoding/json"
	"strings"
)

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
