package command

// Groups returns the groups that docs/COMMANDS.md has sections for.
func Groups() (list []string) {
	for _, section := range manual {
		list = append(list, section.group)
	}
	return list
}

// Examples returns the examples of docs/COMMANDS.md, by the title of the command.
var Examples = readExamples

// Title returns the name of a command as users write it.
func (c *Command) Title() string { return c.title() }
