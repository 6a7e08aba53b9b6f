package pack

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseCPU reads a CPU quantity and returns millicores: cores with up to three decimals ("1.5") or whole millicores ("1500m"), above zero.
func ParseCPU(s string) (int64, error) {
	s = strings.TrimSpace(s)
	bad := fmt.Errorf(`%q must be CPU cores such as "2" or "1.5", or millicores such as "500m", above zero`, s)
	if milli, ok := strings.CutSuffix(s, "m"); ok {
		n, ok := digits(milli, 9)
		if !ok || n == 0 {
			return 0, bad
		}
		return n, nil
	}
	whole, frac, dotted := strings.Cut(s, ".")
	n, ok := digits(whole, 6)
	if !ok {
		return 0, bad
	}
	n *= 1000
	if dotted {
		f, ok := digits(frac, 3)
		if !ok {
			return 0, bad
		}
		for range 3 - len(frac) {
			f *= 10
		}
		n += f
	}
	if n == 0 {
		return 0, bad
	}
	return n, nil
}

// memoryUnits are the suffixes of a memory quantity, the longer ones first.
var memoryUnits = []struct {
	suffix string
	bytes  int64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}

// ParseMemory reads a memory quantity and returns bytes: digits and one of Ki, Mi, Gi, Ti, k, K, M, G, T or nothing, above zero.
func ParseMemory(s string) (int64, error) {
	s = strings.TrimSpace(s)
	number, unit := s, int64(1)
	for _, u := range memoryUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, ok := digits(number, 15)
	if !ok || n == 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf(`%q must be bytes such as "512Mi", "8Gi" or "2G" (Ki, Mi, Gi, Ti, k, K, M, G, T), above zero`, s)
	}
	return n * unit, nil
}

func digits(s string, most int) (int64, bool) {
	if s == "" || len(s) > most || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
