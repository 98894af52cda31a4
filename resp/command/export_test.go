package command

// Groups returns the groups that docs/COMMANDS.md has sections for.
func Groups() (list []string) {
	for _, section := range manual {
		if section.group != "" {
			list = append(list, section.group)
		}
	}
	return list
}
