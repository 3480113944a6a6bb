package model

import _ "embed"

//go:embed script.schema.json
var scriptSchema string

// ScriptSchema returns the JSON Schema of one line of a script. The loader is
// stricter in one way: it compiles the patterns and globs.
func ScriptSchema() []byte { return []byte(scriptSchema) }
