<?php
// Limits with libraries that run on Redis, on two servers: see go/main.go, which does the same.

use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\CacheStorage;

foreach (['Cache', 'Lock', 'RateLimiter'] as $component) {
    require_once "Symfony/Component/$component/autoload.php";
}
const LIMIT = 20, CALLERS = 10, EACH = 10; // callers are processes

set_error_handler(function (int $level, string $message) {
    throw new ErrorException($message);
}, E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);

function connect(string $addr): Redis
{
    [$host, $port] = explode(':', $addr);
    $redis = new Redis();
    $redis->connect($host, (int) $port, 10, null, 0, 60);
    return $redis;
}

// A limiter is a function of a server's address that returns a hit: key => [admitted, what else it says].
function limiter(array $options): callable
{
    return function (string $addr) use ($options) {
        $redis = connect($addr);
        $locks = new LockFactory(new RedisStore($redis));
        $factory = new RateLimiterFactory(['id' => $options['policy']] + $options, new CacheStorage(new RedisAdapter($redis)), $locks);
        return function (string $key) use ($factory, $redis) {
            $redis->ping(); // the cache says of a stopped server that it has no such key
            $rate = $factory->create($key)->consume();
            return [$rate->isAccepted(), $rate->getRemainingTokens()];
        };
    };
}

$lock = function (string $addr) {
    $locks = new LockFactory(new RedisStore(connect($addr)));
    return function (string $key) use ($locks) {
        static $held = [];
        $lock = $locks->createLock("lock:$key", 3600, false);
        $held[] = $lock;
        return [$lock->acquire(), $lock->isAcquired()];
    };
};

// Callers that hold a lock one after the other; a call is admitted if it was alone.
$releasedLock = function (string $addr) {
    $locks = new LockFactory(new RedisStore(connect($addr)));
    return function (string $key) use ($locks) {
        $lock = $locks->createLock("released:$key", 3600);
        while (!$lock->acquire()) {
            usleep(1000); // acquire(true) tries again after a tenth of a second
        }
        $file = fopen(sys_get_temp_dir().'/'.md5($key.getenv('RUN')), 'c');
        $alone = flock($file, LOCK_EX | LOCK_NB);
        fclose($file);
        $lock->release();
        return [$alone, null];
    };
};

$libraries = [
    'Symfony RateLimiter fixed window' => [LIMIT, limiter(['policy' => 'fixed_window', 'limit' => LIMIT, 'interval' => '1 day'])],
    'Symfony RateLimiter sliding window' => [LIMIT, limiter(['policy' => 'sliding_window', 'limit' => LIMIT, 'interval' => '1 day'])],
    'Symfony RateLimiter token bucket' => [LIMIT, limiter(['policy' => 'token_bucket', 'limit' => LIMIT,
        'rate' => ['interval' => '1 day', 'amount' => 1]])],
    'Symfony Lock' => [1, $lock],
    'Symfony Lock, released' => [CALLERS * EACH, $releasedLock],
];

function describe(callable $hit, string $key): string
{
    try {
        return json_encode($hit($key));
    } catch (Throwable) {
        return 'error';
    }
}

// Calls from many processes; returns how many are admitted, less a thousand for each error.
function count_admitted(callable $make, string $addr, string $key): int
{
    $pipes = [];
    for ($caller = 0; $caller < CALLERS; $caller++) {
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
        if (pcntl_fork() === 0) {
            $admitted = 0;
            $hit = $make($addr);
            for ($i = 0; $i < EACH; $i++) {
                try {
                    $admitted += $hit($key)[0] ? 1 : 0;
                } catch (Throwable $e) {
                    fwrite(STDERR, "$e\n");
                    $admitted -= 1000;
                }
            }
            fwrite($pair[1], "$admitted\n");
            posix_kill(getmypid(), SIGKILL); // without the destructors of what the parent has: they would release its locks
        }
        fclose($pair[1]);
        $pipes[] = $pair[0];
    }
    $total = array_sum(array_map(fn ($pipe) => (int) fgets($pipe), $pipes));
    while (pcntl_wait($status) > 0);
    return $total;
}

// Waits until a server replies. A connection that has failed stays so: a script of PHP opens one per request.
function await(string $addr): void
{
    for ($i = 0; $i < 600; $i++) {
        try {
            connect($addr)->ping();
            return;
        } catch (Throwable) {
            usleep(100_000);
        }
    }
}

putenv('RUN='.getmypid());
$addrs = array_slice($argv, 1);
$runs = [];
foreach ($libraries as $name => [$total, $make]) {
    foreach ($addrs as $addr) {
        $outcome = ['admitted' => count_admitted($make, $addr, "php $name")];
        $hit = $make($addr);
        for ($i = 0; $i < LIMIT + 3; $i++) {
            $outcome['replies'][] = describe($hit, "php $name 2");
        }
        $runs[$name][] = [$addr, $hit, $outcome];
    }
}
echo "stop\n";
fgets(STDIN);
foreach ($runs as $name => &$both) {
    foreach ($both as &$run) {
        $run[2]['stopped'] = describe($run[1], 'stopped');
    }
}
unset($both, $run);
echo "start\n";
fgets(STDIN);
$failed = false;
foreach ($libraries as $name => [$total, $make]) {
    $outcomes = [];
    foreach ($runs[$name] as [$addr, , $outcome]) {
        await($addr);
        $outcomes[] = $outcome + ['again' => count_admitted($make, $addr, "php $name 3")];
    }
    [$ours, $theirs] = [$outcomes[0], end($outcomes)];
    printf("%-36s %d of %d calls admitted, %d after a restart, while stopped: %s\n", $name, $ours['admitted'],
        CALLERS * EACH, $ours['again'], $ours['stopped']);
    if ($ours !== $theirs || $ours['admitted'] !== $total || $ours['again'] !== $total) {
        echo 'FAILED: ours ', json_encode($ours), "\n      Redis's ", json_encode($theirs), "\n";
        $failed = true;
    }
}
exit($failed ? 1 : 0);
