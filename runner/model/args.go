package model

import "strings"

// argStream delivers the arguments of one call exactly once, however the
// server sends them: in pieces, whole at the end, or both ways. An empty
// object is held back while it is all there is, because some servers send one
// as a stand-in before the real arguments. For a freeform tool that was
// offered as a function the input is unwrapped.
type argStream struct {
	// raw is what the server has sent, without a dropped stand-in.
	raw strings.Builder
	// held is how many of raw's last bytes are not delivered yet.
	held int
	// unwrap is set for a freeform tool that was offered as a function.
	unwrap *freeformDecoder
}

// longestStandIn bounds an empty object and the space around it.
const longestStandIn = 16

// put takes a piece.
func (a *argStream) put(piece string) {
	if a.held > 0 && a.held == a.raw.Len() && a.held < longestStandIn && strings.TrimSpace(a.raw.String()) == "{}" &&
		strings.HasPrefix(strings.TrimSpace(piece), "{") {
		a.raw.Reset()
		a.held = 0
	}
	a.raw.WriteString(piece)
	a.held += len(piece)
}

// putWhole takes the complete arguments, as servers repeat them at the end of
// a call. Where they differ from the pieces, those stand if they have been
// delivered.
func (a *argStream) putWhole(args string) {
	sent := a.raw.String()
	switch {
	case args == "" || args == sent:
	case strings.HasPrefix(args, sent):
		a.put(args[len(sent):])
	case a.held == len(sent):
		a.raw.Reset()
		a.held = 0
		a.put(args)
	}
}

// ready returns what of the arguments may be delivered now.
func (a *argStream) ready() string {
	all := a.raw.String()
	if a.held == len(all) && len(all) < longestStandIn && strings.HasPrefix("{}", strings.TrimSpace(all)) {
		return ""
	}
	return a.rest()
}

// rest returns what is not delivered.
func (a *argStream) rest() string {
	all := a.raw.String()
	text := all[len(all)-a.held:]
	a.held = 0
	if a.unwrap != nil {
		return a.unwrap.Write(text)
	}
	return text
}

// end returns what is left when the call has ended, and false when a freeform
// input came broken or incomplete.
func (a *argStream) end() (rest string, ok bool) {
	rest = a.rest()
	if a.unwrap == nil {
		return rest, true
	}
	last, ok := a.unwrap.Close()
	return rest + last, ok
}
