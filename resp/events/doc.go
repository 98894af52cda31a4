// Package events names what calls do to keys, as Redis' keyspace events do: LPUSH makes a change
// of the kind effect.Insert into the event lpush, of the class of lists.
//
//	engine.Tx           tells of changes, as a list of effects of a call
//	Name                gives each change its event, by the command and its words; several effects
//	                    on a key become one, and others follow: new, expire, del
//	Append              the channels and payloads of an event, for those who subscribe
//
// The events of Redis' commands, their order, and whether they precede the reply are recorded from
// Redis. Those of limiters are of the class d, of modules: their name is that of the command, such
// as rl.slide, and a denied call has none. What a waiting call takes is named by that call.
package events
