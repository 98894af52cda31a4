package engine

import (
	"rlserver/engine/limit"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// Calls of one cost, for tests.

func (tx *Tx) decideAt(l *Limit, cost int64) (limit.Decision, error) {
	l.Cost = cost
	return tx.Decide(l)
}

func (tx *Tx) allAt(limits []Limit, cost int64) (limit.Decision, error) {
	for i := range limits {
		limits[i].Cost = cost
	}
	return tx.All(limits)
}

func (tx *Tx) checkAt(names [][]byte, keys []Key, cost int64, id []byte) (limit.Decision, error) {
	costs := oneHit
	if cost != 1 {
		costs = []int64{cost}
	}
	return tx.Check(CheckCall{Names: names, Keys: keys, Costs: costs, ID: id})
}

var oneHit = []int64{1}

// Single limiters, for tests that need no Limit.

func (tx *Tx) Token(k Key, b limit.Bucket, cost int64) (limit.Decision, error) {
	return tx.decideAt(&Limit{Key: k, Rule: rule.Rule{Kind: rule.Token, Token: b}}, cost)
}

func (tx *Tx) Leaky(k Key, b limit.Bucket, cost int64) (d limit.Decision, delay int64, err error) {
	d, err = tx.decideAt(&Limit{Key: k, Rule: rule.Rule{Kind: rule.Leaky, Token: b}}, cost)
	delay, d.Delay = d.Delay, 0
	return d, delay, err
}

func (tx *Tx) Fixed(k Key, f limit.Fixed, cost int64) (limit.Decision, error) {
	return tx.decideAt(&Limit{Key: k, Rule: rule.Rule{Kind: rule.Fixed, Fixed: f}}, cost)
}

func (tx *Tx) Lease(k Key, l limit.Lease, id []byte) (limit.Decision, error) {
	return tx.decideAt(&Limit{Key: k, Rule: rule.Rule{Kind: rule.Lease, Lease: l}, ID: id}, 1)
}

// ParsePolicy returns the policy with a name and the words of its definition.
func ParsePolicy(name []byte, words [][]byte) (*policy.Policy, error) {
	p, err := rule.ParsePolicy(name, words)
	if err != nil {
		return nil, err
	}
	return policy.New(p), nil
}

func allowed(l *Limit) int64 { return *l.Bound() }
