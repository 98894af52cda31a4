package acl

import "strings"

// describeKeys returns the key patterns in the notation of rules.
func (s *selector) describeKeys() string {
	if s.allKeys {
		return "~*"
	}
	var list []string
	for _, p := range s.keys {
		list = append(list, p.String())
	}
	return strings.Join(list, " ")
}

// describeChannels returns the channel patterns in the notation of rules.
func (s *selector) describeChannels() string {
	if s.allChannels {
		return "&*"
	}
	var list []string
	for _, p := range s.channels {
		list = append(list, "&"+string(p.text))
	}
	return strings.Join(list, " ")
}

// describe returns rules that turn an empty selector into an equal one.
func (s *selector) describe(c *Catalog) string {
	var list []string
	if keys := s.describeKeys(); keys != "" {
		list = append(list, keys)
	}
	if !s.allChannels {
		list = append(list, "resetchannels")
	}
	if channels := s.describeChannels(); channels != "" {
		list = append(list, channels)
	}
	return strings.Join(append(list, s.describeCommands(c)), " ")
}

// describeCommands returns rules for the commands: all or none, then the best fitting categories,
// then single commands for the exceptions. The algorithm is ACLDescribeSelectorCommandRules of
// Redis.
func (s *selector) describeCommands(c *Catalog) string {
	made, sign, rules := newSelector(c, false), "+", []string{"-@all"}
	if s.future {
		made.setAll(true)
		sign, rules = "-", []string{"+@all"}
	}
	left, applied := s.clone(), map[string]bool{}
	for {
		best := s.bestCategory(c, &left, applied)
		if best == "" {
			break
		}
		applied[best] = true
		made.setCategory(c, best, !s.future)
		left.setCategory(c, best, s.future)
		rules = append(rules, sign+"@"+best)
	}
	for _, i := range c.order {
		name, allowed := c.commands[i].Name, s.commands.has(i)
		if allowed != made.commands.has(i) {
			made.setCommand(c, i, allowed)
			rules = append(rules, map[bool]string{true: "+", false: "-"}[allowed]+name)
		}
		for _, word := range s.firstArgs[i] {
			if !allowed {
				rules = append(rules, "+"+name+"|"+word)
			}
		}
	}
	return strings.Join(rules, " ")
}

// bestCategory returns the category that covers the most remaining commands with the fewest
// exceptions, or "" if every category has at least as many exceptions as commands that it covers.
// left is the selector without the effect of the categories that are applied already. Own commands
// count for the category of their own alone, the last one, so that the text is as in Redis.
func (s *selector) bestCategory(c *Catalog, left *selector, applied map[string]bool) (best string) {
	fewest, most := len(c.commands)+1, 0
	for _, name := range Categories {
		own := name == ownCategory
		if applied[name] || own && best != "" {
			continue
		}
		same, different := 0, 0
		for i := range c.commands {
			if c.commands[i].Own == own && c.categories[name].has(i) {
				if left.commands.has(i) != s.future {
					same++
				} else {
					different++
				}
			}
		}
		if same > different && (different < fewest || different == fewest && same > most) {
			best, fewest, most = name, different, same
		}
	}
	return best
}
