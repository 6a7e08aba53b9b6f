//go:build linux

package real

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Inside()
	os.Exit(m.Run())
}
