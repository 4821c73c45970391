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
	if folder := userFolder(lookup); folder != "" {
		places = append(places, filepath.Join(folder, "mcpx", "config.json"))
	}
	for _, file := range places {
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, nil
		}
	}
	return "", fmt.Errorf("no config file: $MCPX_CONFIG is not set, and there is no %s", strings.Join(places, " and no "))
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
