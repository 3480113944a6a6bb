// Command picture turns a screen with colours, as tmux captures it, into an SVG:
//
//	go run ./examples/tty/picture <examples/tty/testdata/screen.ansi >docs/frames.svg
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

func main() {
	screen, err := io.ReadAll(os.Stdin)
	if err == nil {
		_, err = io.WriteString(os.Stdout, draw(string(screen)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// Measures of the picture, in pixels.
const (
	columns    = 80
	cellWidth  = 8.4
	lineHeight = 18
	margin     = 14
)

// colours are those of the eight that frames use.
var colours = map[string]string{"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "35": "#d2a8ff", "36": "#76e3ea"}

// draw returns the picture of a screen.
func draw(screen string) string {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	var b strings.Builder
	w := bufio.NewWriter(&b)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">`+"\n",
		columns*cellWidth+2*margin, len(lines)*lineHeight+2*margin)
	fmt.Fprintf(w, "<title>drover in a terminal</title>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n")
	style := look{}
	for i, line := range lines {
		style = drawLine(w, line, margin+(i+1)*lineHeight-5, style)
	}
	fmt.Fprint(w, "</svg>\n")
	_ = w.Flush() // into memory
	return b.String()
}

// look is how text looks.
type look struct {
	colour    string
	bold, dim bool
}

// drawLine draws the pieces of a line, each where its cells are, so that it does
// not matter how wide a font is.
func drawLine(w io.Writer, line string, y int, style look) look {
	column := 0
	for line != "" {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			params, after, _ := strings.Cut(rest, "m")
			style, line = style.change(params), after
			continue
		}
		text := line
		if i := strings.IndexByte(line, '\x1b'); i >= 0 {
			text = line[:i]
		}
		line = line[len(text):]
		drawText(w, text, column, y, style)
		column += ansi.StringWidth(text)
	}
	return style
}

func drawText(w io.Writer, text string, column, y int, style look) {
	shown := strings.TrimLeft(text, " ")
	column += len(text) - len(shown)
	if shown = strings.TrimRight(shown, " "); shown == "" {
		return
	}
	attrs := `fill="#e6edf3"`
	if style.colour != "" {
		attrs = `fill="` + style.colour + `"`
	}
	if style.bold {
		attrs += ` font-weight="bold"`
	}
	if style.dim {
		attrs += ` opacity="0.6"`
	}
	fmt.Fprintf(w, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve" %s>%s</text>`+"\n",
		margin+float64(column)*cellWidth, y, float64(ansi.StringWidth(shown))*cellWidth, attrs, html.EscapeString(shown))
}

func (l look) change(params string) look {
	for p := range strings.SplitSeq(params, ";") {
		switch p {
		case "", "0":
			l = look{}
		case "1":
			l.bold = true
		case "2":
			l.dim = true
		case "22":
			l.bold, l.dim = false, false
		case "39":
			l.colour = ""
		default:
			if c, ok := colours[p]; ok {
				l.colour = c
			}
		}
	}
	return l
}
