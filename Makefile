# `make run` starts the server, `make test` tests it; `make help` lists the rest.
GO ?= go
BIN := bin/rlserver

.PHONY: run
run: build ## build the server and start it with defaults; FLAGS="--port 6380" adds flags
	$(BIN) $(FLAGS)

.PHONY: cluster
cluster: build ## start three nodes of a cluster on this machine, and print commands to try, such as one that kills a node
	deploy/cluster/run $(BIN) $(FLAGS)

.PHONY: build
build: ## build bin/rlserver
	$(GO) build -o $(BIN) ./cmd/rlserver

# From an empty cache, compiling is half of the work. The compiler is quicker if it collects garbage less often, without
# DWARF, which is for debuggers, and with one goroutine for each package, as packages are compiled side by side anyway.
# make check optimizes all but go-redis, the largest package; make test only where its tests spend their time. Nothing is
# compiled from C. GOFLAGS is for the tests that build the server, too, so that they share the packages. Twice as many
# packages as processors run at once, as some wait, and what takes longest begins first: integration, after the server,
# which it builds, has been compiled. The tests, too, collect garbage less often.
COMPILE := -dwarf=false -c=1
FULL_FLAGS := '-gcflags=all=$(COMPILE)' '-gcflags=github.com/redis/go-redis/...=-N -l $(COMPILE)'
OPTIMIZED := std rlserver/engine/... rlserver/zset/... rlserver/internal/... rlserver/resp/glob github.com/yuin/...
QUICK_FLAGS := '-gcflags=all=-N -l $(COMPILE)' $(OPTIMIZED:%='-gcflags=%=$(COMPILE)')

.PHONY: test
test: ## the tests in shuffled order, without those that take long, with short random histories; needs only Go (make lint has go vet)
	$(if $(FULL),,CGO_ENABLED=0 GOGC=400) GOFLAGS="$$($(GO) env GOFLAGS) $(if $(FULL),$(FULL_FLAGS),$(QUICK_FLAGS))" \
		$(GO) test $(or $(FULL),-short) -p $$(($$(getconf _NPROCESSORS_ONLN) * $(if $(FULL),1,2))) -toolexec='env GOGC=1600' -vet=off -shuffle=on -timeout=20m ./cmd/rlserver ./integration ./...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, line lengths, and whether the generated documentation is current
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt'ed:" $$unformatted; exit 1; fi
	GOGC=400 $(GO) vet -tags rueidis ./...
	GOGC=400 $(GO) tool staticcheck -tags rueidis ./...
	$(GO) test -count=1 -run '^TestLineLengths$$' ./integration
	$(GO) run ./cmd/rlserver docs | diff -u docs/COMMANDS.md - || { echo "docs/COMMANDS.md is not current: run 'make docs'"; exit 1; }

.PHONY: check
check: lint ## all checks that a change must pass: the tests run with the race detector, which needs a C compiler
	@test "$$($(GO) env CGO_ENABLED)" = 1 || { echo "the race detector needs a C compiler: install gcc"; exit 1; }
	$(MAKE) test FULL="-race -tags rueidis"

.PHONY: docs
docs: ## write docs/COMMANDS.md from the command table
	$(GO) run ./cmd/rlserver docs > docs/COMMANDS.md

.PHONY: conformance
conformance: build ## run Redis' own test suite against the server (fetches Debian's source package of redis)
	integration/conformance/run

.PHONY: live
live: ## compare the recorded replies with a real redis-server; fails if it is not installed
	TRANSCRIPT_LIVE=1 $(GO) test -count=1 -run 'Transcript|^TestImport' ./integration

.PHONY: clients
clients: ## redis-cli and redis-py over TLS; redis-py with copies that the server invalidates; redis-py, ioredis, Lettuce, go-redis and rueidis in a cluster whose nodes are killed, stopped and cut off
	integration/clients/install .cache/clients
	CLIENTS_LIVE=1 CLIENTS_DIR=$(CURDIR)/.cache/clients \
		$(GO) test -tags rueidis -count=1 -timeout 20m -run '^TestTLS|^TestClientCaches$$|^TestClusterClients$$' ./integration

