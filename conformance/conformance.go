// Package conformance holds the suites that an implementation of this library's roles passes:
//
//   - TestDriver for chain.Driver and the optional interfaces beside it
//   - TestSigner for chain.Signer
//   - TestStore for store.Store, with BenchmarkStore and BenchmarkCreate
//   - TestBackend for kv.Backend, and for the store that store/kv makes of it
//   - TestLimiter for store.Limiter
//   - TestWaker for store.Waker
//
// Each suite takes a factory and is called from an ordinary test of the implementation. The drivers
// and stores of this library pass the same suites, unmodified, as a third party's must.
//
// No suite imports a driver or a store, or asks for a name. An implementation declares the parts that it does
// not have. A part that is neither there nor declared absent fails, and so does one that is both.
//
// A subtest is named after the obligation that it checks, so that a failure names the broken obligation.
// The cases are in conformance/internal, one package per suite.
package conformance
