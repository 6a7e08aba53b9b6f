//go:build !unix

package sign

// openNonblock is not needed where no path names a pipe.
const openNonblock = 0
