//go:build !unix

package artifacts

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
