package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThePictureShowsTheGoldenScreen, and so does the text of the manual.
func TestThePictureShowsTheGoldenScreen(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	screen := read("../testdata/screen.ansi")
	if got := draw(screen); got != read("../../../docs/frames.svg") {
		t.Error("docs/frames.svg is not that of testdata/screen.ansi: run go run ./examples/tty/picture <examples/tty/testdata/screen.ansi >docs/frames.svg")
	}
	plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(screen, "")
	if !strings.Contains(read("../../../README.md"), strings.TrimRight(plain, "\n")) {
		t.Error("README.md does not show the screen of testdata/screen.ansi as text")
	}
}
