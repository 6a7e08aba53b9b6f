package sign

import "halos.dev/halo/compiler/diag"

// The findings about keys. All but the warning mean that there is no answer (exit status 2).
var (
	CodeBadKey = &diag.Code{
		ID: "HALO1950", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "key cannot be used",
		Text: "A key file is missing, unreadable, of a form or type that is not supported, or cannot be written. Private keys are ECDSA P-256 in PKCS#8, " +
			"encrypted PKCS#8 (PBES2 with AES) or cosign's form, or NAME://REF for the plugin sigstore-kms-NAME on PATH; public keys are PEM \"PUBLIC KEY\" files.",
		Before: "halo release sign --key id_rsa out", After: "halo keygen --out release && halo release sign --key release.key out",
	}
	CodeOpenKey = &diag.Code{
		ID: "HALO1951", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title:  "private key is open to group or others",
		Text:   "A private key that other accounts can read or write proves nothing. Make it yours alone, and think about whether it was copied already.",
		Before: "-rw-r--r-- release.key", After: "chmod 600 release.key",
	}
	CodeWrongPassword = &diag.Code{
		ID: "HALO1952", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "wrong password",
		Text: "The private key does not decrypt. The password comes from HALO_KEY_PASSWORD, else COSIGN_PASSWORD (set but empty is an empty password), " +
			"else from a prompt on a terminal.",
	}
	CodeKeyExists = &diag.Code{
		ID: "HALO1953", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "key file exists",
		Text:  "halo keygen never overwrites a file. Choose another name, or move the old key away after every verifier trusts the new one.",
	}
	CodePlainKey = &diag.Code{
		ID: "HALO1954", Severity: diag.Warning, Since: "0.1.0",
		Title: "private key is not encrypted",
		Text: "The password is empty, so whoever reads the file can sign releases. That can be right for a key in a secret store; set HALO_KEY_PASSWORD to a " +
			"password otherwise.",
	}
	CodeBadTrust = &diag.Code{
		ID: "HALO1955", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "trust file cannot be used",
		Text: "The trust file is missing, unreadable, open for every account to write, or not exactly of the form that halo writes. Unknown fields are refused: a " +
			"verifier that skips what it does not know may skip a restriction.",
		Before: "vi halo-trust.json", After: "halo release trust rotate halo-trust.json --add new.pub --out next.json",
	}
	CodeTrustChain = &diag.Code{
		ID: "HALO1956", Severity: diag.Error, Since: "0.1.0",
		Title: "trust file does not follow",
		Text: "A new trust file takes the place of the old one only for the same organization, with a higher version, and signed by the threshold of the old keys " +
			"and of the new ones. What was revoked stays revoked. When too many old keys are lost, put the new file in place by the way the first one came.",
	}
)

// Codes returns the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{CodeBadKey, CodeOpenKey, CodeWrongPassword, CodeKeyExists, CodePlainKey, CodeBadTrust, CodeTrustChain}
}
