package cmd

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"drover/output"
)

// testPrinters are the formats of policy test.
var testPrinters = map[string]func(io.Writer, []suiteResult) error{
	"text": printTestText, "json": printTestJSON, "junit": printTestJUnit, "tap": printTestTAP,
}

func printTestText(w io.Writer, suites []suiteResult) error {
	var b strings.Builder
	for _, s := range suites {
		for _, c := range s.Cases {
			if !c.OK {
				fmt.Fprintln(&b, clean("FAIL %s %s: expected %s, got %s", place(c.File, c.Line), c.Name, c.expected(), c.got()))
				fmt.Fprintln(&b, clean("  call: %s", c.Call))
				if c.Got != nil {
					fmt.Fprintln(&b, clean("  decided by %s%s", c.Got.who(), because(c.Got.Reason)))
				}
			}
		}
		for _, r := range s.Untouched {
			fmt.Fprintln(&b, clean("%s: untested: rule %q decides no case", place(r.File, r.Line), r.ID))
		}
		verdict := "ok"
		if s.Failed > 0 {
			verdict = "FAILED"
		}
		fmt.Fprint(&b, clean("%s: %s: %d of %d cases passed", s.Policy, verdict, s.Passed, len(s.Cases)))
		if s.Untouched != nil {
			fmt.Fprintf(&b, ", %d of %d rules untested", len(s.Untouched), s.Rules)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func printTestJSON(w io.Writer, suites []suiteResult) error {
	doc := struct {
		Passed int           `json:"passed"`
		Failed int           `json:"failed"`
		Suites []suiteResult `json:"suites"`
	}{Suites: suites}
	for _, s := range suites {
		doc.Passed, doc.Failed = doc.Passed+s.Passed, doc.Failed+s.Failed
	}
	return json.NewEncoder(w).Encode(doc)
}

func printTestTAP(w io.Writer, suites []suiteResult) error {
	var b strings.Builder
	n := 0
	for _, s := range suites {
		n += len(s.Cases)
	}
	fmt.Fprintf(&b, "TAP version 13\n1..%d\n", n)
	n = 0
	for _, s := range suites {
		for _, c := range s.Cases {
			n++
			verdict := "ok"
			if !c.OK {
				verdict = "not ok"
			}
			// A # would begin a directive.
			fmt.Fprintf(&b, "%s %d - %s\n", verdict, n, strings.ReplaceAll(clean("%s: %s", place(c.File, c.Line), c.Name), "#", `\#`))
			if c.OK {
				continue
			}
			fmt.Fprintf(&b, "  ---\n  call: %q\n  expected: %q\n  got: %q\n", c.Call, c.expected(), c.got())
			if c.Got != nil {
				fmt.Fprintf(&b, "  decided by: %q\n  reason: %q\n", c.Got.who(), c.Got.Reason)
			}
			b.WriteString("  ...\n")
		}
		for _, r := range s.Untouched {
			fmt.Fprintln(&b, clean("# %s: untested: rule %q decides no case", place(r.File, r.Line), r.ID))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Tests   int          `xml:"tests,attr"`
	Failed  int          `xml:"failures,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name   string      `xml:"name,attr"`
	Tests  int         `xml:"tests,attr"`
	Failed int         `xml:"failures,attr"`
	Cases  []junitCase `xml:"testcase"`
	Output string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func printTestJUnit(w io.Writer, suites []suiteResult) error {
	var doc junitSuites
	for _, s := range suites {
		js := junitSuite{Name: output.Clean(s.Policy), Tests: len(s.Cases), Failed: s.Failed}
		for _, c := range s.Cases {
			jc := junitCase{Name: output.Clean(c.Name), Class: output.Clean(s.Policy), File: output.Clean(c.File), Line: c.Line}
			if !c.OK {
				text := fmt.Sprintf("%s\ncall: %s\n", place(c.File, c.Line), c.Call)
				if c.Got != nil {
					text += "decided by " + c.Got.who() + because(c.Got.Reason) + "\n"
				}
				jc.Failure = &junitFailure{Message: clean("expected %s, got %s", c.expected(), c.got()), Text: text}
			}
			js.Cases = append(js.Cases, jc)
		}
		for _, r := range s.Untouched {
			js.Output += clean("%s: untested: rule %q decides no case", place(r.File, r.Line), r.ID) + "\n"
		}
		doc.Tests, doc.Failed = doc.Tests+js.Tests, doc.Failed+js.Failed
		doc.Suites = append(doc.Suites, js)
	}
	out, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("encode junit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}
