package main

import (
	"context"

	"rlserver/resp/local"
	"rlserver/resp/wire"
	"rlserver/web"
)

// Connect implements web.Source.
func (s webSource) Connect(ctx context.Context, as web.User) (web.Caller, error) {
	c, err := s.p.local.Connect(ctx, local.User(as))
	return webCaller{c}, err
}

// webCaller implements web.Caller by a client of this process.
type webCaller struct{ *local.Client }

// Do implements web.Caller.
func (c webCaller) Do(calls ...[][]byte) ([]any, error) {
	replies, err := c.Client.Do(calls...)
	list := make([]any, len(replies))
	for i := range replies {
		list[i] = webReply(&replies[i])
	}
	return list, err
}

// webReply returns a reply as web.Caller has it.
func webReply(v *wire.Value) any {
	switch v.Kind {
	case ':':
		return v.Integer
	case '-':
		return web.CallError(v.Text)
	case '*':
		elements := v.Elements()
		list := make([]any, len(elements))
		for i := range elements {
			list[i] = webReply(&elements[i])
		}
		return list
	}
	return v.Text
}
