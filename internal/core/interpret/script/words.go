package script

// inPlainWords says what the machine found wrong at a line in the words of who wrote it.
func inPlainWords(c *compiled, line int, message string) string { return message }
