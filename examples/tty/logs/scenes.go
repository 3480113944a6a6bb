package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"drover/output/event"
)

// scenes are the streams by their names.
var scenes = map[string]func(*film){
	"one":      one,
	"args":     args,
	"loud":     func(f *film) { loud(f, 1) },
	"quiet":    func(f *film) { loud(f, 0) },
	"three":    threeSeconds,
	"ends":     everyEnd,
	"eight":    eight,
	"reverse":  reverse,
	"agents":   agents,
	"odd":      odd,
	"orphan":   orphan,
	"text":     textBehind,
	"forty":    forty,
	"waiting":  waiting,
	"busy":     busy,
	"prose":    prose,
	"wide":     wide,
	"exact":    exact,
	"hostile":  hostile,
	"labels":   labels,
	"job":      job,
	"reviewer": reviewer,
	"idle":     idle,
	"bursts":   bursts,
	"picture":  picture,
}

// one is a call from its first byte to its end, and a text after it.
func one(f *film) {
	f.wait(500)
	c := f.announce("c1", "exec_command", "go test ./...")
	f.wait(700)
	for _, piece := range []string{`{"cmd":"go te`, `st ./`, `..."}`} {
		c.emit(event.ToolCallArgsDeltaEvent{ToolCallID: "c1", Delta: piece})
		f.wait(700)
	}
	c.run()
	c.print("ok  a\n")
	f.wait(1500)
	c.print("ok  b\n")
	f.wait(700)
	c.exit(0)
	f.wait(2000)
	f.says("m1", "All is well.\n")
	f.wait(500)
	f.end()
}

// args streams a long patch.
func args(f *film) {
	c := f.announce("c1", "apply_patch", "x")
	text := `{"path":"` + strings.Repeat("0123456789", 30) + `"}`
	for i := 0; i < len(text); i += 13 {
		c.emit(event.ToolCallArgsDeltaEvent{ToolCallID: "c1", Delta: text[i:min(len(text), i+13)]})
		f.wait(250)
	}
	c.what = strings.Repeat("0123456789", 30)
	c.run()
	c.result(event.ToolResultEvent{Display: "patched"})
	f.end()
}

func loud(f *film, code int) {
	c := f.begin("c1", "exec_command", "make", 1, 100)
	for i := range 300 {
		c.print("line %d\n", i+1)
		f.wait(10)
	}
	f.wait(500)
	c.exit(code)
	f.wait(300)
	f.end()
}

func threeSeconds(f *film) {
	c := f.begin("c1", "exec_command", "sleep 3", 1, 100)
	f.wait(3000)
	c.exit(0)
	f.wait(1500)
	f.end()
}

// everyEnd has a call for each way in which one can end.
func everyEnd(f *film) {
	f.announce("c1", "exec_command", "git push --force origin main").deny("no-force-push", "")
	c := f.begin("c2", "exec_command", "./e2e.sh", 1, 10)
	c.print("waiting for the server\n")
	f.wait(2000)
	c.emit(event.TerminalCompletedEvent{ToolCallID: "c2", TerminalID: "tc2", Signal: "SIGKILL", TimedOut: true})
	c.result(event.ToolResultEvent{Display: "timed out", IsError: true, Error: &event.Err{Code: "timeout", Message: "timed out"}, DurationMS: 2000})
	f.begin("c3", "exec_command", "npm run dev", 1, 10).lost("cancelled")
	f.begin("c4", "spawn_agent", "/root/reviewer", 1, 10).lost("turn_ended")
	f.begin("c5", "view_image", "missing.png", 1, 10).result(event.ToolResultEvent{Display: "no such file", IsError: true, Content: "no such file"})
	c = f.begin("c6", "exec_command", "go test ./runner/...", 1, 10)
	c.print("FAIL\n")
	c.exit(1)
	f.begin("c7", "exec_command", "go build ./...", 1, 10).exit(0)
	f.wait(300)
	f.end()
}

