// Package pubsub has the commands of publish and subscribe. The channels are in package
// rlserver/resp/pubsub.
package pubsub

import (
	"rlserver/internal/acl"
	"rlserver/resp/command"
	"rlserver/resp/pubsub"
)

func init() {
	const flags = command.PubSub | command.Loading | command.Stale
	const own = flags | command.NoScript | command.WhileSubscribed
	shard := []command.KeySpec{command.KeysToEnd("not_key", 1, 1)}
	command.Register("pubsub",
		&command.Command{Name: "subscribe", Arity: -2, Flags: own, Since: "2.0.0", Channels: command.AllChannels,
			Syntax: "channel [channel ...]", Complexity: "O(N) where N is the number of channels to subscribe to.",
			Summary: "Listen for messages published to the given channels",
			Run:     func(c *command.Call) error { return subscribe(c, pubsub.Channels) }},
		&command.Command{Name: "unsubscribe", Arity: -1, Flags: own, Since: "2.0.0",
			Syntax:     "[channel [channel ...]]",
			Complexity: "O(N) where N is the number of clients already subscribed to a channel.",
			Summary:    "Stop listening for messages posted to the given channels",
			Run:        func(c *command.Call) error { return unsubscribe(c, pubsub.Channels) }},
		&command.Command{Name: "psubscribe", Arity: -2, Flags: own, Since: "2.0.0", Channels: command.ChannelPatterns,
			Syntax:     "pattern [pattern ...]",
			Complexity: "O(N) where N is the number of patterns the client is already subscribed to.",
			Summary:    "Listen for messages published to channels matching the given patterns",
			Run:        func(c *command.Call) error { return subscribe(c, pubsub.Patterns) }},
		&command.Command{Name: "punsubscribe", Arity: -1, Flags: own, Since: "2.0.0",
			Syntax: "[pattern [pattern ...]]",
			Complexity: "O(N+M) where N is the number of patterns the client is already subscribed and M is " +
				"the number of total patterns subscribed in the system (by any client).",
			Summary: "Stop listening for messages posted to channels matching the given patterns",
			Run:     func(c *command.Call) error { return unsubscribe(c, pubsub.Patterns) }},
		&command.Command{Name: "ssubscribe", Arity: -2, Flags: own, Since: "7.0.0", Channels: command.AllChannels,
			Keys: shard, Syntax: "shardchannel [shardchannel ...]",
			Complexity: "O(N) where N is the number of shard channels to subscribe to.",
			Summary:    "Listen for messages published to the given shard channels",
			Run:        func(c *command.Call) error { return subscribe(c, pubsub.Shards) }},
		&command.Command{Name: "sunsubscribe", Arity: -1, Flags: own, Since: "7.0.0", Keys: shard,
			Syntax:     "[shardchannel [shardchannel ...]]",
			Complexity: "O(N) where N is the number of clients already subscribed to a shard channel.",
			Summary:    "Stop listening for messages posted to the given shard channels",
			Run:        func(c *command.Call) error { return unsubscribe(c, pubsub.Shards) }},
		&command.Command{Name: "publish", Arity: 3, Flags: flags | command.Fast | command.MayChange, Since: "2.0.0",
			Channels: command.OneChannel, Syntax: "channel message",
			Complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M is " +
				"the total number of subscribed patterns (by any client).", Summary: "Post a message to a channel",
			Run: publish},
		&command.Command{Name: "spublish", Arity: 3, Flags: flags | command.Fast | command.MayChange, Since: "7.0.0",
			Channels: command.OneChannel, Keys: command.OneKey("not_key"), Syntax: "shardchannel message",
			Complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
			Summary:    "Post a message to a shard channel", Run: publishShard},
		inspection(flags),
	)
}

