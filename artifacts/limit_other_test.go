//go:build !linux && !darwin

package artifacts

import "errors"

func limitFileSize(uint64) error { return errors.ErrUnsupported }

func setUmask(int) {}
