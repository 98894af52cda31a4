package limit

import "testing"

func TestDecideAllDecidesSeveralWindows(t *testing.T) {
	rules := []Window{{1, 10}, {3, 50}, {4, 200}} // short, medium and long windows
	steps := []struct {
		at, cost int64
		want     Decision
	}{
		{100, 0, Decision{Allowed: true, Limit: 1, Remaining: 1, Index: 0}},
		{100, 1, Decision{Allowed: true, Limit: 1, Remaining: 0, ResetAfter: 200, Index: 0}},
		{109, 1, Decision{Limit: 1, RetryAfter: 1, ResetAfter: 191, Index: 0}},
		{110, 1, Decision{Allowed: true, Limit: 1, ResetAfter: 200, Index: 0}},
		{120, 1, Decision{Allowed: true, Limit: 1, ResetAfter: 200, Index: 0}}, // a tie with rule 1
		{121, 1, Decision{Limit: 3, RetryAfter: 29, ResetAfter: 199, Index: 1}},
		{149, 0, Decision{Limit: 3, RetryAfter: 1, ResetAfter: 171, Index: 1}},
		{150, 1, Decision{Allowed: true, Limit: 1, ResetAfter: 200, Index: 0}},
		{151, 1, Decision{Limit: 4, RetryAfter: 149, ResetAfter: 199, Index: 2}},
		{151, 2, Decision{Limit: 1, RetryAfter: Never, ResetAfter: 199, Index: 0}},
		{151, 4, Decision{Limit: 1, RetryAfter: Never, ResetAfter: 199, Index: 0}},
		{151, 5, Decision{Limit: 1, RetryAfter: Never, ResetAfter: 199, Index: 0}},
		// a tie with rule 2
		{300, 0, Decision{Allowed: true, Limit: 1, Remaining: 1, ResetAfter: 50, Index: 0}},
		{350, 0, Decision{Allowed: true, Limit: 1, Remaining: 1, Index: 0}},
	}
	log := logOf()
	for i, step := range steps {
		d := DecideAll(rules, log, step.at, step.cost)
		if d != step.want {
			t.Fatalf("step %d: got %+v, want %+v", i, d, step.want)
		}
		if d.Allowed {
			log.add(float64(step.at), step.cost)
		}
	}
}

func TestDecideAllReportsTheRule(t *testing.T) {
	for _, c := range []struct {
		why       string
		rules     []Window
		log       *sliceLog
		now, cost int64
		want      Decision
	}{
		{"least remaining", []Window{{9, 10}, {5, 10}, {7, 10}}, logOf(), 100, 2,
			Decision{Allowed: true, Limit: 5, Remaining: 3, ResetAfter: 10, Index: 1}},
		{"first among equals", []Window{{9, 10}, {5, 10}, {5, 20}}, logOf(), 100, 2,
			Decision{Allowed: true, Limit: 5, Remaining: 3, ResetAfter: 20, Index: 1}},
		{"the denying rule, although another has less remaining", []Window{{2, 10}, {3, 50}}, logOf(60, 61), 100, 2,
			Decision{Limit: 3, Remaining: 1, RetryAfter: 10, ResetAfter: 11, Index: 1}},
		{"longest wait", []Window{{1, 10}, {1, 30}, {1, 20}}, logOf(99), 100, 1,
			Decision{Limit: 1, RetryAfter: 29, ResetAfter: 29, Index: 1}},
		{"first among equal waits", []Window{{2, 10}, {1, 10}, {1, 10}}, logOf(99), 100, 1,
			Decision{Limit: 1, RetryAfter: 9, ResetAfter: 9, Index: 1}},
		{"never is longest", []Window{{3, 1000}, {2, 10}, {1, 10}}, logOf(98, 99, 99), 100, 2,
			Decision{Limit: 1, RetryAfter: Never, ResetAfter: 998 + 1, Index: 2}},
		{"a wait that grows during the wait for another rule", []Window{{1, 10}, {1, 30}}, logOf(99, 125), 100, 1,
			Decision{Limit: 1, RetryAfter: 55, ResetAfter: 55, Index: 1}},
		{"one rule admits while another denies", []Window{{1, 10}, {2, 40}}, logOf(95, 96, 132), 100, 1,
			Decision{Limit: 2, RetryAfter: 42, ResetAfter: 72, Index: 1}},
	} {
		if d := DecideAll(c.rules, c.log, c.now, c.cost); d != c.want {
			t.Errorf("%s: got %+v, want %+v", c.why, d, c.want)
		}
	}
}

func TestDecideAllOfOneRuleIsSlide(t *testing.T) {
	eachStep(t, func(s step) string {
		slide, ok := s.before.(*slideSubject)
		if !ok || len(slide.rules) != 1 {
			return ""
		}
		if d := DecideAll(slide.rules, slide.log, s.now, s.cost); d != s.got {
			return "DecideAll of one rule differs"
		}
		return ""
	})
}
