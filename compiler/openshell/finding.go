package openshell

import (
	"cmp"
	"slices"

	"halos.dev/halo/compiler/diag"
)

// Layer says who speaks in a finding.
type Layer string

// LayerOpenShell is what today's gateway and supervisor refuse or warn about; LayerHalo is what they accept and what then does not mean what it reads.
const (
	LayerOpenShell Layer = "openshell"
	LayerHalo      Layer = "halo"
)

// Kind names a refusal. OpenShell's own violation names are used where it has one.
type Kind string

// Kinds of OpenShell, then the one of halo's own layer.
const (
	KindParse                      Kind = "parse"
	KindInvalidProcessIdentity     Kind = "InvalidProcessIdentity"
	KindRelativePath               Kind = "RelativePath"
	KindPathTraversal              Kind = "PathTraversal"
	KindOverlyBroadPath            Kind = "OverlyBroadPath"
	KindTooManyPaths               Kind = "TooManyPaths"
	KindFieldTooLong               Kind = "FieldTooLong"
	KindTldWildcard                Kind = "TldWildcard"
	KindInvalidHostWildcard        Kind = "InvalidHostWildcard"
	KindMissingEndpointHost        Kind = "MissingEndpointHost"
	KindMissingEndpointPort        Kind = "MissingEndpointPort"
	KindInvalidEndpointPort        Kind = "InvalidEndpointPort"
	KindMissingTCPEndpointHost     Kind = "MissingTcpEndpointHost"
	KindTCPEndpointIPLiteral       Kind = "TcpEndpointIpLiteral"
	KindInvalidTCPEndpointHost     Kind = "InvalidTcpEndpointHost"
	KindInvalidL7Endpoint          Kind = "InvalidL7Endpoint"
	KindL7Policy                   Kind = "L7Policy" // the supervisor's own check: the gateway lets it pass, then the sandbox is quarantined
	KindUnknownCredentialSigning   Kind = "UnknownCredentialSigning"
	KindMissingSigningService      Kind = "MissingSigningService"
	KindSigningWithBodyRewrite     Kind = "CredentialSigningWithBodyRewrite"
	KindInvalidMiddlewareConfig    Kind = "InvalidMiddlewareConfig"
	KindDuplicateMiddlewareOrder   Kind = "DuplicateMiddlewareOrder"
	KindTooManyMiddlewareConfigs   Kind = "TooManyMiddlewareConfigs"
	KindTooManyMiddlewareSelectors Kind = "TooManyMiddlewareSelectorPatterns"
	KindMiddlewareTLSSkipConflict  Kind = "MiddlewareTlsSkipConflict"
	KindEndpointAmbiguity          Kind = "EndpointAmbiguity"
	KindGateway                    Kind = "Gateway"
	KindStrict                     Kind = "Strict"
)

// Finding is one thing wrong with a policy or with how it is composed. Its place is in the document it was written in.
type Finding struct {
	diag.Diagnostic
	Kinds []Kind // none for a warning of OpenShell
	Layer Layer
	// Origin names the source of the rule it is about: a file, "the workspace hosts", "the built-in base". Empty when it is not about one rule of a composed policy.
	Origin string
	// Strict marks a warning that stops a build: the policy loads, and does not mean what it says.
	Strict bool
}

// Diagnostics returns the findings as diagnostics.
func Diagnostics(fs []Finding) []diag.Diagnostic {
	ds := make([]diag.Diagnostic, len(fs))
	for i, f := range fs {
		ds[i] = f.Diagnostic
	}
	return ds
}

// ForBuild returns the findings with the strict warnings raised to errors.
func ForBuild(fs []Finding) []Finding {
	fs = slices.Clone(fs)
	for i := range fs {
		if fs[i].Strict {
			fs[i].Severity = diag.Error
		}
	}
	return fs
}

// OfLayer returns the findings of one layer.
func OfLayer(fs []Finding, l Layer) []Finding {
	return slices.DeleteFunc(slices.Clone(fs), func(f Finding) bool { return f.Layer != l })
}

// HasErrors reports whether a finding is an error.
func HasErrors(fs []Finding) bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == diag.Error })
}

// from names the source of the findings behind the first n.
func (fs findings) from(n int, origin string) {
	for i := range fs[n:] {
		fs[n+i].Origin = origin
	}
}

func sortFindings(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(diag.Compare(a.Diagnostic, b.Diagnostic), cmp.Compare(a.Layer, b.Layer))
	})
}

// findings collects in the three ways a finding can be meant.
type findings []Finding

// refuse adds an error of OpenShell.
func (fs *findings) refuse(kinds []Kind, code *diag.Code, pos diag.Pos, path, hint, format string, args ...any) {
	d := diag.New(code, pos, path, format, args...)
	d.Severity, d.Hint = diag.Error, hint
	*fs = append(*fs, Finding{Diagnostic: d, Kinds: kinds, Layer: LayerOpenShell})
}

// advise adds a warning of OpenShell; strict says that a build refuses what it warns about.
func (fs *findings) advise(strict bool, code *diag.Code, pos diag.Pos, path, hint, format string, args ...any) {
	d := diag.New(code, pos, path, format, args...)
	d.Severity, d.Hint = diag.Warning, hint
	*fs = append(*fs, Finding{Diagnostic: d, Layer: LayerOpenShell, Strict: strict})
}

// strict adds a warning of halo that stops a build.
func (fs *findings) strict(code *diag.Code, pos diag.Pos, path, hint, format string, args ...any) *Finding {
	d := diag.New(code, pos, path, format, args...)
	d.Severity, d.Hint = diag.Warning, hint
	*fs = append(*fs, Finding{Diagnostic: d, Kinds: []Kind{KindStrict}, Layer: LayerHalo, Strict: true})
	return &(*fs)[len(*fs)-1]
}

// compose adds a finding of composing with the severity of its code.
func (fs *findings) compose(code *diag.Code, pos diag.Pos, path, hint, format string, args ...any) *Finding {
	d := diag.New(code, pos, path, format, args...)
	d.Hint = hint
	*fs = append(*fs, Finding{Diagnostic: d, Kinds: []Kind{KindStrict}, Layer: LayerHalo})
	return &(*fs)[len(*fs)-1]
}
