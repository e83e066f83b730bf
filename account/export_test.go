package account

// What the tests of this package see of its inside.
const (
	CacheTTL   = cacheTTL
	MaxLogo    = maxLogo
	MaxOverlap = maxOverlap
	MaxPrefix  = maxPrefix
)

// ParseKey is parseKey.
func ParseKey(key string) (Parsed, error) { return parseKey(key) }

// Parsed is what a key says of itself.
type Parsed = parsed
