package slug

import "testing"

func TestMake(t *testing.T) {
	for title, want := range map[string]string{
		"Hello":             "hello",
		"Hello, world":      "hello-world",
		"  Ten thousand!  ": "ten-thousand",
	} {
		if got := Make(title); got != want {
			t.Errorf("Make(%q) = %q, want %q", title, got, want)
		}
	}
}