// eight calls run at a time, each with its own output.
func eight(f *film) {
	var calls []*call
	for i := range 8 {
		calls = append(calls, f.begin(fmt.Sprintf("c%d", i+1), "exec_command", fmt.Sprintf("task %d", i+1), 3, 20))
	}
	for range 40 {
		for i, c := range calls {
			c.print("out-%d\n", i+1)
		}
		f.wait(100)
	}
	for _, c := range calls {
		c.exit(1)
		f.wait(100)
	}
	f.wait(300)
	f.end()
}

func reverse(f *film) {
	var calls []*call
	for i := range 6 {
		calls = append(calls, f.begin(fmt.Sprintf("c%d", i+1), "exec_command", fmt.Sprintf("task %d", i+1), 1, 20))
	}
	for i := range calls {
		f.wait(300)
		calls[len(calls)-1-i].exit(0)
	}
	f.wait(300)
	f.end()
}

// spawn begins a session of a sub-agent.
func (f *film) spawn(c *call, name string) event.Origin {
	o := event.Origin{SessionID: "ses_" + name, ParentSessionID: f.session.SessionID, Agent: "/root/" + name}
	f.emitAs(o, event.SessionStartedEvent{SpawnedByToolCallID: c.id})
	o.Turn = 1
	f.emitAs(o, event.TurnStartedEvent{Input: "prompt"})
	return o
}

func (f *film) endAgent(o event.Origin) {
	f.emitAs(o, event.TurnFinishedEvent{Status: "completed"})
	o.Turn = 0
	f.emitAs(o, event.SessionFinishedEvent{Status: "completed"})
}

// under begins a call of a sub-agent.
func (f *film) under(o event.Origin, id, tool, what string) *call {
	root := f.session
	f.session = o
	c := f.announce(id, tool, what)
	c.run()
	f.session = root
	return c
}

// agents has two sub-agents that work at the same time.
func agents(f *film) {
	s1 := f.begin("s1", "spawn_agent", "/root/left", 1, 20)
	s2 := f.begin("s2", "spawn_agent", "/root/right", 1, 20)
	left, right := f.spawn(s1, "left"), f.spawn(s2, "right")
	for i := range 5 {
		a := f.under(left, fmt.Sprintf("l%d", i), "exec_command", fmt.Sprintf("left %d", i))
		b := f.under(right, fmt.Sprintf("r%d", i), "exec_command", fmt.Sprintf("right %d", i))
		f.wait(100)
		b.print("of right %d\n", i)
		a.print("of left %d\n", i)
		f.wait(100)
		b.exit(1)
		a.exit(1)
	}
	f.endAgent(left)
	f.endAgent(right)
	s1.result(event.ToolResultEvent{Display: "done"})
	s2.result(event.ToolResultEvent{Display: "done"})
	f.wait(300)
	f.end()
}

// odd is no stream that drover writes: results before calls, twice, of nobody.
func odd(f *film) {
	result := func(id string) event.Body {
		return event.ToolResultEvent{ToolCallID: id, ToolName: "exec_command", Display: "done"}
	}
	f.emit(result("c1"))
	f.emit(event.ToolCallEvent{ToolCallID: "c1", ToolName: "exec_command", Display: "run: first", Args: json.RawMessage(`{}`)})
	f.emit(result("c1"))
	f.wait(300)
	c := f.begin("c2", "exec_command", "second", 1, 10)
	c.exit(0)
	c.emit(event.ToolCallArgsDeltaEvent{ToolCallID: "c2", Delta: "late"})
	f.emit(result("c2"))
	f.wait(300)
	f.emit(event.TerminalAppendStringEvent{ToolCallID: "c3", TerminalID: "tc3", Delta: "of nobody\n"})
	f.wait(300)
	f.end()
}

// orphan has a call without a result between two that have one.
func orphan(f *film) {
	f.begin("c1", "exec_command", "never ends", 1, 10)
	f.begin("c2", "exec_command", "ends", 1, 10).exit(0)
	f.wait(1000)
	f.end()
}

