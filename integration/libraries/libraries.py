"""Limits with libraries that run on Redis, on two servers: see go/main.go, which does the same."""
import concurrent.futures
import datetime
import logging
import sys
import threading
import time

import redis

import articles

LIMIT, CALLERS, EACH = 20, 20, 10


def limits(strategy):
    def make(addr):
        import limits as library
        from limits import storage, strategies
        limiter = getattr(strategies, strategy)(storage.storage_from_string(f"redis://{addr}"))
        item = library.RateLimitItemPerDay(LIMIT)

        def hit(key):
            admitted = limiter.hit(item, key)
            return admitted, limiter.get_window_stats(item, key).remaining
        return hit
    return make


def flask_limiter(addr):
    import flask
    import flask_limiter
    app = flask.Flask("limited")
    app.config["RATELIMIT_HEADERS_ENABLED"] = True
    limiter = flask_limiter.Limiter(lambda: flask.request.headers["key"], app=app, storage_uri=f"redis://{addr}")

    @app.route("/")
    @limiter.limit(f"{LIMIT}/day")
    def index():
        return "ok"

    def hit(key):
        response = app.test_client().get("/", headers={"key": key})
        if response.status_code == 500:
            raise OSError("500")
        return response.status_code == 200, response.headers["X-RateLimit-Remaining"]
    return hit


def slowapi(addr):
    import fastapi
    import slowapi as library
    from fastapi.testclient import TestClient
    from slowapi.errors import RateLimitExceeded
    limiter = library.Limiter(key_func=lambda request: request.headers["key"], storage_uri=f"redis://{addr}")
    app = fastapi.FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded, library._rate_limit_exceeded_handler)

    @app.get("/")
    @limiter.limit(f"{LIMIT}/day")
    async def index(request: fastapi.Request):
        return "ok"
    client = TestClient(app)

    def hit(key):
        response = client.get("/", headers={"key": key})
        return response.status_code == 200, response.text
    return hit


def pyrate_limiter(addr):
    from pyrate_limiter import Duration, Limiter, Rate, RedisBucket
    pool, buckets, guard = connection(addr), {}, threading.Lock()

    def hit(key):
        with guard:
            if key not in buckets:
                buckets[key] = Limiter(RedisBucket.init([Rate(LIMIT, Duration.DAY)], pool, "pyrate:" + key))
        return bool(buckets[key].try_acquire("caller", blocking=False)), None
    return hit


def throttled(algorithm):
    def make(addr):
        import throttled as library
        store = library.RedisStore(server=f"redis://{addr}/0")
        limiter = library.Throttled(
            using=algorithm, quota=library.rate_limiter.per_duration(datetime.timedelta(days=1), LIMIT, burst=LIMIT), store=store)

        def hit(key):
            result = limiter.limit(key)
            return not result.limited, result.state.remaining
        return hit
    return make


def django_ratelimit(addr):
    import django
    from django.conf import settings
    if not settings.configured:
        backend = "django.core.cache.backends.redis.RedisCache"
        settings.configure(CACHES={a: {"BACKEND": backend, "LOCATION": f"redis://{a}"} for a in ["default", *sys.argv[1:]]})
        django.setup()
    from django.test import RequestFactory
    from django_ratelimit.core import get_usage

    def hit(key):
        settings.RATELIMIT_USE_CACHE = addr
        # windows of the clock, by seconds: one that ends in years
        usage = get_usage(RequestFactory().get("/", HTTP_KEY=key), group="calls", key="header:key", rate=f"{LIMIT}/9999d",
                          increment=True)
        return not usage["should_limit"], usage["count"]
    return hit


def lock(addr):
    client = connection(addr)

    def hit(key):
        return client.lock("lock:" + key, timeout=3600).acquire(blocking=False), None
    return hit


