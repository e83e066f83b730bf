// Package bench measures what the service costs where its users meet it: over HTTP and over PostgreSQL that waits for
// the disk. It has benchmarks only. Each runs beside a baseline in the same minute, in turns, and prints the ratio
// with its goal:
//
//	go test ./internal/bench -run '^$' -bench . -benchtime 1x
package bench
