package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"drover/tools/sandbox"
)

// requestPermissions asks for more than the sandbox of the run allows, for
// later calls. Whether anything is granted is for whoever answers.
var requestPermissions = New(Def[permitInput]{
	Name: "request_permissions",
	Doc: "Asks for permissions that the sandbox of commands does not have: the network, or reading and writing " +
		"further files and folders. What is granted holds for later commands and patches. Ask only after something was refused, and for no more than is needed.",
	Asks:     true,
	Permits:  true,
	Approval: "never",
	Check: func(in permitInput, env Env) error {
		_, err := in.rights(env.Files)
		return err
	},
	Display: func(in permitInput, env Env) string {
		rights, err := in.rights(env.Files)
		if err != nil {
			return "permissions"
		}
		return "permissions: " + describeRights(rights, env.Files)
	},
	Run: runPermit,
})

type permitInput struct {
	Permissions permissionSet `json:"permissions" jsonschema:"What is needed; at least one of network and file_system."`
	Reason      string        `json:"reason,omitempty" jsonschema:"Why, in one sentence."`
}

type permissionSet struct {
	Network    *permitNetwork `json:"network,omitempty"`
	FileSystem *permitFiles   `json:"file_system,omitempty"`
}

type permitNetwork struct {
	Enabled bool `json:"enabled"`
}

type permitFiles struct {
	Read  []string `json:"read,omitempty" jsonschema:"Paths to read."`
	Write []string `json:"write,omitempty" jsonschema:"Paths to read and write."`
}

// UnmarshalJSON refuses keys that have no meaning: a permission that is not
// understood must not be taken for another.
func (p *permissionSet) UnmarshalJSON(b []byte) error {
	type plain permissionSet
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plain)(p)); err != nil {
		return fmt.Errorf("permissions: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

var errNoPermission = errors.New("request_permissions requires at least one permission")

// rights are the permissions as the sandbox takes them: absolute paths without
// links.
func (in permitInput) rights(files *Files) (sandbox.Rights, error) {
	var r sandbox.Rights
	if n := in.Permissions.Network; n != nil {
		r.Network = n.Enabled
	}
	if f := in.Permissions.FileSystem; f != nil {
		for _, list := range []struct {
			from []string
			to   *[]string
		}{{f.Read, &r.Read}, {f.Write, &r.Write}} {
			for _, path := range list.from {
				if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) {
					return r, fmt.Errorf("permissions.file_system: %q is no path", path)
				}
				if real := files.Real(path); !slices.Contains(*list.to, real) {
					*list.to = append(*list.to, real)
				}
			}
		}
	}
	if !r.Network && len(r.Read)+len(r.Write) == 0 {
		return r, errNoPermission
	}
	return r, nil
}

// ReadPermissions reads the arguments of request_permissions. Relative paths
// are taken from the session's folder.
func ReadPermissions(args json.RawMessage, files *Files) (rights sandbox.Rights, reason string, err error) {
	var in permitInput
	if err := json.Unmarshal(args, &in); err != nil {
		return rights, "", fmt.Errorf("read permissions: %w", err)
	}
	rights, err = in.rights(files)
	return rights, in.Reason, err
}

// permitResult is what the model is told.
type permitResult struct {
	Permissions struct {
		Network    *permitNetwork `json:"network"`
		FileSystem *permitFiles   `json:"file_system"`
	} `json:"permissions"`
	Scope string `json:"scope"`
}

func runPermit(ctx context.Context, in permitInput, env Env) (Result, error) {
	want, err := in.rights(env.Files)
	if err != nil {
		return Fail("invalid_permissions", err.Error()), nil
	}
	if env.Permit == nil {
		return Fail("nobody_answers", "nobody can grant permissions in this run; go on without them"), nil
	}
	granted, scope, err := env.Permit(ctx, want, in.Reason)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err != nil {
		return Fail("not_granted", err.Error()), nil
	}
	out := permitResult{Scope: scope}
	if granted.Network {
		out.Permissions.Network = &permitNetwork{Enabled: true}
	}
	if len(granted.Read)+len(granted.Write) > 0 {
		out.Permissions.FileSystem = &permitFiles{Read: granted.Read, Write: granted.Write}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return Result{}, fmt.Errorf("encode permissions: %w", err)
	}
	shown := "granted: " + describeRights(granted, env.Files)
	if !granted.Network && len(granted.Read)+len(granted.Write) == 0 {
		shown = "nothing was granted"
	}
	return Result{Text: string(text), Display: display(shown), Structured: out, OutputBytes: int64(len(text))}, nil
}

// describeRights names permissions in a few words.
func describeRights(r sandbox.Rights, files *Files) string {
	var parts []string
	if r.Network {
		parts = append(parts, "network")
	}
	for _, p := range r.Read {
		parts = append(parts, "read "+files.Rel(p))
	}
	for _, p := range r.Write {
		parts = append(parts, "write "+files.Rel(p))
	}
	return strings.Join(parts, ", ")
}
