package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Find returns the config file to use when none is named: $MCPX_CONFIG,
// ./mcpx.json, then mcpx/config.json in the user's config folder.
func Find(lookup Lookup) (string, error) {
	if file, _ := lookup("MCPX_CONFIG"); file != "" {
		return file, nil
	}
	places := []string{"mcpx.json"}
	if file := UserFile(lookup); file != "" {
		places = append(places, file)
	}
	for _, file := range places {
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, nil
		}
	}
	return "", fmt.Errorf("no config file: $MCPX_CONFIG is not set, and there is no %s", strings.Join(places, " and no "))
}

// UserFile returns the path of the user's own config, which need not exist; empty if
// the user has no home folder.
func UserFile(lookup Lookup) string {
	if folder := userFolder(lookup); folder != "" {
		return filepath.Join(folder, "mcpx", "config.json")
	}
	return ""
}

func userFolder(lookup Lookup) string {
	if folder, _ := lookup("XDG_CONFIG_HOME"); folder != "" {
		return folder
	}
	if home := homeFolder(lookup); home != "" {
		return filepath.Join(home, ".config")
	}
	return ""
}

func homeFolder(lookup Lookup) string {
	if home, _ := lookup("HOME"); home != "" {
		return home
	}
	home, _ := lookup("USERPROFILE") // Windows
	return home
}

// Sample is a small config to start from.
const Sample = `{
  "mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"]}
  }
}
`
