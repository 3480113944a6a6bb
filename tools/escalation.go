package tools

import (
	"encoding/json"
	"errors"
	"fmt"

	"drover/tools/sandbox"
)

// The values of sandbox_permissions.
const (
	useDefault         = "use_default"
	requireEscalated   = "require_escalated"
	withMorePermission = "with_additional_permissions"
)

// wanted are the arguments by which a model asks for more than the sandbox
// allows.
type wanted struct {
	SandboxPermissions string   `json:"sandbox_permissions"`
	Justification      string   `json:"justification"`
	PrefixRule         []string `json:"prefix_rule"`
}

// wants is what the arguments ask for, nil if nothing. They were checked before.
func (w wanted) wants() *Wants {
	if w.SandboxPermissions != requireEscalated {
		return nil
	}
	return &Wants{Rights: sandbox.Rights{Off: true}, Justification: w.Justification, PrefixRule: w.PrefixRule}
}

// escalation are the arguments about the sandbox, as far as they can be wrong.
type escalation struct {
	SandboxPermissions    string          `json:"sandbox_permissions"`
	PrefixRule            []string        `json:"prefix_rule"`
	AdditionalPermissions json.RawMessage `json:"additional_permissions"`
}

// check refuses what nobody could grant, before anything runs.
func (x escalation) check(env Env) error {
	more := len(x.AdditionalPermissions) > 0 && string(x.AdditionalPermissions) != "null"
	switch x.SandboxPermissions {
	case "", useDefault:
		if more {
			return fmt.Errorf("additional_permissions needs sandbox_permissions %q, and that is turned off here. Leave both out", withMorePermission)
		}
		return nil
	case requireEscalated:
		if more {
			return fmt.Errorf("additional_permissions does not go with sandbox_permissions %q; leave it out", requireEscalated)
		}
		return mayEscalate(env.Approval)
	case withMorePermission:
		return fmt.Errorf("sandbox_permissions %q needs the feature exec_permission_approvals, which is off. Leave it out", withMorePermission)
	}
	return fmt.Errorf("sandbox_permissions %q is unknown; send %q, %q or leave it out", x.SandboxPermissions, useDefault, requireEscalated)
}

// mayEscalate names the approval policy under which nothing can be asked for.
func mayEscalate(approval string) error {
	switch approval {
	case "on-request", "granular":
		return nil
	case "":
		return errors.New("sandbox_permissions \"require_escalated\" is refused: no approval policy is set, so the rules alone decide what a command may do. Nothing was run; leave it out")
	}
	return fmt.Errorf("sandbox_permissions \"require_escalated\" is refused: the approval policy is %s, which allows no escalation. Nothing was run; leave it out", approval)
}
