//go:build linux

package real

import (
	"os"
	"testing"

	"halos.dev/halo/artifacts/device/probe"
)

func TestMain(m *testing.M) {
	probe.Inside(talk)
	os.Exit(m.Run())
}
