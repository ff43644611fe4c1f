# The door. Everything real is in meson.build, tests/ and tools/.
.PHONY: all help demo test check asan fuzz soak-runtime soak-apiserver soak-controllers soak-cluster soak-isolate soak-up soak-trust cover lint bench peers man image install clean \
        setup-build setup-test setup-bench setup-lint
.DELETE_ON_ERROR:

SAN  = -Db_sanitize=address,undefined -Db_lundef=false
FUZZ_SECONDS ?= 30
PREFIX ?= /usr/local

all: setup-build build/release/build.ninja          ## the release build, its programs copied to build/
	ninja -C build/release
	strip -o build/release/silica-runtime build/release/src/runtime/silica-runtime
	strip -o build/release/silica build/release/src/cli/silica
	install build/release/silica-runtime build/release/silica build

help:                                               ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

demo: all                                           ## builds, then shows the system with the Python SDK, the runtime, a sandbox
	tools/demo

test: setup-test all build/debug/build.ninja build/asan/build.ninja   ## everything; the last line counts
	ninja -C build/debug
	ninja -C build/asan
	for b in release debug asan; do ninja -C build/$$b -t missingdeps || exit 1; done # a generated header that nobody waits for
	python3 tests/run.py

check: setup-test build/debug/build.ninja           ## unit tests and corpora only
	meson test -C build/debug --print-errorlogs

asan: setup-test build/asan/build.ninja             ## the same with the address and undefined sanitizers
	meson test -C build/asan --print-errorlogs

fuzz: setup-test build/fuzz/build.ninja             ## each fuzz target, or FUZZ_TARGETS, for FUZZ_SECONDS
	ninja -C build/fuzz
	tools/fuzz build/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

soak-runtime: setup-test setup-bench all            ## the runtime's full figures: fuzzing 10 minutes each, load, leaks
	$(MAKE) fuzz FUZZ_SECONDS=600 FUZZ_TARGETS="base_json http_guard http_http1 http_h2 http_multipart http_grpc_frame runtime_path runtime_file_find runtime_split runtime_proto"
	python3 tests/soak/runtime.py

soak-apiserver: setup-test all build/debug/build.ninja  ## the API server's: fuzzing 2 minutes each, 300 kills, 10,000 connections
	ninja -C build/debug
	$(MAKE) fuzz FUZZ_SECONDS=120 FUZZ_TARGETS="http_h2 http_spdy http_ws podstream_request kube_proto kube_patch kube_apply kube_select kube_yaml kube_yaml_write kube_table kube_validate apiserver_accept apiserver_pages apiserver_request apiserver_token kubeclient_kubeconfig kubeclient_cut apiserver_wal"
	python3 tests/soak/apiserver.py

soak-controllers: setup-test all                    ## the controllers': 5 minutes of kills under 200 claims, failovers
	python3 tests/soak/controllers.py

soak-cluster: setup-test all                        ## two replicas on a real control plane: 5 minutes of kills under claims
	tools/peers cluster >/dev/null
	python3 tests/soak/cluster.py

soak-isolate: setup-test all                        ## the isolation engine's: 200 kills anywhere
	SILICA_KILLS=200 python3 tests/run.py --tier e2e -k test_killed_anywhere

soak-up: setup-test all                             ## silica up: 100 kills of its processes under 50 clients
	SILICA_KILLS=100 SILICA_CLIENTS=50 python3 tests/run.py --tier e2e -k test_killed_under_load

soak-trust: setup-test all                          ## 200 kills under claims, files, execs and streams; three daemons attack each other for 20 minutes
	SILICA_KILLS=200 SILICA_WORKERS=16 SILICA_SUITE_TIMEOUT_S=4500 python3 tests/run.py --tier e2e -k test_every_acknowledged_byte
	SILICA_SECONDS=600 SILICA_JUDGE=1 SILICA_SUITE_TIMEOUT_S=4500 python3 tests/run.py --tier security -k test_no_effect

cover: setup-test setup-lint build/cover/build.ninja ## coverage of the unit tests
	meson test -C build/cover
	gcovr -r . build/cover --exclude '.*_(test|fuzz)\.c' --print-summary

lint: setup-build setup-lint                        ## layers, rules and layout
	tools/check-layers
	tools/lint
	tools/crds --check
	clang-format-14 --dry-run --Werror $$(git ls-files 'src/*.c' 'src/*.h' 'tests/*.c')

bench: setup-test setup-bench all peers             ## ours and the peers side by side, as ratios
	meson setup --reconfigure build/release >/dev/null  # made before the peers' packages came, perhaps
	ninja -C build/release
	python3 tests/bench/run.py

peers: setup-test                                   ## builds the peers, once; cached outside the tree
	tools/peers

image: all                                          ## OCI archives, without Docker
	tools/image build

man: all                                            ## docs/man, from the templates and the option tables
	tools/man build/silica-runtime docs/man/silica-runtime.1.in >build/silica-runtime.1
	mv build/silica-runtime.1 docs/man/silica-runtime.1
	tools/man build/silica docs/man/silica.1.in >build/silica.1
	mv build/silica.1 docs/man/silica.1

install: all                                        ## programs and manuals below DESTDIR and PREFIX (/usr/local)
	install -D build/silica $(DESTDIR)$(PREFIX)/bin/silica
	install -D build/silica-runtime $(DESTDIR)$(PREFIX)/bin/silica-runtime
	install -D -m 644 docs/man/silica.1 $(DESTDIR)$(PREFIX)/share/man/man1/silica.1
	install -D -m 644 docs/man/silica-runtime.1 $(DESTDIR)$(PREFIX)/share/man/man1/silica-runtime.1

clean:                                              ## removes build/
	rm -rf build

setup-build: ; tools/setup build
setup-test:  ; tools/setup build test
setup-bench: ; tools/setup build test bench
setup-lint:  ; tools/setup lint

build/release/build.ninja: ; meson setup build/release --buildtype=release -Doptimization=2 -Dtests=disabled
build/debug/build.ninja:   ; meson setup build/debug
build/asan/build.ninja:    ; meson setup build/asan $(SAN) -Dc_args=-fno-sanitize-recover=all
build/cover/build.ninja:   ; meson setup build/cover -Db_coverage=true
build/fuzz/build.ninja:    ; CC=clang-14 meson setup build/fuzz $(SAN) -Dfuzz=true -Dc_args='-fno-sanitize-recover=all -fsanitize=fuzzer-no-link'
