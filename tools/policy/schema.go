package policy

import (
	_ "embed"
	"slices"
)

//go:embed policy.schema.json
var schema []byte

// Schema returns the JSON Schema of policy files.
func Schema() []byte { return slices.Clone(schema) }
