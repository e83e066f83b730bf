package settlement

// DefaultFeeBPS is the platform fee of an account that sets none, in basis points of a deposit's value in USD.
const DefaultFeeBPS = 50 // spec 2.8.13

// This file holds the platform fee of a settlement: its size, how it is split, and what is carried over.
