//go:build !race

package tools

// pooled says that what is given back to a pool is used again; the race detector
// throws some of it away.
const pooled = true
