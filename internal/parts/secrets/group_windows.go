package secrets

import "os/exec"

// killGroup does nothing: the command itself is killed.
func killGroup(*exec.Cmd) {}
