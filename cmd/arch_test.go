package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowedImports is the house: a package may import what its row names, and
// the rows it inherits from below. An entry ending in /* stands for every
// package below it.
var allowedImports = []struct {
	from string
	may  []string
}{
	{"output/event", nil},
	{"output/fault", nil},
	{"output/internal/board", []string{"output/event", "output/internal/term"}},
	{"output/internal/*", nil},
	{"output/*", []string{"output/event", "output/fault", "output/internal/*"}},
	{"output", []string{"output/*"}},
	{"tools/policy", []string{"output/event", "output/fault"}},
	{"tools/*", []string{"output/event", "output/fault", "tools/policy", "tools/internal/*", "tools/sandbox"}},
	{"tools", []string{"tools/*", "output/event", "output/fault"}},
	{"runner/internal/*", []string{"output/event", "output/fault"}},
	{"runner/*", []string{"runner/internal/*", "output/event", "output/fault"}},
	{"runner", []string{"runner/*", "tools", "tools/policy", "tools/sandbox", "output/event", "output/fault"}},
	{"jobs/*", []string{"jobs/*", "runner", "tools", "output/event", "output/fault"}},
	{"jobs", []string{"jobs/*", "runner", "tools", "tools/policy", "output/event", "output/fault"}},
	{"cmd/config", []string{"runner", "runner/*", "tools", "output/fault"}},
	{"cmd/*", []string{"*"}},
	{"cmd", []string{"*"}},
	{"examples/*", []string{"*"}},
	{"examples", []string{"*"}},
}

func TestImportsRunDown(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if f.test {
			continue
		}
		row := slices.IndexFunc(allowedImports, func(r struct {
			from string
			may  []string
		}) bool {
			return matches(r.from, f.pkg)
		})
		if row < 0 {
			t.Errorf("%s: the package %q has no row in the import table", f.path, f.pkg)
			continue
		}
		for _, imp := range f.tree.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			ours, ok := strings.CutPrefix(path, "drover/")
			if !ok {
				continue
			}
			if !slices.ContainsFunc(allowedImports[row].may, func(m string) bool { return matches(m, ours) }) {
				t.Errorf("%s: %q may not import %q", f.path, f.pkg, ours)
			}
		}
	}
}

func TestOnlyTheCommandLineKnowsCobraAndViper(t *testing.T) {
	for _, f := range sourceFiles(t) {
		for _, imp := range f.tree.Imports {
			switch {
			case strings.Contains(imp.Path.Value, "spf13/viper") && f.pkg != "cmd/config":
				t.Errorf("%s imports viper; only cmd/config reads settings", f.path)
			case strings.Contains(imp.Path.Value, "spf13/cobra") && f.pkg != "cmd":
				t.Errorf("%s imports cobra; only cmd has commands", f.path)
			}
		}
	}
}

// TestNobodyElseWritesToStdout finds os.Stdout and the printing functions that
// use it. Formats get a writer; only main names the real stdout.
func TestNobodyElseWritesToStdout(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if f.test || f.pkg == "cmd/drover" || strings.HasPrefix(f.pkg, "examples/") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := x.Name + "." + sel.Sel.Name
			switch name {
			case "os.Stdout", "fmt.Print", "fmt.Printf", "fmt.Println":
				t.Errorf("%s: %s writes to stdout", f.path, name)
			}
			return true
		})
	}
}

type sourceFile struct {
	path, pkg string
	test      bool
	tree      *ast.File
}

// sourceFiles parses every Go file of the module.
func sourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	root := ".."
	var files []sourceFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "workspace" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{
			path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(path, "_test.go"), tree: tree,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files
}

func matches(pattern, pkg string) bool {
	if pattern == "*" || pattern == pkg {
		return true
	}
	dir, ok := strings.CutSuffix(pattern, "/*")
	return ok && strings.HasPrefix(pkg, dir+"/")
}
