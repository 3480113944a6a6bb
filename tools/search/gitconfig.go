package search

import (
	"path/filepath"
	"strings"
)

// environment is what git takes from its environment, by name.
type environment map[string]string

func newEnvironment(environ []string) environment {
	env := environment{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	return env
}

// gitConfig holds the last value of each "section.key", in lower case.
// Sections with a subsection are left out: none is needed here.
type gitConfig map[string]string

// maxConfigFiles bounds how many configuration files are read, because they can
// include each other.
const maxConfigFiles = 50

// gitConfig reads the files that git reads, in its order: system, user,
// repository. Conditional includes are not followed.
func (e environment) gitConfig(local string) gitConfig {
	config := gitConfig{}
	left := maxConfigFiles
	if e["GIT_CONFIG_NOSYSTEM"] == "" {
		system := e["GIT_CONFIG_SYSTEM"]
		if system == "" {
			system = "/etc/gitconfig"
		}
		config.read(system, e, &left)
	}
	if global, ok := e["GIT_CONFIG_GLOBAL"]; ok {
		config.read(global, e, &left)
	} else {
		if dir := e.configHome(); dir != "" {
			config.read(filepath.Join(dir, "git", "config"), e, &left)
		}
		if home := e["HOME"]; home != "" {
			config.read(filepath.Join(home, ".gitconfig"), e, &left)
		}
	}
	config.read(local, e, &left)
	return config
}

// configHome is the folder of the user's settings, empty if unknown.
func (e environment) configHome() string {
	if dir := e["XDG_CONFIG_HOME"]; dir != "" {
		return dir
	}
	if home := e["HOME"]; home != "" {
		return filepath.Join(home, ".config")
	}
	return ""
}

// excludesFile is the path of the user's own ignore file, empty if there is
// none. A relative path starts at the top of the work tree.
func (e environment) excludesFile(config gitConfig, top string) string {
	if path, ok := config["core.excludesfile"]; ok {
		if path == "" {
			return ""
		}
		return resolve(top, e.expand(path))
	}
	if dir := e.configHome(); dir != "" {
		return filepath.Join(dir, "git", "ignore")
	}
	return ""
}

func (e environment) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(e["HOME"], rest)
	}
	return path
}

func (c gitConfig) isTrue(key string) bool {
	switch strings.ToLower(c[key]) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

func (c gitConfig) read(path string, e environment, left *int) {
	if *left--; *left < 0 || path == "" {
		return
	}
	parseConfig(string(readLinked(path)), func(key, value string) {
		c[key] = value
		if key == "include.path" {
			c.read(resolve(filepath.Dir(path), e.expand(value)), e, left)
		}
	})
}

// parseConfig calls set for each variable. What it does not understand it
// passes over: a broken file must not stop a search.
func parseConfig(text string, set func(key, value string)) {
	section := ""
	text = strings.TrimPrefix(text, "\ufeff")
	for text != "" {
		text = strings.TrimLeft(text, " \t\r\n")
		switch {
		case text == "":
		case text[0] == '#' || text[0] == ';':
			_, text, _ = strings.Cut(text, "\n")
		case text[0] == '[':
			section, text = parseSection(text[1:])
		default:
			end := strings.IndexFunc(text, func(r rune) bool {
				return !(r == '-' || r < 128 && (isAlpha(byte(r)) || isDigit(byte(r))))
			})
			if end < 0 {
				end = len(text)
			}
			key := strings.ToLower(text[:end])
			rest := strings.TrimLeft(text[end:], " \t")
			value := "true" // a name alone
			if after, ok := strings.CutPrefix(rest, "="); ok {
				value, text = parseValue(strings.TrimLeft(after, " \t"))
			} else {
				_, text, _ = strings.Cut(rest, "\n")
			}
			if section != "" && key != "" {
				set(section+"."+key, value)
			}
		}
	}
}

// parseSection reads what follows "[". The name is empty for a section with a
// subsection or a broken one.
func parseSection(text string) (name, rest string) {
	end := strings.IndexAny(text, "]\n")
	quote := strings.IndexByte(text, '"')
	if end < 0 {
		return "", ""
	}
	if quote < 0 || quote > end {
		if text[end] == '\n' || strings.ContainsAny(text[:end], " \t.") {
			return "", text[end+1:]
		}
		return strings.ToLower(text[:end]), text[end+1:]
	}
	for i := quote + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return "", strings.TrimPrefix(text[i+1:], "]")
		case '\n':
			return "", text[i:]
		}
	}
	return "", ""
}

// parseValue reads a value up to the end of its last line.
func parseValue(text string) (value, rest string) {
	var b strings.Builder
	quoted, end := false, 0 // end is the length without unquoted blanks at the end
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return b.String()[:end], text[i+1:]
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
			continue
		case c == '"':
			quoted = !quoted
			continue
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(text[i:], "\n")
			return b.String()[:end], rest
		case c == '\\' && i+1 < len(text):
			i++
			switch text[i] {
			case '\n':
				continue
			case '\r':
				if i+1 < len(text) && text[i+1] == '\n' {
					i++
				}
				continue
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			default:
				c = text[i]
			}
			b.WriteByte(c)
			end = b.Len()
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			end = b.Len()
		}
	}
	return b.String()[:end], ""
}
