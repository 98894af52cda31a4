package zset

// AddIf are conditions for ZADD; all must hold.
type AddIf uint8

const (
	IfNX AddIf = 1 << iota // there is no such member
	IfXX                   // there is one
	IfGT                   // if there is one, its score is less than the new one
	IfLT                   // if there is one, its score is greater than the new one
)

// Hold reports whether the conditions let a member, which has the old score if it exists, get a
// score.
func (c AddIf) Hold(exists bool, old, score float64) bool {
	if !exists {
		return c&IfXX == 0
	}
	return !(c&IfNX != 0 || c&IfGT != 0 && score <= old || c&IfLT != 0 && score >= old)
}
