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
		&command.Command{Name: "subscribe", Arity: -2, Flags: own, Channels: command.AllChannels,
			Run: command.With(subscribe, pubsub.Channels)},
		&command.Command{Name: "unsubscribe", Arity: -1, Flags: own, Run: command.With(unsubscribe, pubsub.Channels)},
		&command.Command{Name: "psubscribe", Arity: -2, Flags: own, Channels: command.ChannelPatterns,
			Run: command.With(subscribe, pubsub.Patterns)},
		&command.Command{Name: "punsubscribe", Arity: -1, Flags: own, Run: command.With(unsubscribe, pubsub.Patterns)},
		&command.Command{Name: "ssubscribe", Arity: -2, Flags: own, Channels: command.AllChannels, Keys: shard,
			Run: command.With(subscribe, pubsub.Shards)},
		&command.Command{Name: "sunsubscribe", Arity: -1, Flags: own, Keys: shard,
			Run: command.With(unsubscribe, pubsub.Shards)},
		&command.Command{Name: "publish", Arity: 3, Flags: flags | command.Fast | command.MayChange,
			Channels: command.OneChannel, Run: publish},
		&command.Command{Name: "spublish", Arity: 3, Flags: flags | command.Fast | command.MayChange,
			Channels: command.OneChannel, Keys: command.OneKey("not_key"), Run: publishShard},
		inspection(flags),
	)
}

// inspection returns the declaration of PUBSUB.
func inspection(flags command.Flags) *command.Command {
	return &command.Command{Name: "pubsub", Arity: -2, Subs: []*command.Command{
		{Name: "channels", Arity: -2, Flags: flags, Run: command.With(names, pubsub.Channels)},
		command.HelpSince("6.2.0"),
		{Name: "numpat", Arity: 2, Flags: flags, Run: patterns},
		{Name: "numsub", Arity: -2, Flags: flags, Run: command.With(subscribers, pubsub.Channels)},
		{Name: "shardchannels", Arity: -2, Flags: flags, Run: command.With(names, pubsub.Shards)},
		{Name: "shardnumsub", Arity: -2, Flags: flags, Run: command.With(subscribers, pubsub.Shards)},
	}}
}

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

func unsubscribe(c *command.Call, kind pubsub.Kind) error {
	c.Conn.Messages().Unsubscribe(kind, c.Args.Rest(), &c.Reply)
	return nil
}

func publish(c *command.Call) error {
	return c.ReplyCount(c.Conn.Messages().Publish(c.Args.Next(), c.Args.Next()), nil)
}

func publishShard(c *command.Call) error {
	return c.ReplyCount(c.Conn.Messages().PublishShard(c.Args.Next(), c.Args.Next()), nil)
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
	return c.ReplyStrings(list)
}

func patterns(c *command.Call) error {
	return c.ReplyCount(c.Env.Channels.Count(pubsub.Patterns), nil)
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
