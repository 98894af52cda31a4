# Functions of the benchmarks: they start and stop servers, and measure them. This file is sourced by scripts that have
# set -euo pipefail, $repo, $connections, $random_keys and the array own_flags.

die() { echo "bench: $*" >&2; exit 1; }
for tool in redis-benchmark redis-cli; do
    command -v "$tool" >/dev/null || die "$tool is missing: install the package redis-tools"
done

work=$(mktemp -d)
declare -A pid port
client_flags=() # of redis-cli and redis-benchmark
cleanup() {
    local name
    for name in "${!pid[@]}"; do stop "$name"; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

free_port() { # prints a port that no process listens on, below the range of ephemeral ports
    local candidate
    for _ in {1..100}; do
        candidate=$((10000 + RANDOM % 20000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    die "no free port"
}

# start NAME starts a server: redis, without persistence, or ours, with own_flags; both with flags[NAME]. The directory of
# NAME is kept between starts.
declare -A flags
start() {
    local name=$1 command more
    port[$name]=$(free_port)
    if [[ $name == redis ]]; then
        command=(redis-server --save '' --appendonly no)
    else
        command=("$work/rlserver" "${own_flags[@]}")
    fi
    read -ra more <<<"${flags[$name]:-}"
    command+=("${more[@]}")
    mkdir -p "$work/$name.data"
    (cd "$work/$name.data" && exec "${command[@]}" --bind 127.0.0.1 --port "${port[$name]}") >"$work/$name.log" 2>&1 &
    pid[$name]=$!
    for _ in {1..600}; do
        [[ $(cli "$name" PING 2>/dev/null) == PONG ]] && return
        kill -0 "${pid[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    cat "$work/$name.log" >&2
    die "$name did not start"
}

stop() {
    [[ -n ${pid[$1]:-} ]] || return 0
    kill "${pid[$1]}" 2>/dev/null || true
    wait "${pid[$1]}" 2>/dev/null || true
    unset "pid[$1]"
}

cli() { # cli NAME ARG ...
    local name=$1
    shift
    redis-cli -p "${port[$name]}" "${client_flags[@]}" "$@"
}

# rate NAME PIPELINE REQUESTS COMMAND ... prints requests per second.
rate() {
    local name=$1 pipeline=$2 requests=$3
    shift 3
    timeout 60 redis-benchmark -h 127.0.0.1 -p "${port[$name]}" -c "$connections" -r "$random_keys" \
        "${client_flags[@]}" -P "$pipeline" -n "$requests" --csv "$@" 2>"$work/benchmark.log" |
        awk -F'","' 'NR > 1 {printf "%d\n", $2; found = 1} END {exit !found}' ||
        { cat "$work/benchmark.log" >&2; die "redis-benchmark failed: $*"; }
}

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# processor NAME prints the CPU time that a server has used, in µs.
processor() { awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); print ($12 + $13) * 1e6 / hz}' "/proc/${pid[$1]}/stat"; }

resident() { awk '/^VmRSS:/ {print $2 * 1024}' "/proc/${pid[$1]}/status"; }

# commands COUNT WORD ... prints COUNT commands for redis-cli --pipe. In the i-th command the word KEY is replaced by "k"
# and i modulo $keys in nine digits, and NUMBER by i in twelve.
commands() {
    local count=$1
    shift
    awk -v count="$count" -v keys="$keys" 'BEGIN {
        for (i = 1; i < ARGC; i++) words[i] = ARGV[i]
        n = ARGC
        for (j = 0; j < count; j++) {
            out = "*" (n - 1) "\r\n"
            for (i = 1; i < n; i++) {
                word = words[i] == "KEY" ? sprintf("k%09d", j % keys) : words[i]
                if (word == "NUMBER") word = sprintf("%012d", j)
                out = out "$" length(word) "\r\n" word "\r\n"
            }
            printf "%s", out
        }
    }' "$@"
}
