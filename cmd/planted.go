package cmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/session"
	"drover/tools/policy"
)

// A command can make the .drover of a workspace that has none. What it puts there
// must not become what a later run believes, so such folders are remembered.

// plantedFile holds the folders that commands have made, a JSON line each, in the
// state folder.
const plantedFile = "planted.jsonl"

// plantedFolder is a folder that a command of a run has made. The numbers tell it
// from another one of the same name, made later by somebody else.
type plantedFolder struct {
	Path  string `json:"path"`
	Dev   uint64 `json:"dev"`
	Inode uint64 `json:"inode"`
	// Born is when the folder was made, in nanoseconds; 0 where that is unknown.
	Born int64  `json:"born,omitempty"`
	Run  string `json:"run_id"`
}

// rememberPlanted keeps what a notice tells about a folder of drover that a
// command has made.
func (a *app) rememberPlanted(e event.Event) {
	n, ok := e.Body.(event.NoticeEvent)
	if !ok || n.Code != "protected_created" {
		return
	}
	path, _ := n.Details["path"].(string)
	state := session.StateDir(a.getenv)
	if filepath.Base(path) != ".drover" || state == "" {
		return
	}
	folder, ok := identify(path)
	if !ok {
		return // it is gone again
	}
	folder.Run = e.RunID
	line, err := json.Marshal(folder)
	if err != nil || os.MkdirAll(state, 0o700) != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(state, plantedFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // the notice is in the stream all the same
	}
	_, _ = f.Write(append(line, '\n')) // as above
	_ = f.Close()                      // as above
}

// refusePlanted refuses to trust a project whose .drover a command has made. The
// folders above count, too, because config is read from them.
func (a *app) refusePlanted(cwd string) error {
	known := a.planted()
	if len(known) == 0 {
		return nil
	}
	for dir := policy.RealPath(cwd); ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".drover")
		here, ok := identify(path)
		here.Path, here.Run = "", ""
		if run, bad := known[here]; ok && bad {
			return &fault.Error{
				Code: "planted_folder", What: fmt.Sprintf("the project cannot be trusted: %q", path),
				Why: "a command of the run " + run + " made this folder", Exit: fault.Environment,
				Fix: fmt.Sprintf("read what is in it; if it is right, make it your own: cp -r %[1]s %[1]s.new && rm -r %[1]s && mv %[1]s.new %[1]s", path),
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// planted are the folders that commands have made, and the runs that did it.
func (a *app) planted() map[plantedFolder]string {
	state := session.StateDir(a.getenv)
	if state == "" {
		return nil
	}
	f, err := os.Open(filepath.Join(state, plantedFile))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read from
	out := map[plantedFolder]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var p plantedFolder
		if json.Unmarshal(lines.Bytes(), &p) != nil {
			continue // a line that was cut says nothing
		}
		run := p.Run
		p.Path, p.Run = "", ""
		out[p] = run
	}
	return out
}
