package bitcoin

import (
	"encoding/json"
	"strings"
)

// nodeWarnings are the warnings in an answer of getblockchaininfo: a list, or one text before Bitcoin Core 28.
type nodeWarnings []string

// UnmarshalJSON ignores a value of any other form, because nothing depends on warnings.
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

// maxWarnings bounds the number of a node's warnings that are shown.
const maxWarnings = 5

// shown returns the warnings for display: few, without secrets of the node's URL.
func (w nodeWarnings) shown(node *endpoint) (shown []string) {
	for _, warning := range w[:min(len(w), maxWarnings)] {
		if warning = strings.TrimSpace(node.Clean(warning)); warning != "" {
			shown = append(shown, warning)
		}
	}

	return shown
}
