package nested

// Public is of another module and not part of the surface.
func Public() {}