def released_lock(addr):
    """Callers that hold a lock one after the other; a call is admitted if it was alone, and released it."""
    client, holders = connection(addr), {}

    def hit(key):
        with client.lock("released:" + key, timeout=3600, sleep=0.001):
            holders[key] = holders.get(key, 0) + 1
            alone = holders[key] == 1
            time.sleep(0.0001)
            holders[key] -= 1
        return alone, None
    return hit


def connection(addr):
    return redis.Redis.from_url(f"redis://{addr}", socket_connect_timeout=5)


# How many of all calls are admitted. pyrate-limiter counts calls that race but admits none of them: it admits fewer.
FEWER = ["pyrate-limiter"]
LIBRARIES = [
    ("limits fixed window", LIMIT, limits("FixedWindowRateLimiter")),
    ("limits moving window", LIMIT, limits("MovingWindowRateLimiter")),
    ("limits sliding window", LIMIT, limits("SlidingWindowCounterRateLimiter")),
    ("Flask-Limiter", LIMIT, flask_limiter),
    ("slowapi", LIMIT, slowapi),
    ("pyrate-limiter", LIMIT, pyrate_limiter),
    ("throttled-py fixed window", LIMIT, throttled("fixed_window")),
    ("throttled-py sliding window", LIMIT, throttled("sliding_window")),
    ("throttled-py token bucket", LIMIT, throttled("token_bucket")),
    ("throttled-py leaking bucket", LIMIT, throttled("leaking_bucket")),
    ("throttled-py GCRA", LIMIT, throttled("gcra")),
    ("django-ratelimit", LIMIT, django_ratelimit),
    ("redis-py Lock", 1, lock),
    ("redis-py Lock, released", CALLERS * EACH, released_lock),
] + articles.programs(connection, LIMIT)


def count(hit, key):
    results = []

    def call():
        for _ in range(EACH):
            try:
                results.append(hit(key)[0])
            except Exception as e:
                results.append(repr(e))
    threads = [threading.Thread(target=call) for _ in range(CALLERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    errors = [r for r in results if not isinstance(r, bool)]
    return errors[0] if errors else sum(results)


def describe(hit, key):
    try:
        return str(hit(key))
    except Exception:
        return "error"


def wait(hit, name):
    for _ in range(600):
        if describe(hit, "wait " + name) != "error":
            return
        time.sleep(0.1)


def main():
    logging.disable()
    addrs = sys.argv[1:]
    runs = []
    for name, _, make in LIBRARIES:
        for addr in addrs:
            hit = make(addr)
            key = "py " + name
            runs.append((name, hit, {"admitted": count(hit, key), "replies": [
                describe(hit, key + "2") for _ in range(LIMIT + 3 if name != "redis-py Lock, released" else 1)]}))
    print("stop", flush=True)
    sys.stdin.readline()
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:  # redis-py tries again for seconds
        calls = [pool.submit(describe, hit, f"stopped {name}") for name, hit, _ in runs]
    for (_, _, outcome), call in zip(runs, calls):
        outcome["stopped"] = call.result().split(",")[0]
    print("start", flush=True)
    sys.stdin.readline()
    failed = False
    for name, want, _ in LIBRARIES:
        outcomes = []
        for n, hit, outcome in runs:
            if n == name:
                wait(hit, name)
                outcome["again"] = count(hit, "py " + name + "3")
                outcomes.append(outcome)
        ours, theirs = outcomes[0], outcomes[-1]
        print(f"{name:28} {ours['admitted']} of {CALLERS * EACH} calls admitted, {ours['again']} after a restart, "
              f"while stopped: {ours['stopped']}")
        if name in FEWER:
            exact = all(0 < o[part] <= want for o in outcomes for part in ("admitted", "again"))
        else:
            exact = all(o[part] == want for o in outcomes for part in ("admitted", "again"))
        if not exact or ours["replies"] != theirs["replies"] or ours["stopped"] != theirs["stopped"]:
            print("FAILED: ours", ours, "\n      Redis's", theirs)
            failed = True
    sys.exit(failed)


main()
