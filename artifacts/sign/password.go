package sign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// ErrNoPassword says that a password is wanted and nobody can be asked.
var ErrNoPassword = errors.New("the key needs a password: set HALO_KEY_PASSWORD or COSIGN_PASSWORD, or run on a terminal")

// PasswordSource says where passwords of keys come from.
type PasswordSource struct {
	// LookupEnv is os.LookupEnv or a stand-in. HALO_KEY_PASSWORD wins over COSIGN_PASSWORD; a variable that is set but empty
	// is an empty password.
	LookupEnv func(string) (string, bool)
	// Terminal is asked when neither variable is set; nil or not a terminal means that nobody can be asked.
	Terminal *os.File
	// Prompt is where the question goes, usually standard error.
	Prompt io.Writer
}

// Password returns the password of an existing key. It fits LoadPrivateKey.
func (s PasswordSource) Password() ([]byte, error) { return s.get(false) }

// NewPassword returns the password for a new key; on a terminal it is asked for twice and must not be empty.
func (s PasswordSource) NewPassword() ([]byte, error) { return s.get(true) }

func (s PasswordSource) get(confirm bool) ([]byte, error) {
	for _, name := range []string{"HALO_KEY_PASSWORD", "COSIGN_PASSWORD"} {
		if v, ok := s.LookupEnv(name); ok {
			return []byte(v), nil
		}
	}
	if s.Terminal == nil || !term.IsTerminal(int(s.Terminal.Fd())) {
		return nil, ErrNoPassword
	}
	first, err := s.ask("Password of the key: ")
	if err != nil || !confirm {
		return first, err
	}
	if len(first) == 0 {
		return nil, errors.New("an empty password; for a key without encryption set HALO_KEY_PASSWORD to the empty string")
	}
	second, err := s.ask("The same again: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, errors.New("the two passwords differ")
	}
	return first, nil
}

func (s PasswordSource) ask(question string) ([]byte, error) {
	fmt.Fprint(s.Prompt, question)
	answer, err := term.ReadPassword(int(s.Terminal.Fd()))
	fmt.Fprintln(s.Prompt)
	if err != nil {
		return nil, fmt.Errorf("read password: %w", err)
	}
	return answer, nil
}