.PHONY: libraries
libraries: ## libraries of Go, Python, Node, Java, PHP, Ruby and Rust that limit on Redis: exactly their limit, the same replies as on a real redis-server
	integration/libraries/install .cache/libraries
	LIBRARIES_LIVE=1 LIBRARIES_DIR=$(CURDIR)/.cache/libraries \
		$(GO) test -count=1 -timeout 30m -parallel 2 -run '^TestLibraries$$' -v ./integration

.PHONY: page
page: ## test the server's page in headless Chromium; fails if it is not installed. SCREENSHOTS=DIR writes screenshots to DIR
	cd integration/browser && $(GO) vet . && $(GO) test -count=1 ./...

.PHONY: exporter
exporter: ## check that Debian's exporter of metrics reads INFO: needs its package, prometheus-redis-exporter
	.ci/exporter

.PHONY: bench
bench: build ## throughput, CPU time, memory and starts, compared with a local redis-server if there is one, and with the module REDIS_CELL; asserts nothing
	bench/run
	bench/memory
	bench/disk
	bench/tail
	bench/tls

.PHONY: bench-cluster
bench-cluster: build ## three nodes of a cluster compared with one server: throughput, CPU time, latency, killed leaders; asserts nothing
	$(GO) run ./bench/cluster -server $(BIN) $(BENCH)

.PHONY: crash
crash: ## kill -9 the server under load, CRASH_ROUNDS times (default 50), and check that no acknowledged call is lost
	CRASH_ROUNDS=$${CRASH_ROUNDS:-50} $(GO) test -count=1 -timeout 30m -run 'Killed' -v ./integration

.PHONY: nemesis
nemesis: ## a cluster whose processes, disks, clocks and network fail for NEMESIS_TIME (default 10m), its calls checked; needs root
	$(GO) run ./integration/nemesis -time $${NEMESIS_TIME:-10m} $(NEMESIS)

.PHONY: nemesis-broken
nemesis-broken: ## the same with servers that are broken on purpose: each must be noticed within NEMESIS_TIME (default 1m)
	$(GO) run ./integration/nemesis -broken -time $${NEMESIS_TIME:-1m} $(NEMESIS)

.PHONY: budgets
budgets: ## 200 clients that reserve, settle and are killed, BUDGET_CALLS reservations (default a million), on a server and on a cluster that are killed too
	BUDGET_CALLS=$${BUDGET_CALLS:-1000000} $(GO) test -count=1 -parallel 1 -timeout 60m -run '^TestBudgets' -v ./integration

.PHONY: flood
flood: ## five million new keys with maxmemory 256 MB: memory of the process, latency of calls
	FLOOD_KEYS=5000000 FLOOD_MAXMEMORY=256 $(GO) test -count=1 -v -run '^TestFloodKeepsDenyingLimiters$$' -timeout 30m ./integration

.PHONY: attack
attack: build ## hostile clients, one attack after another: memory, evictions, latency of other clients; BEFORE=binary compares
	$(GO) run ./bench/attack -server $(BIN) $(if $(BEFORE),-before $(BEFORE)) $(ATTACK)

.PHONY: deploy
deploy: ## check the files in deploy/: needs promtool (package prometheus) and systemd-analyze (package systemd)
	cd deploy && $(GO) vet ./... && DEPLOY_TOOLS=required $(GO) test -count=1 ./...

.PHONY: dist
dist: ## build dist/: archives for linux/amd64 and arm64 with checksums; a commit always gives the same bytes
	GO="$(GO)" deploy/dist

.PHONY: reproduce
reproduce: dist ## build dist/ again in another directory with an empty cache, and compare
	GO="$(GO)" deploy/reproduce

.PHONY: fuzz
fuzz: ## fuzz each parser for FUZZTIME (default 20s)
	@for target in $$(grep -rhoE '^func (Fuzz[A-Za-z]+)' --include='*_test.go' . | awk '{print $$2}' | sort -u); do \
		pkg=$$(dirname $$(grep -rlE "^func $$target\(" --include='*_test.go' . | head -n 1)); \
		echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $${FUZZTIME:-20s} $$pkg || exit 1; \
	done

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
