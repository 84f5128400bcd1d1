# SPDX-License-Identifier: Apache-2.0
#
# The everyday commands. Each one sets up what it needs; CMakeLists.txt and CMakePresets.json hold
# the build itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build
.PHONY: build demo test bench format layout tidy analyze asan fuzz conformance clean bootstrap bootstrap-lint bootstrap-fuzz

CPP_FOLDERS := $(wildcard src tests bench fuzz)
CPP_FILES = find $(CPP_FOLDERS) \( -name '*.h' -o -name '*.cc' \) -print0
FUZZ_SECONDS ?= 60
CLANG_TIDY := build/lint/clang_tidy/data/bin/clang-tidy

bootstrap: ## the packages that the build needs
	@scripts/bootstrap
bootstrap-lint bootstrap-fuzz: bootstrap-%:
	@scripts/bootstrap $*

# Configures a preset once; afterwards ninja notices changes by itself.
build/%/build.ninja: CMakePresets.json | bootstrap
	@mkdir -p build
	@cmake --preset $* >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }
	@touch $@
build/fuzz/build.ninja: | bootstrap-fuzz

build: build/release/build.ninja ## the program, at build/dynosim
	@cmake --build --preset release --target dynosim
	@ln -sfn release/dynosim build/dynosim

demo: build ## replays a public conversation trace on four simulated workers
	build/dynosim replay examples/conversation_trace.jsonl.zst --num-workers 4 \
	  --extra-engine-args '{"engine": {"backend": "vllm"}}' --report-json build/demo_report.json

test: build/dev/build.ninja ## every test
	@cmake --build --preset dev
	@ctest --preset dev

asan: build/asan/build.ninja ## every test under the address and undefined behaviour sanitizers
	@cmake --build --preset asan
	@ctest --preset asan

bench: build ## every benchmark program under bench/
	@cmake --build --preset release --target benchmarks
	@for source in bench/*.cc; do name=$$(basename $$source .cc); echo "== $$name"; build/release/$$name; done

conformance: build ## the recorded results of the reference
	@tests/conformance/run --bin build/dynosim

fuzz: build/fuzz/build.ninja ## every fuzz target for FUZZ_SECONDS seconds
	@cmake --build --preset fuzz --target fuzzers
	@tools/fuzz_smoke $(FUZZ_SECONDS)

format: bootstrap-lint ## rewrites the sources in the one layout
	@$(CPP_FILES) | xargs -0 -r clang-format-19 -i

layout: bootstrap-lint ## project rules and layout
	@tools/tidy.py
	@$(CPP_FILES) | xargs -0 -r clang-format-19 --dry-run -Werror

# The compile commands are written anew each time, because no build notices new files here.
tidy: layout build/tidy/build.ninja $(CLANG_TIDY) ## project rules, layout, clang-tidy
	@cmake --preset tidy >build/tidy.log 2>&1 || { cat build/tidy.log; exit 1; }
	@tools/lint.py build/tidy --tool $(CLANG_TIDY) $(TIDY_ARGS)

analyze: TIDY_ARGS = --analyze
analyze: tidy ## clang-tidy with its path analysis, which takes an hour

# Versions before 21 look through every system header, which takes three times as long.
$(CLANG_TIDY):
	@python3 -m pip install --quiet --disable-pip-version-check --target build/lint clang-tidy==23.1.4
	@touch $@

clean: ## removes everything that was built
	rm -rf build
