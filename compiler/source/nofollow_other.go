//go:build !unix

package source

const noFollow = 0
