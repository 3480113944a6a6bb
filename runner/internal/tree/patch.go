package tree

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// version is one side of a patch; an empty mode is a file that is not there.
type version struct {
	mode string
	data []byte
}

// noBlob is the id of what is not there.
const noBlob = "0000000000000000000000000000000000000000"

// writePatch writes the patch of one path in git's format.
func writePatch(b *bytes.Buffer, path string, old, now version) {
	from, to := "a/"+path, "b/"+path
	fmt.Fprintf(b, "diff --git %s %s\n", quote(from), quote(to))
	switch {
	case old.mode == "":
		fmt.Fprintf(b, "new file mode %s\n", now.mode)
		from = "/dev/null"
	case now.mode == "":
		fmt.Fprintf(b, "deleted file mode %s\n", old.mode)
		to = "/dev/null"
	case old.mode != now.mode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", old.mode, now.mode)
	}
	oldID, newID := blobID(old), blobID(now)
	if oldID == newID {
		return // only the mode has changed
	}
	fmt.Fprintf(b, "index %s..%s", oldID, newID)
	if old.mode == now.mode {
		b.WriteString(" " + old.mode)
	}
	b.WriteByte('\n')
	if isBinary(old.data) || isBinary(now.data) {
		b.WriteString("GIT binary patch\n")
		writeLiteral(b, now.data)
		writeLiteral(b, old.data) // the way back, for git apply -R
		return
	}
	if len(old.data) == 0 && len(now.data) == 0 {
		return // an empty file came or went
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", label(from), label(to))
	b.Write(hunks(old.data, now.data))
}

// hunks returns the unified diff of two different texts without its header.
func hunks(old, now []byte) []byte {
	text := diff.Diff("a", old, "b", now)
	for range 3 {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	return text
}

// isBinary tells whether git would show no lines of data.
func isBinary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }

// blobID is the name that git gives to a content.
func blobID(v version) string {
	if v.mode == "" {
		return noBlob
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(v.data))
	h.Write(v.data)
	return hex.EncodeToString(h.Sum(nil))
}

// label is a path in a --- or +++ line. A tab ends a name that holds blanks.
func label(path string) string {
	if strings.Contains(path, " ") && quote(path) == path {
		return path + "\t"
	}
	return quote(path)
}

// quote writes a path as git does: as it is, or as a C string if it holds a
// control character, a quote, a backslash or something that is not ASCII.
func quote(path string) string {
	plain := true
	for _, c := range []byte(path) {
		plain = plain && c >= ' ' && c < 0x7f && c != '"' && c != '\\'
	}
	if plain {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

const (
	base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	// lineBytes is how many bytes a line of a binary patch holds.
	lineBytes = 52
)

// writeLiteral writes one half of a binary patch: the whole content, deflated
// and in base 85, in lines that begin with their length.
func writeLiteral(b *bytes.Buffer, data []byte) {
	fmt.Fprintf(b, "literal %d\n", len(data))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	// Writing to memory cannot fail.
	_, _ = z.Write(data)
	_ = z.Close()
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(lineBytes, len(rest))
		length := byte('A' + n - 1)
		if n > 26 {
			length = byte('a' + n - 27)
		}
		b.WriteByte(length)
		writeBase85(b, rest[:n])
		b.WriteByte('\n')
		rest = rest[n:]
	}
	b.WriteByte('\n')
}

// writeBase85 writes four bytes as five digits, the last ones filled with zero.
func writeBase85(b *bytes.Buffer, data []byte) {
	for len(data) > 0 {
		var four [4]byte
		n := copy(four[:], data)
		data = data[n:]
		v := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
		var five [5]byte
		for i := 4; i >= 0; i-- {
			five[i] = base85[v%85]
			v /= 85
		}
		b.Write(five[:])
	}
}
