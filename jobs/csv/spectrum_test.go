package csv

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShapesOfCSVThatProgramsWrite has the twelve kinds of file that the npm
// package csv-spectrum tests readers with, in texts of our own.
func TestShapesOfCSVThatProgramsWrite(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       [][]string
	}{
		{"comma in quotes", "name,street,town\nAda,\"12, Mill Lane\",Ely\n", [][]string{{"name", "street", "town"}, {"Ada", "12, Mill Lane", "Ely"}}},
		{"empty", "a,b,c\n1,\"\",\"\"\n,,3\n", [][]string{{"a", "b", "c"}, {"1", "", ""}, {"", "", "3"}}},
		{"empty, CR LF", "a,b,c\r\n1,\"\",\"\"\r\n,,3\r\n", [][]string{{"a", "b", "c"}, {"1", "", ""}, {"", "", "3"}}},
		{"escaped quotes", "a,b\n1,\"so \"\"called\"\" tea\"\n2,x\n", [][]string{{"a", "b"}, {"1", `so "called" tea`}, {"2", "x"}}},
		{"JSON", "k,v\n1,\"{\"\"kind\"\": \"\"dot\"\", \"\"at\"\": [1.5, 2]}\"\n", [][]string{{"k", "v"}, {"1", `{"kind": "dot", "at": [1.5, 2]}`}}},
		{"location coordinates", "place,where\nHarbour,\"40°26′46″N, 79°58′56″W\"\n", [][]string{{"place", "where"}, {"Harbour", "40°26′46″N, 79°58′56″W"}}},
		{"newlines", "a,b\n\"one\ntwo\",2\n3,4\n", [][]string{{"a", "b"}, {"one\ntwo", "2"}, {"3", "4"}}},
		{"newlines, CR LF", "a,b\r\n\"one\r\ntwo\",2\r\n3,4\r\n", [][]string{{"a", "b"}, {"one\ntwo", "2"}, {"3", "4"}}},
		{"quotes and newlines", "a,b\n1,\"she\n\"\"said\"\"\n\"\n2,x\n", [][]string{{"a", "b"}, {"1", "she\n\"said\"\n"}, {"2", "x"}}},
		{"simple", "a,b,c\n1,2,3\n", [][]string{{"a", "b", "c"}, {"1", "2", "3"}}},
		{"simple, CR LF", "a,b,c\r\n1,2,3\r\n", [][]string{{"a", "b", "c"}, {"1", "2", "3"}}},
		{"UTF-8", "a,b\n1,ʤ\n2,żółw 世界 🦔\n", [][]string{{"a", "b"}, {"1", "ʤ"}, {"2", "żółw 世界 🦔"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, valuesOf(t, c.text, Options{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// spectrumVariable names the folder of the npm package csv-spectrum.
const spectrumVariable = "DROVER_CSV_SPECTRUM"

// strayQuotes is the one file of csv-spectrum that is refused and not read: it
// has quotes inside cells that are not quoted, which RFC 4180 does not allow and
// which elsewhere are the mark of a row that swallows others. (Its JSON has
// another phone number than its CSV, so that no reader can find the two alike.)
const strayQuotes = "location_coordinates"

func TestFilesOfCSVSpectrum(t *testing.T) {
	dir := os.Getenv(spectrumVariable)
	if dir == "" {
		t.Skip(spectrumVariable + " does not name the folder of the npm package csv-spectrum")
	}
	files, err := filepath.Glob(filepath.Join(dir, "csvs", "*.csv"))
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files in %s, at least 12 are there in the package: %v", len(files), dir, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			right, err := os.ReadFile(filepath.Join(dir, "json", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			// Inside a cell CR LF is read as LF. A single row has no array.
			list := strings.TrimSpace(strings.ReplaceAll(string(right), `\r\n`, `\n`))
			if strings.HasPrefix(list, "{") {
				list = "[" + list + "]"
			}
			var want []map[string]string
			if err := json.Unmarshal([]byte(list), &want); err != nil {
				t.Fatal(err)
			}
			if name == strayQuotes {
				f, _ := mustFail(t, string(text), Options{})
				if f.Code != "csv_row" || !strings.Contains(f.Why, "(line 2, column 24)") {
					t.Errorf("got %s: %v", f.Code, f)
				}
				return
			}
			rows, table := rowsOf(t, string(text), Options{})
			var got []map[string]string
			for _, r := range rows {
				object := map[string]string{}
				for i, column := range table.Header {
					object[column] = r.Values[i]
				}
				got = append(got, object)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
