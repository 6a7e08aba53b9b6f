//go:build !linux && !darwin

package artifacts

import "errors"

// exchange is not possible here; the caller renames twice.
func exchange(a, b string) error { return errors.ErrUnsupported }