func textBehind(f *film) {
	c := f.begin("c1", "exec_command", "slow", 1, 10)
	f.wait(500)
	f.emit(event.MessageDeltaEvent{MessageID: "m1", Delta: "text that comes behind\nand more"})
	f.wait(1500)
	c.exit(0)
	f.wait(500)
	f.emit(event.MessageEvent{MessageID: "m1", Role: "assistant", Text: "text that comes behind\nand more", Phase: "commentary"})
	f.end()
}

func forty(f *film) {
	var calls []*call
	for i := range 40 {
		c := f.begin(fmt.Sprintf("c%d", i+1), "exec_command", fmt.Sprintf("task %d", i+1), 1, 10)
		c.print("out %d\n", i+1)
		calls = append(calls, c)
	}
	for i := range calls {
		f.wait(50)
		calls[(i*7)%40].exit(0)
	}
	f.wait(500)
	f.end()
}

func waiting(f *film) {
	f.wait(4000)
	f.says("m1", "Done.\n")
	f.end()
}

// busy commits forty calls in twelve seconds while five others run.
func busy(f *film) {
	var long []*call
	for i := range 4 {
		long = append(long, f.begin(fmt.Sprintf("l%d", i), "spawn_agent", fmt.Sprintf("/root/a%d", i), 1, 10))
	}
	o := f.spawn(long[0], "a0")
	for _, c := range long {
		c.result(event.ToolResultEvent{Display: "spawned"})
	}
	for i := range 40 {
		c := f.begin(fmt.Sprintf("c%d", i), "exec_command", fmt.Sprintf("COMMIT%02d", i+1), 1, 20)
		for j := range 14 {
			c.print("step %d of %d in a row that is rather long, as rows of tools are\n", j, i)
			f.wait(20)
		}
		c.exit(0)
	}
	f.endAgent(o)
	f.wait(2500)
	f.end()
}

func prose(f *film) {
	text := strings.TrimSpace(strings.Repeat("A paragraph of words that goes on and on. ", 8))[:300]
	f.says("m1", text+"\n")
	f.wait(3000)
	f.end()
}

func wide(f *film) {
	c := f.begin("c1", "exec_command", "emoji", 1, 10)
	lines := []string{"👩‍👩‍👧‍👦👨‍👩‍👦 families 👩‍👩‍👧‍👦👨‍👩‍👦👩‍👩‍👧‍👦👨‍👩‍👦👩‍👩‍👧‍👦👨‍👩‍👦", "🇩🇪🇫🇷🇯🇵🇧🇷 flags 🇩🇪🇫🇷🇯🇵🇧🇷🇩🇪🇫🇷🇯🇵🇧🇷🇩🇪🇫🇷🇯🇵🇧🇷🇩🇪🇫🇷🇯🇵🇧🇷", strings.Repeat("世界", 40), strings.Repeat("e\u0301a\u0308", 50), "a\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm"}
	for i := range 100 {
		c.print("%s\n", lines[i%len(lines)])
		f.wait(100)
	}
	c.exit(1)
	f.wait(300)
	f.end()
}

// exact has text lines that are as wide as the terminal, and twice that.
func exact(f *film) {
	f.says("m1", strings.Repeat("x", 80)+"\nshort\n"+strings.Repeat("y", 160)+"\nlast\n")
	f.wait(500)
	f.end()
}

// hostile prints what must never reach a terminal.
func hostile(f *film) {
	c := f.begin("c1", "exec_command", "hostile", 1, 10)
	for _, s := range []string{
		"a\x1b]52;c;aGFja2Vk\x07b\n", "c\x1b]52;c;aGFja2Vk\x1b\\d\n", "e\x1b]0;TITLE\x07f\n", "g\x1b]8;;http://x\x1b\\h\n", "i\x1bPq#0\x1b\\j\n",
		"k\x1bcl\n", "m\x1b[2Jn\n", "o\x1b[?1049hp\n", "q\u009b2Jr\n", "s\x1b]5", "2;c;aGFja2Vk\x07t\n", "u\x1b[3", "1mv\n",
	} {
		c.print("%s", s)
		f.wait(250)
	}
	f.wait(1000)
	c.exit(1)
	f.wait(300)
	f.end()
}

