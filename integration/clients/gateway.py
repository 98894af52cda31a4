"""The gateway of docs/GUIDE.md with redis-py, and its test. usage: gateway.py PORT"""
import sys
import threading
import time
import uuid

import redis


class Denied(Exception):
    def __init__(self, budget, retry_after):
        super().__init__(f"{budget} is used up, come back in {retry_after} ms")
        self.budget, self.retry_after = budget, retry_after


class Gateway:
    """The budgets of a key, its team and its organisation. All admit a call, or none counts it."""

    def __init__(self, r, org, team, key, ttl="2m"):
        tag = "{%s}" % org  # in a cluster, keys with the same tag are in one slot
        self.r, self.ttl = r, ttl
        self.budgets = [  # key, limit, and what it counts
            (f"{tag}requests:{key}", "SLIDE 60 1m", "requests"),
            (f"{tag}tokens:{key}", "TOKEN 40000 40000 1m", "tokens"),
            (f"{tag}tokens:{team}", "TOKEN 400000 400000 1m", "tokens"),
            (f"{tag}dollars", "FIXED 500000000 month", "micro-dollars"),
        ]

    def reserve(self, call, estimate):
        """Reserves an estimate. Sent again, it renews the reservation, and counts once."""
        words = [word for key, limit, _ in self.budgets for word in (key, *limit.split())]
        costs = [estimate[unit] for _, _, unit in self.budgets]
        allowed, _, _, retry_after, _, rule = self.r.execute_command(
            "RL.ALL", *words, "COST", *costs, "HOLD", self.ttl, "ID", call)
        if not allowed:
            raise Denied(self.budgets[rule][0], retry_after)

    def settle(self, call, used):
        """Counts what was used, and gives the rest back. Sent again, it counts once."""
        words = [word for key, _, unit in self.budgets for word in (key, used[unit])]
        self.r.execute_command("RL.SETTLE", *words, "ID", call)

    def ask(self, model, prompt, most):
        """Asks a model, whose answer has at most so many tokens."""
        call = str(uuid.uuid4())
        self.reserve(call, price(prompt, most))
        try:
            answer, size = model(prompt)
        except Exception:
            self.settle(call, price(prompt, 0))  # the model has read it
            raise
        self.settle(call, price(prompt, size))
        return answer


def price(prompt, size):
    """What a prompt and an answer of so many tokens cost: 3 and 15 dollars for a million tokens."""
    read = len(prompt) // 4 + 1
    return {"requests": 1, "tokens": read + size, "micro-dollars": 3 * read + 15 * size}


# The test.

def left(r, gateway):
    """What is left of each budget."""
    found = []
    for key, limit, _ in gateway.budgets:
        algorithm, *numbers = limit.split()
        found.append(r.execute_command("RL." + algorithm, key, *numbers, "COST", 0)[2])
    return found


def test(r):
    r.flushall()
    gateway = Gateway(r, "acme", "red", "key-1")
    assert gateway.ask(lambda prompt: ("yes", 100), "x" * 39, 4000) == "yes"
    requests, tokens, team, dollars = left(r, gateway)
    assert requests == 59 and tokens in range(39890, 40001) and dollars == 500000000 - 30 - 1500, left(r, gateway)

    # many at once: never more than the budget, and all that was used is counted
    other, answers, denials = Gateway(r, "many", "red", "key-1"), [], []

    def client():
        mine = Gateway(redis.Redis(port=int(sys.argv[1])), "many", "red", "key-1")
        for _ in range(10):
            try:
                answers.append(mine.ask(lambda prompt: (time.sleep(0.001), 900), "x" * 399, 3900))
            except Denied as denied:
                assert "key-1" in denied.budget and denied.retry_after > 0, denied
                denials.append(denied)
    clients = [threading.Thread(target=client) for _ in range(20)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert len(answers) + len(denials) <= 200 and 10 <= len(answers) and denials, (len(answers), len(denials))
    assert left(r, other)[3] == 500000000 - len(answers) * (300 + 13500), (left(r, other), len(answers))

    # whoever goes away leaves nothing behind, and settling twice counts once
    gone, begun = Gateway(r, "gone", "red", "key-1", ttl="500ms"), time.monotonic()
    gone.reserve("call-1", price("x" * 399, 39900))
    try:
        gone.reserve("call-2", price("x", 100))
        assert time.monotonic() - begun >= 0.5, "more than the budget was reserved"
    except Denied as denied:
        assert 0 < denied.retry_after <= 500, denied
        time.sleep(denied.retry_after / 1000)
    gone.reserve("call-2", price("x", 100))
    gone.settle("call-2", price("x", 100))
    gone.settle("call-2", price("x", 100))
    assert left(r, gone)[3] == 500000000 - 1503, left(r, gone)
    print("right")


if __name__ == "__main__":
    test(redis.Redis(port=int(sys.argv[1]), decode_responses=True))
