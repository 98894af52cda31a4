import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.redisson.Redisson;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RScript;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.jedis.Bucket4jJedis;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.SocketOptions;
import org.slf4j.LoggerFactory;
import org.springframework.cloud.gateway.filter.ratelimit.RedisRateLimiter;
import org.springframework.cloud.gateway.support.ConfigurationService;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.io.ClassPathResource;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.core.script.RedisScript;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;

/** Limits with libraries that run on Redis, on two servers: see go/main.go, which does the same. */
public class Libraries {
    static final int LIMIT = 20, CALLERS = 200, EACH = 2;
    static final Duration DAY = Duration.ofDays(1);
    /** What the limiter of a library that admits all calls while its server is stopped says of them. */
    static final String ADMITS_ALL = "admits all";

    record Reply(boolean admitted, String detail) {
    }

    /** Asks a limiter whether a call is admitted. */
    interface Hit {
        Reply call(String key) throws Exception;
    }

    /** Makes a limiter on the server of an address. */
    interface Maker {
        Hit make(String addr) throws Exception;
    }

    /** A library; total is how many of all calls it admits. */
    record Library(String name, int total, Maker maker) {
    }

    static final class Outcome {
        int admitted, again;
        String stopped;
        final List<String> replies = new ArrayList<>();
    }

    record Run(Library library, Hit hit, Outcome outcome) {
    }

    static final Map<String, RedissonClient> redissons = new LinkedHashMap<>();

    /** Returns a client of its own for each addr and name. */
    static synchronized RedissonClient redisson(String addr, String name) {
        return redissons.computeIfAbsent(addr + name, k -> {
            var config = new Config();
            config.setCodec(StringCodec.INSTANCE).setNettyThreads(4).setThreads(4);
            // the default is four attempts, seconds apart: calls to a stopped server end later; a call that is slow is not
            // to be sent twice
            config.useSingleServer().setAddress("redis://" + addr).setRetryAttempts(1).setTimeout(60_000)
                    .setConnectionMinimumIdleSize(4);
            return Redisson.create(config);
        });
    }

    static Maker rateLimiter(RateType type, String... clients) {
        return addr -> {
            var next = new AtomicInteger();
            return key -> {
                var client = redisson(addr, clients[next.getAndIncrement() % clients.length]);
                RRateLimiter limiter = client.getRateLimiter(key);
                limiter.trySetRate(type, LIMIT, DAY);
                return new Reply(limiter.tryAcquire(), "" + limiter.availablePermits());
            };
        };
    }

    /** Several permits at once, and a timeout that is too short for the next permit. */
    static Hit permits(String addr) {
        var client = redisson(addr, "");
        return key -> {
            var limiter = client.getRateLimiter(key);
            limiter.trySetRate(RateType.OVERALL, 3 * LIMIT + 2, DAY);
            return new Reply(limiter.tryAcquire(3, Duration.ofMillis(50)), "" + limiter.availablePermits());
        };
    }

    /**
     * A timeout that is long enough: calls wait for permits of windows to come. All are admitted, but in no window more
     * than the rate.
     */
    static Hit waiting(String addr) {
        var client = redisson(addr, "");
        var tooMany = new AtomicInteger();
        var begun = new LinkedHashMap<String, Long>();
        var admitted = new LinkedHashMap<String, Integer>();
        return key -> {
            synchronized (begun) {
                begun.putIfAbsent(key, System.nanoTime());
            }
            var limiter = client.getRateLimiter(key);
            limiter.trySetRate(RateType.OVERALL, 200, Duration.ofSeconds(1));
            var ok = limiter.tryAcquire(Duration.ofMinutes(1));
            synchronized (begun) {
                // a millisecond per window, as the library counts in whole ones
                long windows = (System.nanoTime() - begun.get(key)) / TimeUnit.MILLISECONDS.toNanos(999) + 1;
                return new Reply(ok && admitted.merge(key, 1, Integer::sum) <= 200 * windows, "");
            }
        };
    }

    static Hit lock(String addr) {
        var client = redisson(addr, "");
        return key -> {
            var lock = client.getLock("lock:" + key);
            // a thread that holds the lock may take it again
            return new Reply(lock.tryLock(0, 1, TimeUnit.HOURS) && lock.getHoldCount() == 1, "" + lock.isLocked());
        };
    }

    /** Callers that hold a lock one after the other; a call is admitted if it was alone. */
    static Hit releasedLock(String addr) {
        var client = redisson(addr, "");
        var holders = new AtomicInteger();
        return key -> {
            var lock = client.getLock("released:" + key);
            if (!lock.tryLock(1, TimeUnit.MINUTES)) {
                return new Reply(false, "late");
            }
            boolean alone = holders.incrementAndGet() == 1;
            holders.decrementAndGet();
            lock.unlock();
            return new Reply(alone, "");
        };
    }

