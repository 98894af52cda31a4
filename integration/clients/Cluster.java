import io.lettuce.core.Range;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Lettuce's RedisClusterClient in a cluster whose nodes fail. See clients_test.go for what it reads and prints. */
public class Cluster {
    /** A command that Lettuce does not know. */
    record Call(String name) implements ProtocolKeyword {
        public byte[] getBytes() {
            return name.getBytes(StandardCharsets.US_ASCII);
        }
    }

    static String prefix;
    static RedisAdvancedClusterCommands<String, String> r;

    static String key(int i) {
        return prefix + ":" + i;
    }

    static CommandArgs<String, String> words(String key, Object... more) {
        var args = new CommandArgs<>(StringCodec.UTF8).addKey(key);
        for (Object word : more) {
            args.add(word.toString());
        }
        return args;
    }

    static List<Object> rl(String name, String key, Object... more) {
        return r.dispatch(new Call(name), new ArrayOutput<>(StringCodec.UTF8), words(key, more));
    }

    static void check(boolean holds, Object... about) {
        if (!holds) {
            throw new AssertionError(Arrays.deepToString(about));
        }
    }

    static void first(StatefulRedisClusterConnection<String, String> connection) throws Exception {
        for (int i = 0; i < 100; i++) {
            check(r.set(key(i), "" + i).equals("OK") && r.get(key(i)).equals("" + i), i);
        }
        // calls of an asynchronous connection go out without a wait for replies, to all nodes at once
        var replies = new ArrayList<RedisFuture<String>>();
        for (int i = 0; i < 100; i++) {
            replies.add(connection.async().get(key(i)));
        }
        for (int i = 0; i < 100; i++) {
            check(replies.get(i).get(60, TimeUnit.SECONDS).equals("" + i), i);
        }
        for (int i = 0; i < 20; i++) {
            check(rl("RL.TOKEN", key(1000 + i), 10, 1, "1h").get(0).equals(1L), i);
        }
        var slide = rl("RL.SLIDE", key(2000), 2, "1h");
        check(slide.subList(0, 3).equals(List.of(1L, 2L, 1L)), slide);
        String tag = "{" + prefix + "}";
        Object[] both = {"SLIDE", 1, "1h", tag + "b", "FIXED", 1, "1h"};
        check(rl("RL.ALL", tag + "a", both).get(0).equals(1L));
        check(rl("RL.ALL", tag + "a", both).get(0).equals(0L));
        try {
            rl("RL.ALL", key(1), "SLIDE", 1, "1h", key(2), "SLIDE", 1, "1h");
            check(false, "keys of two slots were accepted");
        } catch (RedisCommandExecutionException e) {
            check(e.getMessage().startsWith("CROSSSLOT"), e);
        }
        check(r.hset(tag + "h", Map.of("f", "v")) == 1 && r.hget(tag + "h", "f").equals("v"));
        check(r.zadd(tag + "z", 1, "m") == 1 && r.zcount(tag + "z", Range.unbounded()) == 1);
        check(r.mset(Map.of(key(1), "x", key(2), "x")).equals("OK") && r.mget(key(1), key(2)).size() == 2);
        check(r.bzpopmin(0.01, tag + "none") == null);
    }

    interface Step<T> {
        T run() throws Exception;
    }

    /** Repeats what fails while groups change their leaders. */
    static <T> T again(Step<T> step) throws Exception {
        for (long begun = System.nanoTime(); ; Thread.sleep(10)) {
            try {
                return step.run();
            } catch (RedisException | AssertionError e) {
                if (System.nanoTime() - begun > TimeUnit.MINUTES.toNanos(1)) {
                    throw e;
                }
            }
        }
    }

    /** Calls on all nodes find all keys: each node answers for the slots that it leads. */
    static Void whole() {
        r.flushall();
        var names = new TreeSet<String>();
        for (int i = 0; i < 100; i++) {
            names.add(key(i));
            r.set(key(i), "v");
        }
        check(r.dbsize() == 100, r.dbsize());
        check(new TreeSet<>(r.keys("*")).equals(names));
        var scanned = new TreeSet<String>();
        ScanIterator.scan(r, ScanArgs.Builder.limit(10)).forEachRemaining(scanned::add);
        check(scanned.equals(names), scanned);
        check(r.replicas().size() == 0, r.replicas().size());
        r.flushall();
        check(r.dbsize() == 0, r.dbsize());
        return null;
    }

    static int limit(int k) {
        return 10 + 50 * k;
    }

    static String calls(AtomicBoolean ended, long expected) throws Exception {
        var admitted = new long[20];
        var held = new long[20];
        var errors = new TreeMap<String, Integer>();
        long longest = 0;
        int done = 0;
        while (!ended.get()) {
            int right = 0;
            for (int k = 0; k < 20; k++) {
                long begun = System.nanoTime();
                try {
                    if (rl("RL.SLIDE", key(3000 + k), limit(k), "1h").get(0).equals(1L)) {
                        admitted[k]++;
                    }
                    done++;
                    right++;
                } catch (RedisException e) {
                    String word = ("" + e.getMessage()).split(" ")[0];
                    errors.merge(word.matches("[A-Z]+") ? word : e.getClass().getSimpleName(), 1, Integer::sum);
                }
                longest = Math.max(longest, System.nanoTime() - begun);
            }
            if (right == 20) {
                System.out.println("progress " + longest / 1_000_000);
                longest = 0;
            }
        }
        var counts = new ArrayList<String>();
        errors.forEach((kind, n) -> counts.add("\"" + kind + "\": " + n));
        for (int k = 0; k < 20; k++) {
            int number = k;
            held[k] = again(() -> r.zcard(key(3000 + number)));
        }
        long keys = again(() -> {
            long size = r.dbsize();
            check(size == expected, size);
            return size;
        });
        return "{\"admitted\": %s, \"held\": %s, \"errors\": {%s}, \"calls\": %d, \"keys\": %d}".formatted(
                Arrays.toString(admitted), Arrays.toString(held), String.join(", ", counts), done, keys);
    }

    public static void main(String[] args) throws Exception {
        prefix = args[0];
        var nodes = Arrays.stream(args[1].split(",")).map(a -> {
            var uri = RedisURI.create("redis://" + a);
            uri.setTimeout(Duration.ofSeconds(3));
            return uri;
        }).toList();
        var client = RedisClusterClient.create(nodes);
        // without these, Lettuce learns of a new leader only from MOVED, and waits a minute for a failed one
        client.setOptions(ClusterClientOptions.builder()
                .socketOptions(SocketOptions.builder().connectTimeout(Duration.ofSeconds(1)).build())
                .topologyRefreshOptions(ClusterTopologyRefreshOptions.builder().enableAllAdaptiveRefreshTriggers()
                        .adaptiveRefreshTriggersTimeout(Duration.ofMillis(500))
                        .enablePeriodicRefresh(Duration.ofSeconds(1)).build()).build());
        var connection = client.connect();
        r = connection.sync();
        first(connection);
        again(Cluster::whole);
        System.out.println("ready");
        System.in.read();
        var ended = new AtomicBoolean();
        var input = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (java.io.IOException e) {
                e.printStackTrace();
            }
            ended.set(true);
        });
        input.setDaemon(true);
        input.start();
        System.out.println(calls(ended, Long.parseLong(args[2])));
        client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
    }
}
