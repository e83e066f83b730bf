package settlement

// DefaultFeeBPS is the default platform fee of an account, in basis points of a deposit's value in USD.
const DefaultFeeBPS = 50 // spec 2.8.13

// This file holds the platform fee of a settlement: its size, its split, and the carried part.
