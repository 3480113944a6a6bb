package result

import (
	"bytes"
	"encoding/xml"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func junit(t *testing.T, table Table, items ...Item) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJUnit(&b, table, func() iter.Seq2[Item, error] { return list(nil, items...) }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJUnitCountsWhatItHolds(t *testing.T) {
	var items []Item
	for _, status := range []string{"completed", "completed", "failed", "blocked", "timeout", "invalid_output", "limit", "cancelled", "skipped", "pending", "running"} {
		items = append(items, Item{ItemID: status, Status: status, DurationMS: 100})
	}
	text := junit(t, Table{Name: "triage"}, items...)
	var got struct {
		Suite struct {
			Name     string  `xml:"name,attr"`
			Tests    int     `xml:"tests,attr"`
			Failures int     `xml:"failures,attr"`
			Errors   int     `xml:"errors,attr"`
			Skipped  int     `xml:"skipped,attr"`
			Time     float64 `xml:"time,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Class   string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	s := got.Suite
	if s.Name != "triage" || s.Tests != 11 || s.Failures != 5 || s.Errors != 0 || s.Skipped != 4 || s.Time != 1.1 {
		t.Errorf("got %+v", s)
	}
	failures, skipped := 0, 0
	for _, c := range s.Cases {
		if c.Class != "triage" {
			t.Errorf("case %s is of class %q", c.Name, c.Class)
		}
		if c.Failure != nil {
			failures++
		}
		if c.Skipped != nil {
			skipped++
		}
	}
	if len(s.Cases) != s.Tests || failures != s.Failures || skipped != s.Skipped {
		t.Errorf("%d cases, %d failures, %d skipped; the head says %d, %d, %d", len(s.Cases), failures, skipped, s.Tests, s.Failures, s.Skipped)
	}
}

func TestJUnitFailureHasItsStatusAndMessage(t *testing.T) {
	got := junit(t, Table{Name: "n"}, Item{ItemID: "a", Status: "blocked", LastError: "no write\nto /etc", DurationMS: 1500}, Item{ItemID: "b", Status: "cancelled"})
	want := xml.Header + "<testsuites>\n" +
		`<testsuite name="n" tests="2" failures="1" errors="0" skipped="1" time="1.500">` + "\n" +
		`<testcase name="a" classname="n" time="1.500"><failure type="blocked" message="no write">no write&#xA;to /etc</failure></testcase>` + "\n" +
		`<testcase name="b" classname="n" time="0.000"><skipped message="cancelled"></skipped></testcase>` + "\n" +
		"</testsuite>\n</testsuites>\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJUnitOfNoRowsIsWhole(t *testing.T) {
	if got := junit(t, Table{}); !strings.Contains(got, `tests="0"`) || !strings.HasSuffix(got, "</testsuites>\n") {
		t.Errorf("got %s", got)
	}
}

func FuzzJUnitIsXMLWhateverModelsSay(f *testing.F) {
	for _, s := range []string{"\x1b[31mred\x00\x07", "]]>", "<failure>&amp;\"'", "\xff\xfe", "\ufffe\uffff", "\u0085\u2028", "\r\n\t", "\U0001f600", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := junit(t, Table{Name: s}, Item{ItemID: s, Status: "failed", LastError: s}, Item{ItemID: s, Status: s})
		for _, r := range text {
			if r < 0x20 && !strings.ContainsRune("\t\n\r", r) || r == 0xfffe || r == 0xffff {
				t.Fatalf("%U is not in XML 1.0: %q", r, text)
			}
		}
		for dec := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %q", err, text)
			}
		}
	})
}
