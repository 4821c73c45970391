package ansi

import "golang.org/x/sys/windows"

// understandsEscapes makes a console understand escape sequences. Older ones do so
// only on request.
func understandsEscapes(fd uintptr) bool {
	var mode uint32
	console := windows.Handle(fd)
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
