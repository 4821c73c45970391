package atomicfile

import (
	"io/fs"
	"os"
)

// On Windows, the folder of the user protects the files in it.

func openHere(path string) (*os.File, error) { return os.Open(path) }

func isOwn(fs.FileInfo) bool { return true }

func isOpenToOthers(fs.FileInfo) bool { return false }
