package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// floorMain is the minimal client: it sends what has been said so far, reads
// the stream, runs the commands it is told, and sends their output back. It
// speaks Chat Completions only and checks nothing.
func floorMain(args []string) int {
	flags := flag.NewFlagSet("floor", flag.ExitOnError)
	url := flags.String("url", "", "server")
	model := flags.String("model", "", "what to play")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	messages := []map[string]any{{"role": "user", "content": "go"}}
	for {
		text, calls, err := ask(*url, *model, messages)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if len(calls) == 0 {
			fmt.Println(text)
			return 0
		}
		results := make([]string, len(calls))
		var group sync.WaitGroup
		for i, c := range calls {
			group.Go(func() {
				out, _ := exec.Command("bash", "-c", c.cmd).CombinedOutput() // the exit code is not the floor's business
				if len(out) > 40_000 {
					out = out[:40_000]
				}
				results[i] = string(out)
			})
		}
		group.Wait()
		for i, c := range calls {
			messages = append(messages,
				map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": c.id, "type": "function",
					"function": map[string]string{"name": "exec_command", "arguments": c.args}}}},
				map[string]any{"role": "tool", "tool_call_id": c.id, "content": results[i]})
		}
	}
}

type floorCall struct{ id, args, cmd string }

func ask(url, model string, messages []map[string]any) (text string, calls []floorCall, err error) {
	body, err := json.Marshal(map[string]any{"model": model, "stream": true, "messages": messages})
	if err != nil {
		return "", nil, err
	}
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	var b strings.Builder
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return "", nil, err
		}
		for _, choice := range chunk.Choices {
			b.WriteString(choice.Delta.Content)
			for _, c := range choice.Delta.ToolCalls {
				for len(calls) <= c.Index {
					calls = append(calls, floorCall{})
				}
				calls[c.Index].id += c.ID
				calls[c.Index].args += c.Function.Arguments
			}
		}
	}
	for i := range calls {
		var args struct{ Cmd string }
		if err := json.Unmarshal([]byte(calls[i].args), &args); err != nil {
			return "", nil, err
		}
		calls[i].cmd = args.Cmd
	}
	return b.String(), calls, lines.Err()
}
