package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover/output/fault"
)

// The strict reading of a script line. encoding/json matches keys in any case,
// lets the last of two equal keys win and cannot say where in a line a value of
// the wrong type is; a script must not be read so kindly. All functions here
// take JSON that was found valid before.

// members calls visit for each member of the object, in order.
func members(object string, visit func(key, value string) error) error {
	return elements(object, func(item string) error {
		n := stringLen(item)
		value := strings.TrimLeft(item[n:], jsonSpace)[1:]
		return visit(unquoteJSON(item[:n]), strings.Trim(value, jsonSpace))
	})
}

const jsonSpace = " \t\r\n"

// elements calls visit for each trimmed item between the outer brackets of s,
// in order.
func elements(s string, visit func(item string) error) error {
	s = strings.Trim(s, jsonSpace)
	s = strings.Trim(s[1:len(s)-1], jsonSpace)
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i += stringLen(s[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth > 0 {
				continue
			}
			if err := visit(strings.Trim(s[start:i], jsonSpace)); err != nil {
				return err
			}
			start = i + 1
		}
	}
	if s == "" {
		return nil
	}
	return visit(strings.Trim(s[start:], jsonSpace))
}

// keySet refuses keys that are doubled or unknown.
type keySet []string

// add notes the key. Known nil admits every key.
func (k *keySet) add(key string, known []string) error {
	if slices.Contains(*k, key) {
		return mistake("the key %q is there twice", key)
	}
	if known != nil && !slices.Contains(known, key) {
		return &scriptMistake{why: fmt.Sprintf("the key %q is unknown", key), fix: nearestFix(key, known)}
	}
	*k = append(*k, key)
	return nil
}

// nearestFix advises the known name that is most like the given one, or lists
// them all where none is near.
func nearestFix(name string, known []string) string {
	if near := fault.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known are " + strings.Join(known, ", ")
}

// jsonType names the type of a JSON value.
func jsonType(v string) string {
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

func jsonString(key, v string) (string, error) {
	if v[0] != '"' {
		return "", mistake("%s must be a string, it is %s", key, jsonType(v))
	}
	return unquoteJSON(v), nil
}

// unquoteJSON decodes a string literal.
func unquoteJSON(literal string) string {
	if strings.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1]
	}
	var s string
	// A string literal of valid JSON always decodes.
	_ = json.Unmarshal([]byte(literal), &s)
	return s
}

func jsonBool(key, v string) (bool, error) {
	if v[0] != 't' && v[0] != 'f' {
		return false, mistake("%s must be true or false, it is %s", key, jsonType(v))
	}
	return v[0] == 't', nil
}

func jsonInt(key, v string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err == nil && n >= low && n <= high {
		return n, nil
	}
	is := jsonType(v)
	if is == "a number" {
		is = v
	}
	switch high {
	case math.MaxInt64, math.MaxInt32:
		return 0, mistake("%s must be a whole number of at least %d, it is %s", key, low, is)
	default:
		return 0, mistake("%s must be a whole number from %d to %d, it is %s", key, low, high, is)
	}
}

// jsonSeconds reads a number of seconds, at most a day.
func jsonSeconds(key, v string) (time.Duration, error) {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n >= 0 && n <= 86400) {
		return 0, mistake("%s must be a number of seconds from 0 to 86400, it is %s", key, v)
	}
	return time.Duration(n * float64(time.Second)), nil
}
