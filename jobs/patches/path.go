package patches

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
)

var errQuoted = errors.New("a quoted name cannot be read")

// takePath reads a name at the beginning of text, and returns what follows it.
// An unquoted name ends at a tab or with the text. With prefix, the first
// folder is taken off, and /dev/null is the empty path.
func takePath(text string, prefix bool) (path, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		path, rest, err = unquote(text)
	} else {
		path, rest, _ = strings.Cut(strings.TrimSuffix(text, "\r"), "\t")
	}
	if err != nil || !prefix {
		return path, rest, err
	}
	if path == "/dev/null" {
		return "", rest, nil
	}
	_, path, ok := strings.Cut(path, "/")
	if !ok || path == "" {
		return "", "", errors.New("a name does not begin with a folder such as a/")
	}
	return path, rest, nil
}

// headerPaths reads the two names of git's header. They are empty if they
// cannot be told apart, which git avoids where no other line has them.
func headerPaths(text string) (old, now string) {
	if strings.HasPrefix(text, `"`) {
		old, rest, err := takePath(text, true)
		if err != nil || !strings.HasPrefix(rest, " ") {
			return "", ""
		}
		now, _, err := takePath(rest[1:], true)
		if err != nil {
			return "", ""
		}
		return old, now
	}
	if first, second, ok := strings.Cut(text, ` "`); ok {
		old, _, errOld := takePath(first, true)
		now, _, errNow := takePath(`"`+second, true)
		if errOld != nil || errNow != nil {
			return "", ""
		}
		return old, now
	}
	// Without quotes both are the same but for the first folder.
	for i := range len(text) {
		if text[i] != ' ' {
			continue
		}
		old, _, errOld := takePath(text[:i], true)
		now, _, errNow := takePath(text[i+1:], true)
		if errOld == nil && errNow == nil && old == now {
			return old, now
		}
	}
	return "", ""
}

// escapes are the letters that git writes behind a backslash.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', '"': '"', '\\': '\\'}

// unquote reads a name that git has quoted as C does.
func unquote(text string) (name, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], nil
		case c != '\\':
			b.WriteByte(c)
		case i+3 < len(text) && isOctal(text[i+1:i+4]):
			b.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
		case i+1 < len(text) && escapes[text[i+1]] != 0:
			i++
			b.WriteByte(escapes[text[i]])
		default:
			return "", "", errQuoted
		}
	}
	return "", "", errQuoted
}

// isOctal tells whether three characters are the octal number of a byte.
func isOctal(s string) bool {
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7'
}

const (
	// maxName is the longest name that FileName gives, in bytes; with a suffix
	// every file system takes it.
	maxName = 120
	// hashDigits is how many digits of a hash follow a name that was changed.
	hashDigits = 24
)

var (
	plainName  = regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]*$`)
	hashedName = regexp.MustCompile(`-[0-9a-f]{24}$`)
	// deviceName are names that Windows has for devices, with any suffix.
	deviceName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)
	unsafeByte = regexp.MustCompile(`[^A-Za-z0-9._-]`)
)

// FileName returns a name for the files of a row: at most 120 bytes of ASCII
// letters, digits, dots, dashes and underscores, not beginning with a dot or a
// dash and not ending with a dot. Different ids have different names, also where
// upper and lower case are the same. An id of small letters, digits, dashes and
// underscores is its own name; every other one is changed and gets a hash at
// its end.
func FileName(itemID string) string {
	if len(itemID) <= maxName && plainName.MatchString(itemID) && !hashedName.MatchString(itemID) && !deviceName.MatchString(itemID) {
		return itemID
	}
	digest := sha256.Sum256([]byte(itemID))
	name := itemID[:min(len(itemID), maxName-hashDigits-2)]
	name = unsafeByte.ReplaceAllString(name, "_")
	if name == "" || name[0] == '.' || name[0] == '-' || deviceName.MatchString(name) {
		name = "_" + name
	}
	return name + "-" + hex.EncodeToString(digest[:])[:hashDigits]
}