// inspection returns the declaration of PUBSUB.
func inspection(flags command.Flags) *command.Command {
	return &command.Command{Name: "pubsub", Arity: -2, Since: "2.8.0", Complexity: "Depends on subcommand.",
		Summary: "A container for Pub/Sub commands", Subs: []*command.Command{
			{Name: "channels", Arity: -2, Flags: flags, Since: "2.8.0", Syntax: "[pattern]",
				Complexity: "O(N) where N is the number of active channels, and assuming constant time " +
					"pattern matching (relatively short channels and patterns)", Summary: "List active channels",
				Run: func(c *command.Call) error { return names(c, pubsub.Channels) }},
			command.HelpSince("6.2.0"),
			{Name: "numpat", Arity: 2, Flags: flags, Since: "2.8.0", Complexity: "O(1)",
				Summary: "Get the count of unique patterns pattern subscriptions", Run: patterns},
			{Name: "numsub", Arity: -2, Flags: flags, Since: "2.8.0", Syntax: "[channel [channel ...]]",
				Complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
				Summary:    "Get the count of subscribers for channels",
				Run:        func(c *command.Call) error { return subscribers(c, pubsub.Channels) }},
			{Name: "shardchannels", Arity: -2, Flags: flags, Since: "7.0.0", Syntax: "[pattern]",
				Complexity: "O(N) where N is the number of active shard channels, and assuming constant time " +
					"pattern matching (relatively short shard channels).", Summary: "List active shard channels",
				Run: func(c *command.Call) error { return names(c, pubsub.Shards) }},
			{Name: "shardnumsub", Arity: -2, Flags: flags, Since: "7.0.0",
				Syntax:     "[shardchannel [shardchannel ...]]",
				Complexity: "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
				Summary:    "Get the count of subscribers for shard channels",
				Run:        func(c *command.Call) error { return subscribers(c, pubsub.Shards) }},
		}}
}

// subscribe handles SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE.
func subscribe(c *command.Call, kind pubsub.Kind) error {
	list, m := c.Args.Rest(), c.Conn.Messages()
	if kind == pubsub.Shards && c.Executing {
		return command.ErrNoShardInExec
	}
	if err := m.Subscribe(kind, list, &c.Reply); err != nil {
		return err
	}
	// the user may have changed before the server could find the subscription
	for _, name := range list {
		if !c.Account.User().AllowsChannel(name, kind == pubsub.Patterns) {
			m.Drop(kind, list)
			return (&command.Denial{Verdict: acl.DeniedChannel, Object: string(name)}).Error()
		}
	}
	return nil
}

// unsubscribe handles UNSUBSCRIBE, PUNSUBSCRIBE and SUNSUBSCRIBE.
func unsubscribe(c *command.Call, kind pubsub.Kind) error {
	c.Conn.Messages().Unsubscribe(kind, c.Args.Rest(), &c.Reply)
	return nil
}

// publish handles PUBLISH channel message.
func publish(c *command.Call) error {
	c.Reply.Count(c.Conn.Messages().Publish(c.Args.Next(), c.Args.Next()))
	return nil
}

// publishShard handles SPUBLISH shardchannel message.
func publishShard(c *command.Call) error {
	c.Reply.Count(c.Conn.Messages().PublishShard(c.Args.Next(), c.Args.Next()))
	return nil
}

// names handles PUBSUB CHANNELS [pattern] and PUBSUB SHARDCHANNELS [pattern].
func names(c *command.Call, kind pubsub.Kind) error {
	var pattern []byte
	if c.Args.Left() > 1 {
		return c.WrongSubcommandArity()
	}
	if c.Args.More() {
		pattern = c.Args.Next()
	}
	list, err := c.Env.Channels.Names(kind, pattern)
	if err != nil {
		return err
	}
	c.Reply.Array(len(list))
	for _, name := range list {
		c.Reply.BulkString(name)
	}
	return nil
}

// patterns handles PUBSUB NUMPAT.
func patterns(c *command.Call) error {
	c.Reply.Count(c.Env.Channels.Count(pubsub.Patterns))
	return nil
}

// subscribers handles PUBSUB NUMSUB [channel ...] and PUBSUB SHARDNUMSUB [shardchannel ...].
func subscribers(c *command.Call, kind pubsub.Kind) error {
	c.Reply.Array(2 * c.Args.Left())
	for c.Args.More() {
		name := c.Args.Next()
		c.Reply.Bulk(name)
		c.Reply.Count(c.Env.Channels.Subscribers(kind, name))
	}
	return nil
}