    static final String THREE_TIERS = """
            local now = tonumber(ARGV[1])
            redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 86400000)
            local tiers = {{60000, 1}, {3600000, 5}, {86400000, 10}}
            for i, tier in ipairs(tiers) do
              local used = redis.call('ZCOUNT', KEYS[1], '(' .. (now - tier[1]), '+inf')
              if used >= tier[2] then
                local first = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. (now - tier[1]), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
                return {0, i, tonumber(first[2]) + tier[1] - now}
              end
            end
            redis.call('ZADD', KEYS[1], now, ARGV[2])
            redis.call('PEXPIRE', KEYS[1], 86400000)
            return {1, 0, redis.call('ZCARD', KEYS[1])}
            """;

    /** One a minute, five an hour, ten a day, over one sorted set, by the clock of the client. */
    static Hit threeTiers(String addr) {
        var script = redisson(addr, "").getScript(StringCodec.INSTANCE);
        var calls = new LinkedHashMap<String, Integer>();
        return key -> {
            int n;
            synchronized (calls) {
                n = calls.merge(key, 1, Integer::sum);
            }
            // three calls a minute, and half an hour's pause after ten: the calls of all threads take less than a day
            long now = 1_763_844_000_000L + n * 20_000L + n / 10 * 1_800_000L;
            List<Object> reply = script.eval(RScript.Mode.READ_WRITE, THREE_TIERS, RScript.ReturnType.LIST,
                    List.of("tiers:" + key), now, "call-" + n);
            return new Reply(reply.get(0).toString().equals("1"), reply.toString());
        };
    }

    static Hit bucket(ProxyManager<byte[]> buckets) {
        var config = BucketConfiguration.builder()
                .addLimit(l -> l.capacity(LIMIT).refillGreedy(LIMIT, DAY)).build();
        return key -> {
            var probe = buckets.builder().build(key.getBytes(), () -> config).tryConsumeAndReturnRemaining(1);
            return new Reply(probe.isConsumed(), "" + probe.getRemainingTokens());
        };
    }

