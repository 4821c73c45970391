package cli

import "fmt"

// splitConfig separates the config file from the words of a command line: the file is
// the value of --config, or the first word if that names an existing regular file or
// ends in .json or .jsonc. The last so many words are needed for something else, and
// are never taken for the file.
func splitConfig(flag string, words []string, needed int) (file string, rest []string, err error) {
	if len(words) <= needed || !isConfig(words[0]) {
		return flag, words, nil
	}
	if flag != "" {
		return "", nil, configTwice(words[0], flag)
	}
	return words[0], words[1:], nil
}

func configTwice(word, flag string) error {
	return usageError{withHint(fmt.Errorf("the config is named twice: %s and --config %s", word, flag), "keep one of them")}
}
