package lint

import (
	"slices"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/policy"
)

var (
	codeAckRefused = &diag.Code{ID: "HALO2390", Severity: diag.Error, Title: "acknowledgement of what cannot be acknowledged", Since: "0.1.0",
		Text:   "Only warnings are acknowledged, by a code that exists and a path below the repo. An error is fixed, or permitted by an Exception document when it is a loosening.",
		Before: "acknowledge:\n  - {code: HALO1203, path: policy.yaml, why: known, until: 2027-01-31}", After: "acknowledge:\n  - {code: HALO1210, path: policy.yaml, why: the subdomains are ours, until: 2027-01-31}"}
	codeAckExpired = &diag.Code{ID: "HALO2391", Severity: diag.Warning, Title: "acknowledgement has expired", Since: "0.1.0",
		Text:   "The acknowledgement is past its date, so that the warnings count again. Fix them, or decide again and give a new date.",
		Before: "acknowledge:\n  - {code: HALO1210, path: policy.yaml, why: the subdomains are ours, until: 2020-01-31}", After: "acknowledge:\n  - {code: HALO1210, path: policy.yaml, why: the subdomains are ours, until: 2027-01-31}"}
	codeAckUnused = &diag.Code{ID: "HALO2392", Severity: diag.Warning, Title: "acknowledgement of nothing", Since: "0.1.0",
		Text: "No warning has this code at this path. Remove the acknowledgement: it would hide a later one."}
)

// CheckAcknowledgements reports acknowledgements in halos.yaml that cannot be: of an unknown code, of an error, at no path of the repo. Codes are all codes that
// exist.
func CheckAcknowledgements(repo *policy.Repo, codes []*diag.Code, diags *diag.List) {
	if repo.Root == nil {
		return
	}
	for i, a := range repo.Root.Acknowledge {
		at := indexed("acknowledge", i)
		if a.Code.IsSet() {
			known := slices.IndexFunc(codes, func(c *diag.Code) bool { return c.ID == a.Code.V })
			switch {
			case known < 0:
				diags.Add(about(codeAckRefused, a.Code.Pos, at+".code", "there is no code %q", a.Code.V))
			case codes[known].Severity == diag.Error:
				diags.Add(about(codeAckRefused, a.Code.Pos, at+".code", "%s is an error, and errors cannot be acknowledged", a.Code.V))
			}
		}
		if a.Path.IsSet() {
			if pattern, problem := fspath.ParseProtected(a.Path.V); problem != nil || pattern.Kind() != fspath.Relative {
				diags.Add(about(codeAckRefused, a.Path.Pos, at+".path", "%q is not a path or glob below the repo", a.Path.V))
			}
		}
	}
}

func about(code *diag.Code, pos diag.Pos, path, format string, args ...any) diag.Diagnostic {
	d := diag.New(code, pos, path, format, args...)
	d.Document = "Halos"
	return d
}

// Acknowledge removes the warnings that halos.yaml acknowledges and adds warnings about acknowledgements that are expired and, when all is there that a repo can
// be warned about (an error keeps later warnings from being found), about those that are needless. The result is in the total order.
func Acknowledge(repo *policy.Repo, ds []diag.Diagnostic, now time.Time, all bool) []diag.Diagnostic {
	if repo.Root == nil || len(repo.Root.Acknowledge) == 0 {
		return ds
	}
	out := slices.Clone(ds)
	var own []diag.Diagnostic
	for i, a := range repo.Root.Acknowledge {
		at := indexed("acknowledge", i)
		pattern, problem := fspath.ParseProtected(a.Path.V)
		if !a.Code.IsSet() || !a.Until.IsSet() || problem != nil {
			continue // reported already
		}
		if now.Unix() >= a.Until.Unix {
			own = append(own, about(codeAckExpired, a.Until.Pos, at+".until", "the acknowledgement of %s expired on %s", a.Code.V, a.Until.V))
			continue
		}
		before := len(out)
		out = slices.DeleteFunc(out, func(d diag.Diagnostic) bool {
			file := repo.Files.Name(d.Pos)
			if file == "" {
				file = d.File
			}
			return d.Severity != diag.Error && d.Code.ID == a.Code.V && fspath.Matches(pattern, "/"+file, "/", "")
		})
		if all && len(out) == before {
			own = append(own, about(codeAckUnused, a.Code.Pos, at+".code", "no warning %s is at %s", a.Code.V, a.Path.V))
		}
	}
	out = append(out, own...)
	slices.SortStableFunc(out, diag.Compare)
	return out
}
