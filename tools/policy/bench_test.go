package policy

import (
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkDecideSimpleCommand(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("testdata", "example.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	p := load(b, string(data))
	c := run("go test ./...")
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(c)
	}
}

func BenchmarkDecidePipeline(b *testing.B) {
	p := load(b, "", func(s *Sources) { s.Inline = nil })
	c := run(`cd src && grep -rn "func $name" --include='*.go' . 2>/dev/null | sort | head -20 && echo "$(date)" > out.txt`)
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(c)
	}
}

func BenchmarkDecidePath(b *testing.B) {
	p := load(b, "", func(s *Sources) { s.Inline = nil })
	c := Call{Tool: "apply_patch", Actions: []Action{Write("/w/src/a/b/c.go", "/w/src/a/b/c.go")}}
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(c)
	}
}

func BenchmarkLoadExample(b *testing.B) {
	file := filepath.Join("testdata", "example.yaml")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(Sources{Flags: []string{file}, Roots: Roots{Workspace: "/w"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadPreset(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(Sources{Roots: Roots{Workspace: "/w"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// A line that uses much of the shell, under rules that could be about it.
func BenchmarkDecideNastyLine(b *testing.B) {
	for name, rule := range map[string]string{"commands": "", "paths": "  - {id: no-secrets, effect: deny, path: [\"secrets/**\"]}\n"} {
		b.Run(name, func(b *testing.B) {
			p := load(b, "version: 1\ndefault: allow\nrules:\n  - {id: no-push, effect: deny, argv: [git, push]}\n  - {id: no-rm, effect: deny, argv: [rm, -rf]}\n"+rule)
			c := run(`set -e; d=out; for f in a b c; do cd "$d" && env A=1 timeout 5 grep -n "$f" *.go | sort -u > "$f.txt"; n=$((n+1)); cd ..; done
x=st; x+=atus; git $x; find . -name '*.go' -exec sh -c 'wc -l {}' \; | awk '{ print $1 }' | sed 's/a/b/' | tee out/{a,b}.log; echo "$(date)" "${x#s}" <(ls)`)
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(c)
			}
		})
	}
}
