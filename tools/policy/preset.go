package policy

import "embed"

// The names of the built-in policies.
const (
	presetReadOnly  = "read-only"
	presetWorkspace = "workspace"
	presetCI        = "ci"
	presetYolo      = "yolo"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

// Preset returns a built-in policy as YAML; ok is false if there is none of
// that name.
func Preset(name string) (yaml []byte, ok bool) {
	for _, known := range Presets() {
		if known == name {
			data, err := presetFiles.ReadFile("presets/" + name + ".yaml")
			return data, err == nil
		}
	}
	return nil, false
}

// Presets returns the names of the built-in policies.
func Presets() []string { return []string{presetReadOnly, presetWorkspace, presetCI, presetYolo} }
