package cache

import (
	"encoding/binary"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint/report"
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads what the append functions wrote. After the first thing that does not fit, everything is zero and done is false.
type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.data)
	if size <= 0 {
		d.data, d.bad = nil, true
		return 0
	}
	d.data = d.data[size:]
	return n
}

// count reads the length of a list, which has at least a byte for each item.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.data)) {
		d.data, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.data[:n])
	d.data = d.data[n:]
	return s
}

func (d *decoder) done() bool { return !d.bad && len(d.data) == 0 }

// encode writes the findings of a report and the files that they lie in.
func encode(r *report.Report) []byte {
	b := binary.AppendUvarint(nil, uint64(len(r.Files)))
	for _, f := range r.Files {
		b = appendText(b, f.Name)
		b = binary.AppendUvarint(b, uint64(f.Size))
		b = append(b, f.Digest[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Diagnostics)))
	for _, d := range r.Diagnostics {
		b = binary.AppendUvarint(append(appendText(b, d.Code.ID), byte(d.Severity)), uint64(d.Pos))
		for _, s := range []string{d.File, d.Document, d.Path, d.Message, d.Hint} {
			b = appendText(b, s)
		}
		b = binary.AppendUvarint(b, uint64(len(d.Related)))
		for _, rel := range d.Related {
			b = appendText(binary.AppendUvarint(b, uint64(rel.Pos)), rel.Message)
		}
	}
	return b
}

// decode reads what encode wrote; codes are all codes that exist.
func decode(data []byte, codes []*diag.Code) (*report.Report, bool) {
	byID := make(map[string]*diag.Code, len(codes))
	for _, c := range codes {
		byID[c.ID] = c
	}
	d := decoder{data: data}
	r := &report.Report{Files: make(source.Files, d.count())}
	for i := range r.Files {
		f := &r.Files[i]
		f.Name, f.Size = d.text(), int64(d.number())
		d.data = d.data[copy(f.Digest[:], d.data):]
	}
	if n := d.count(); n > 0 {
		r.Diagnostics = make([]diag.Diagnostic, n)
	}
	for i := range r.Diagnostics {
		x := &r.Diagnostics[i]
		x.Code = byID[d.text()]
		if x.Code == nil || len(d.data) == 0 {
			return nil, false
		}
		x.Severity = diag.Severity(d.data[0])
		d.data = d.data[1:]
		x.Pos = diag.Pos(d.number())
		x.File, x.Document, x.Path, x.Message, x.Hint = d.text(), d.text(), d.text(), d.text(), d.text()
		if n := d.count(); n > 0 {
			x.Related = make([]diag.Related, n)
		}
		for j := range x.Related {
			x.Related[j] = diag.Related{Pos: diag.Pos(d.number()), Message: d.text()}
		}
	}
	return r, d.done()
}
