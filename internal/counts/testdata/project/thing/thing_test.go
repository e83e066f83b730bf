package thing

// Tests have wide lines and forbidden words too, but neither bodies nor surface: -----------------------------------------------
func Exported(r Reader) { _ = any(r).(Store) }
