package csv

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"testing"
)

// many is a table of 100,000 rows, of about 9 MB.
func many(format string) string {
	var b strings.Builder
	if format == "csv" {
		b.WriteString("id,title,body\n")
	}
	for i := range 100_000 {
		if format == "csv" {
			fmt.Fprintf(&b, "item-%d,A title of some words,\"A body, with a comma and \"\"quotes\"\" in it\"\n", i)
		} else {
			fmt.Fprintf(&b, `{"id":"item-%d","title":"A title of some words","body":"A body, with \"quotes\" in it"}`+"\n", i)
		}
	}
	return b.String()
}

func BenchmarkRead100000Rows(b *testing.B) {
	for _, format := range []string{"csv", "jsonl"} {
		text := many(format)
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			o := Options{Format: format, IDColumn: "id"}
			if format == "jsonl" {
				o.Header = []string{"id", "title", "body"}
			}
			for b.Loop() {
				if table, err := Read(strings.NewReader(text), o, nil); err != nil || table.Rows != 100_000 {
					b.Fatal(table, err)
				}
			}
		})
	}
	// The floor: the reader behind, without ids, hash and limits.
	text := many("csv")
	b.Run("encoding/csv", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r := csv.NewReader(strings.NewReader(text))
			r.ReuseRecord = true
			for {
				if _, err := r.Read(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
