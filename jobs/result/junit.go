package result

import (
	"encoding/xml"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// suites to verdict are the JUnit format as CI servers read it.
type suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
}

type testcase struct {
	XMLName   xml.Name `xml:"testcase"`
	Name      string   `xml:"name,attr"`
	ClassName string   `xml:"classname,attr"`
	Time      string   `xml:"time,attr"`
	Failure   *verdict `xml:"failure,omitempty"`
	Skipped   *verdict `xml:"skipped,omitempty"`
}

type verdict struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the rows as one test suite, in which every row is a test:
// passed when it is completed, skipped when it was not worked on, failed
// otherwise. The rows are read twice, because the counts come first.
func WriteJUnit(w io.Writer, t Table, items func() iter.Seq2[Item, error]) error {
	s := suite{Name: xmlText(t.Name)}
	var total int64
	for it, err := range items() {
		if err != nil {
			return err
		}
		s.Tests++
		total += it.DurationMS
		switch kind(it.Status) {
		case "failure":
			s.Failures++
		case "skipped":
			s.Skipped++
		}
	}
	s.Time = seconds(total)
	head, err := xml.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	open := strings.TrimSuffix(string(head), "</testsuite>")
	if _, err := io.WriteString(w, xml.Header+"<testsuites>\n"+open+"\n"); err != nil {
		return err
	}
	for it, err := range items() {
		if err != nil {
			return err
		}
		one, err := xml.Marshal(t.testcase(it))
		if err != nil {
			return fmt.Errorf("encode row %s: %w", it.ItemID, err)
		}
		if _, err := w.Write(append(one, '\n')); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "</testsuite>\n</testsuites>\n")
	return err
}

func (t Table) testcase(it Item) testcase {
	c := testcase{Name: xmlText(it.ItemID), ClassName: xmlText(t.Name), Time: seconds(it.DurationMS)}
	message := it.LastError
	if message == "" {
		message = it.Status
	}
	first, _, _ := strings.Cut(message, "\n")
	switch kind(it.Status) {
	case "failure":
		c.Failure = &verdict{Type: it.Status, Message: xmlText(first), Text: xmlText(message)}
	case "skipped":
		c.Skipped = &verdict{Message: xmlText(first)}
	}
	return c
}

func kind(status string) string {
	switch status {
	case "completed":
		return ""
	case "pending", "running", "cancelled", "skipped":
		return "skipped"
	}
	return "failure"
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

// xmlText replaces what XML 1.0 cannot hold, in any spelling.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return r
		case r < 0x20, r == 0xfffe, r == 0xffff, r == utf8.RuneError:
			return '\ufffd'
		}
		return r
	}, s)
}