// labels has odd characters in the arguments of a call.
func labels(f *film) {
	c := f.begin("c1", "exec_command", "x\u202ey\u200bz\nw\x1b[2Jv", 2, 300)
	f.wait(1500)
	c.exit(0)
	f.wait(300)
	f.end()
}

// reviewer is a sub-agent with thirty calls, one of which fails.
func reviewer(f *film) {
	s := f.begin("s1", "spawn_agent", "/root/reviewer", 1, 20)
	o := f.spawn(s, "reviewer")
	for i := range 30 {
		c := f.under(o, fmt.Sprintf("r%d", i), "exec_command", fmt.Sprintf("review %d", i))
		f.wait(60)
		if i == 17 {
			c.emit(event.TerminalCompletedEvent{ToolCallID: c.id, TerminalID: "t" + c.id, IsError: true, Signal: "SIGKILL"})
			c.result(event.ToolResultEvent{Display: "no such file", IsError: true, Content: "no such file"})
			continue
		}
		c.exit(0)
	}
	f.endAgent(o)
	s.result(event.ToolResultEvent{Display: "done"})
	f.wait(300)
	f.end()
}

func idle(f *film) {
	c := f.begin("c1", "exec_command", "sleep 60", 1, 10)
	f.wait(60_000)
	c.exit(0)
	f.end()
}

// bursts are four calls that print a lot at once, with remarks between.
func bursts(f *film) {
	var calls []*call
	for i := range 4 {
		calls = append(calls, f.begin(fmt.Sprintf("c%d", i), "exec_command", fmt.Sprintf("burst %d", i), 1, 10))
	}
	for n := range 100 {
		for i, c := range calls {
			for range 20 {
				c.print("of %d\n", i)
			}
		}
		if n%10 == 0 {
			f.emit(event.NoticeEvent{Level: "warning", Code: "note", Message: fmt.Sprintf("remark %d", n)})
		}
		f.wait(50)
	}
	for _, c := range calls {
		c.exit(1)
	}
	f.wait(300)
	f.end()
}

// picture is the run that the manual shows, in the middle of its work.
func picture(f *film) {
	f.says("m1", "The replay test fails. I run it while I look at the failing package.\n")
	f.wait(2000)
	c := f.begin("c1", "exec_command", "go build ./...", 1, 10)
	f.wait(3100)
	c.exit(0)
	p := f.begin("c2", "apply_patch", "runner/loop.go +14 −3, runner/calls.go +2 −2", 1, 100)
	f.wait(100)
	p.result(event.ToolResultEvent{Display: "patched", DurationMS: 100})
	c = f.begin("c3", "exec_command", "go vet ./...", 1, 10)
	f.wait(12000)
	c.print("runner/loop.go:88:2: unreachable code\n")
	c.exit(1)
	f.announce("c4", "exec_command", "git push --force origin main").deny("no-force-push", "")
	f.endTurn()
	f.turn()
	f.wait(40000)
	c = f.begin("c5", "exec_command", "go test ./runner/... -run TestReplay", 1, 10)
	f.wait(38000)
	c.print("ok    runner/event  0.412s\n--- FAIL: TestReplay (0.03s)\n    replay_test.go:88: got 3 frames, want 2\n")
	search := f.begin("c6", "search_in_files", "\"mark_orphan\" in runner/", 1, 10)
	f.wait(3000)
	p = f.announce("c7", "apply_patch", "x")
	p.emit(event.ToolCallArgsDeltaEvent{ToolCallID: "c7", Delta: "*** Begin Patch\n*** Update File: runner/board.go\n@@ func (b *Board) finish()\n-\t\tbreak\n+\t\tcont"})
	list := f.announce("c8", "list_dir", "runner")
	f.wait(60000)
	c.exit(1)
	search.result(event.ToolResultEvent{Display: "2 matches"})
	p.what = ""
	p.emit(event.ToolIncompleteEvent{ToolCallID: "c7", ToolName: "apply_patch", Reason: "turn_ended"})
	list.run()
	list.result(event.ToolResultEvent{Display: "12 entries"})
	f.end()
}