    static ExpirationAfterWriteStrategy untilFull() {
        return ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofSeconds(10));
    }

    static Hit bucket4jLettuce(String addr) {
        var client = RedisClient.create("redis://" + addr);
        client.setOptions(options());
        return bucket(Bucket4jLettuce.casBasedBuilder(client).expirationAfterWrite(untilFull()).build());
    }

    static Hit bucket4jJedis(String addr) {
        var config = new ConnectionPoolConfig();
        config.setMaxTotal(32);
        var jedis = new JedisPooled(config, host(addr), port(addr));
        return bucket(Bucket4jJedis.casBasedBuilder(jedis).expirationAfterWrite(untilFull()).build());
    }

    /** The gateway's limiter with its own script, as the bean of the gateway's configuration makes it. */
    static Hit gateway(String addr) {
        var script = new DefaultRedisScript<List<Long>>();
        script.setLocation(new ClassPathResource("META-INF/scripts/request_rate_limiter.lua"));
        @SuppressWarnings("unchecked")
        var type = (Class<List<Long>>) (Class<?>) List.class;
        script.setResultType(type);
        var context = new GenericApplicationContext();
        context.refresh();
        var limiter = new RedisRateLimiter(new ReactiveStringRedisTemplate(factory(addr)), script,
                new ConfigurationService(context, () -> null, () -> null));
        int perCall = 86400; // tokens, of which one is added each second: a call a day, and a burst of the limit
        limiter.getConfig().put("route", new RedisRateLimiter.Config().setReplenishRate(1)
                .setBurstCapacity(LIMIT * perCall).setRequestedTokens(perCall));
        limiter.setApplicationContext(context);
        return key -> {
            var r = limiter.isAllowed("route", key).block(Duration.ofSeconds(10));
            long remaining = Long.parseLong(r.getHeaders().get("X-RateLimit-Remaining"));
            if (remaining < 0) {
                throw new IllegalStateException(ADMITS_ALL);
            }
            return new Reply(r.isAllowed(), "" + remaining / perCall);
        };
    }

    static final RedisScript<Long> INCR_WINDOW = RedisScript.of("""
            local current = redis.call('INCR', KEYS[1])
            if tonumber(current) == 1 then
              redis.call('EXPIRE', KEYS[1], ARGV[1])
            end
            return current
            """, Long.class);

    static Hit springData(String addr) {
        var template = new StringRedisTemplate(factory(addr));
        return key -> {
            var count = template.execute(INCR_WINDOW, List.of("incr:" + key), "86400");
            return new Reply(count <= LIMIT, "" + count);
        };
    }

    static LettuceConnectionFactory factory(String addr) {
        var factory = new LettuceConnectionFactory(new RedisStandaloneConfiguration(host(addr), port(addr)),
                LettuceClientConfiguration.builder().commandTimeout(Duration.ofSeconds(10)).clientOptions(options()).build());
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }

    /** Calls to a stopped server fail at once; by default they wait a minute for it. */
    static ClientOptions options() {
        return ClientOptions.builder().disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .socketOptions(SocketOptions.builder().connectTimeout(Duration.ofSeconds(10)).build()).build();
    }

    static String host(String addr) {
        return addr.split(":")[0];
    }

    static int port(String addr) {
        return Integer.parseInt(addr.split(":")[1]);
    }

    static final List<Library> LIBRARIES = List.of(
            new Library("Redisson RRateLimiter OVERALL", LIMIT, rateLimiter(RateType.OVERALL, "a", "b")),
            new Library("Redisson RRateLimiter PER_CLIENT", 2 * LIMIT, rateLimiter(RateType.PER_CLIENT, "a", "b")),
            new Library("Redisson RRateLimiter permits", LIMIT, Libraries::permits),
            new Library("Redisson RRateLimiter timeout", CALLERS * EACH, Libraries::waiting),
            new Library("Redisson RLock", 1, Libraries::lock),
            new Library("Redisson RLock, released", CALLERS * EACH, Libraries::releasedLock),
            new Library("Redisson RScript, three tiers", 10, Libraries::threeTiers),
            new Library("Bucket4j on Lettuce", LIMIT, Libraries::bucket4jLettuce),
            new Library("Bucket4j on Jedis", LIMIT, Libraries::bucket4jJedis),
            new Library("Spring Cloud Gateway RedisRateLimiter", LIMIT, Libraries::gateway),
            new Library("Spring Data Redis, INCR in a script", LIMIT, Libraries::springData));

    static final ExecutorService threads = Executors.newFixedThreadPool(CALLERS);

    /** Calls from many threads; returns how many are admitted, less a thousand for each error. */
    static int count(Hit hit, String key) throws Exception {
        var admitted = new AtomicInteger();
        var together = new CountDownLatch(CALLERS);
        Callable<Void> caller = () -> {
            together.countDown();
            together.await();
            for (int i = 0; i < EACH; i++) {
                try {
                    admitted.addAndGet(hit.call(key).admitted() ? 1 : 0);
                } catch (Exception e) {
                    System.err.println(e);
                    admitted.addAndGet(-1000);
                }
            }
            return null;
        };
        threads.invokeAll(Collections.nCopies(CALLERS, caller));
        return admitted.get();
    }

    static String describe(Hit hit, String key) {
        try {
            return hit.call(key).toString();
        } catch (Exception e) {
            return ADMITS_ALL.equals(e.getMessage()) ? ADMITS_ALL : "error";
        }
    }

    static void await(Hit hit, String key) throws Exception {
        for (int i = 0; i < 300 && !describe(hit, key).startsWith("Reply"); i++) {
            Thread.sleep(100);
        }
    }

    public static void main(String[] addrs) throws Exception {
        ((LoggerContext) LoggerFactory.getILoggerFactory()).getLogger("ROOT").setLevel(Level.OFF);
        var input = new BufferedReader(new InputStreamReader(System.in));
        var runs = new ArrayList<Run>();
        for (var library : LIBRARIES) {
            for (var addr : addrs) {
                var run = new Run(library, library.maker().make(addr), new Outcome());
                run.outcome().admitted = count(run.hit(), "java " + library.name());
                for (int i = 0; i < 2 * LIMIT + 3; i++) {
                    run.outcome().replies.add(describe(run.hit(), "java " + library.name() + "2"));
                }
                runs.add(run);
            }
        }
        System.out.println("stop");
        input.readLine();
        var stopped = threads.invokeAll(runs.stream().map(r -> (Callable<String>) () -> describe(r.hit(), "java stopped " + r.library().name())).toList());
        for (int i = 0; i < runs.size(); i++) {
            runs.get(i).outcome().stopped = stopped.get(i).get();
        }
        System.out.println("start");
        input.readLine();
        boolean failed = false;
        for (var library : LIBRARIES) {
            var outcomes = new ArrayList<Outcome>();
            for (var run : runs) {
                if (run.library() == library) {
                    await(run.hit(), "java await " + library.name());
                    run.outcome().again = count(run.hit(), "java " + library.name() + "3");
                    outcomes.add(run.outcome());
                }
            }
            Outcome ours = outcomes.get(0), theirs = outcomes.get(outcomes.size() - 1);
            System.out.printf("%-38s %d of %d calls admitted, %d after a restart, while stopped: %s%n", library.name(),
                    ours.admitted, CALLERS * EACH, ours.again, ours.stopped);
            boolean exact = outcomes.stream().allMatch(o -> o.admitted == library.total() && o.again == library.total());
            if (!exact || !ours.replies.equals(theirs.replies) || !ours.stopped.equals(theirs.stopped)) {
                failed = true;
                for (var o : outcomes) {
                    System.out.println("FAILED: " + o.admitted + " " + o.again + " " + o.stopped + " " + o.replies);
                }
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(failed ? 1 : 0);
    }
}
