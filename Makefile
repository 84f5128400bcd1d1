# SPDX-License-Identifier: Apache-2.0
#
# The everyday commands. Each one sets up what it needs; CMakeLists.txt and CMakePresets.json hold
# the build itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build
.PHONY: build demo test bench format tidy asan fuzz conformance clean

CPP_FOLDERS := $(wildcard src tests bench fuzz)
CPP_FILES = find $(CPP_FOLDERS) \( -name '*.h' -o -name '*.cc' \) -print0
FUZZ_SECONDS ?= 60

# Configures a preset once; afterwards ninja notices changes by itself.
build/%/build.ninja: CMakePresets.json
	@cmake --preset $* >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }
	@touch $@

build: ## the program, at build/dynosim
	@scripts/bootstrap
	@mkdir -p build && $(MAKE) build/release/build.ninja
	@cmake --build --preset release --target dynosim
	@ln -sfn release/dynosim build/dynosim

demo: build ## replays a public conversation trace on four simulated workers
	build/dynosim replay examples/conversation_trace.jsonl.zst --num-workers 4 \
	  --extra-engine-args '{"engine": {"backend": "vllm"}}' --report-json build/demo_report.json

test: ## every test
	@scripts/bootstrap
	@mkdir -p build && $(MAKE) build/dev/build.ninja
	@cmake --build --preset dev
	@ctest --preset dev

asan: ## every test under the address and undefined behaviour sanitizers
	@scripts/bootstrap
	@mkdir -p build && $(MAKE) build/asan/build.ninja
	@cmake --build --preset asan
	@ctest --preset asan

bench: build ## every benchmark program under bench/
	@cmake --build --preset release
	@for source in bench/*.cc; do name=$$(basename $$source .cc); echo "== $$name"; build/release/$$name; done

conformance: build ## the recorded results of the reference
	@tests/conformance/run --bin build/dynosim

fuzz: ## every fuzz target for FUZZ_SECONDS seconds
	@scripts/bootstrap fuzz
	@mkdir -p build && $(MAKE) build/fuzz/build.ninja
	@cmake --build --preset fuzz
	@tools/fuzz_smoke $(FUZZ_SECONDS)

format: ## rewrites the sources in the one layout
	@scripts/bootstrap lint
	@$(CPP_FILES) | xargs -0 -r clang-format-19 -i

tidy: ## project rules, layout, static analysis
	@scripts/bootstrap lint
	@tools/tidy.py
	@$(CPP_FILES) | xargs -0 -r clang-format-19 --dry-run -Werror
	@mkdir -p build && $(MAKE) build/tidy/build.ninja
	@cmake --preset tidy >build/tidy.log 2>&1 || { cat build/tidy.log; exit 1; }
	@tools/lint.py build/tidy

clean: ## removes everything that was built
	rm -rf build
