package main

// Public is of a command and not part of the surface.
func Public() {}

func main() {}
