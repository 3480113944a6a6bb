package jobs

import (
	"context"
	"fmt"
	"io"
	"iter"

	"drover/jobs/result"
	"drover/jobs/store"
	"drover/output/fault"
)

// Export writes the result of a job as it is now, as csv, jsonl or junit, to the
// file, or to w if that is "".
func Export(ctx context.Context, s *store.Store, j *store.Job, format, file string, w io.Writer) error {
	spec, err := decodeSpec(j.Spec)
	if err != nil {
		return err
	}
	t := result.Table{JobID: j.ID, Name: j.Name, Header: j.Header, FormulaSafe: spec.FormulaSafe}
	write := func(w io.Writer) error {
		switch format {
		case "jsonl":
			return result.WriteJSONL(w, t, items(ctx, s, j.ID, false))
		case "junit":
			return result.WriteJUnit(w, t, func() iter.Seq2[result.Item, error] { return items(ctx, s, j.ID, false) })
		}
		return result.WriteCSV(w, t, items(ctx, s, j.ID, false))
	}
	if file == "" {
		return write(w)
	}
	if spec.SourcePath != "-" && samePlace(file, spec.SourcePath) {
		return &fault.Error{Code: "output_path", What: fmt.Sprintf("the output %q cannot be used", file), Why: "it is the table itself, which would be lost",
			Fix: "name another file with -o", Exit: fault.Usage}
	}
	if err := result.Replace(file, write); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
