//go:build !windows

package cli

import "os"

// understandsEscapes: every terminal does.
func understandsEscapes(*os.File) bool { return true }
