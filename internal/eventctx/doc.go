// Package eventctx makes events of records, and carries in a context the request that caused them.
package eventctx
