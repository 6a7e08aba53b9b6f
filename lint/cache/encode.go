package cache

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/compiler/tape"
	"halos.dev/halo/lint/report"
)

// findings walks the findings of a report and the files that they lie in; codes are all codes that exist.
func findings(t *tape.Tape, r *report.Report, codes []*diag.Code) {
	byID := make(map[string]*diag.Code, len(codes))
	for _, c := range codes {
		byID[c.ID] = c
	}
	tape.Each(t, (*[]source.File)(&r.Files), func(f *source.File) {
		t.Str(&f.Name)
		t.Int(&f.Size)
		t.Bytes(f.Digest[:])
	})
	tape.Each(t, &r.Diagnostics, func(d *diag.Diagnostic) {
		id := ""
		if d.Code != nil {
			id = d.Code.ID
		}
		t.Str(&id)
		if d.Code = byID[id]; d.Code == nil {
			t.Fail()
		}
		severity := uint64(d.Severity)
		t.Num(&severity)
		d.Severity = diag.Severity(severity)
		t.Num((*uint64)(&d.Pos))
		for _, s := range []*string{&d.File, &d.Document, &d.Path, &d.Message, &d.Hint} {
			t.Str(s)
		}
		tape.Each(t, &d.Related, func(rel *diag.Related) {
			t.Num((*uint64)(&rel.Pos))
			t.Str(&rel.Message)
		})
	})
}
