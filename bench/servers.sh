# Functions of the benchmarks: they start and stop servers, and measure them. This file is sourced by scripts that have
# set -euo pipefail, $repo, $connections, $random_keys and the array own_flags; with turns, $rounds and $seconds; with
# compare, the array names.

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

# processor NAME prints the CPU time that a server has used, in µs: that of its threads, which do not end while it runs, or
# in ticks if the kernel does not tell it.
processor() {
    if [[ -r /proc/${pid[$1]}/schedstat ]]; then
        cat "/proc/${pid[$1]}"/task/*/schedstat | awk '{sum += $1} END {printf "%.0f\n", sum / 1000}'
        return
    fi
    awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); print ($12 + $13) * 1e6 / hz}' "/proc/${pid[$1]}/stat"
}

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

# turns PIPELINE SERVER COMMAND [SERVER COMMAND] measures each server's command in alternation, and sets ${medians[@]} to
# the medians of the rates, and ${costs[@]} to those of the CPU times of a call in µs. Commands are split at blanks.
# $fill, if set, runs as often before each round. There are $rounds rounds, which take about $seconds each.
turns() {
    local pipeline=$1 i round requests begun
    local -a servers=() commands=() size=() command
    shift
    while (($# > 0)); do
        servers+=("$1") commands+=("$2")
        cli "$1" FLUSHALL >/dev/null
        shift 2
    done
    ((SECONDS < 400)) || rounds=1 # on a slow machine, to limit the time of the run
    for i in "${!servers[@]}"; do
        read -ra command <<<"${commands[i]}"
        # A short run warms up, and gives the number of requests for the time of a round.
        requests=$(rate "${servers[i]}" "$pipeline" $((3000 + 500 * pipeline)) "${command[@]}")
        size[i]=$(awk -v r="$requests" -v s="$seconds" 'BEGIN {n = int(r * s); print n < 2000 ? 2000 : n}')
        : >"$work/$i.rates"
        : >"$work/$i.costs"
    done
    for ((round = 0; round < rounds; round++)); do
        for i in "${!servers[@]}"; do
            if [[ -n ${fill:-} ]]; then
                read -ra command <<<"$fill"
                rate "${servers[i]}" 64 "${size[i]}" "${command[@]}" >/dev/null
            fi
            read -ra command <<<"${commands[i]}"
            sync "$work" # so that one server does not wait for the other's unwritten data
            begun=$(processor "${servers[i]}")
            rate "${servers[i]}" "$pipeline" "${size[i]}" "${command[@]}" >>"$work/$i.rates"
            awk -v b="$begun" -v e="$(processor "${servers[i]}")" -v n="${size[i]}" \
                'BEGIN {printf "%.2f\n", (e - b) / n}' >>"$work/$i.costs"
        done
    done
    medians=() costs=()
    for i in "${!servers[@]}"; do
        medians+=("$(median <"$work/$i.rates")")
        costs+=("$(median <"$work/$i.costs")")
    done
}

# compare LABEL TARGETS REDIS_COMMAND OUR_COMMAND [CPU_TARGETS] prints a line for each pipeline depth: Redis, if
# installed, and ours. With "-" for its command, Redis has none.
compare() {
    local pipeline
    local -a targets cpu_targets
    read -ra targets <<<"$2"
    read -ra cpu_targets <<<"${5:-}"
    for pipeline in ${pipelines:-1 16 64}; do
        if [[ ${#names[@]} == 2 && $3 != - ]]; then
            turns "$pipeline" redis "$3" rlserver "$4"
        else
            turns "$pipeline" rlserver "$4"
            medians=(- "${medians[0]}") costs=(- "${costs[0]}")
        fi
        line "$1" "$pipeline" "${targets[0]:-}" "${cpu_targets[0]:-}"
        targets=("${targets[@]:1}") cpu_targets=("${cpu_targets[@]:1}")
    done
}

# heading LABEL A B prints the heading of a table, and line LABEL PIPELINE TARGET CPU_TARGET a row from the two medians:
# the calls per second of A and B, their ratio and its target, and the same of the CPU time of a call.
readonly row='%-32s %8s %12s %12s %7s %7s %9s %9s %7s %7s\n'
heading() {
    printf "\n$row" "$1" pipeline "$2" "$3" ratio target "CPU µs" "CPU µs" ratio target
}
line() {
    awk -v row="$row" -v label="$1" -v pipeline="$2" -v target="$3" -v cpu_target="$4" -v first="${medians[0]}" \
        -v second="${medians[1]}" -v cost="${costs[0]}" -v own="${costs[1]}" '
        function ratio(a, b) { return a == "-" || a == 0 ? "-" : sprintf("%.2f", b / a) }
        BEGIN {
            printf row, label, pipeline, first, second, ratio(first, second), target, cost, own, ratio(cost, own), cpu_target
        }'
}
