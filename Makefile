# SPDX-License-Identifier: Apache-2.0
#
# The everyday commands. Each one sets up what it needs; CMakeLists.txt and CMakePresets.json hold
# the build itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build
.PHONY: build build-tokenizers test-tokenizers demo test python-test live-clients perfdata bench format layout tidy analyze asan fuzz conformance browser clean bootstrap bootstrap-lint bootstrap-fuzz bootstrap-browser bootstrap-live

CPP_FOLDERS := $(wildcard src tests bench fuzz)
CPP_FILES = find $(CPP_FOLDERS) \( -name '*.h' -o -name '*.cc' \) -print0
FUZZ_SECONDS ?= 60
FUZZ_JOBS ?= 8
PERFDATA_TOOLS := numpy==2.4.6 packaging==26.4 pyarrow==26.0.1 PyYAML==6.0.4 zstandard==0.25.0
CLANG_TIDY := build/lint/clang_tidy/data/bin/clang-tidy

bootstrap: ## the packages that the build needs
	@scripts/bootstrap
bootstrap-lint bootstrap-fuzz bootstrap-browser bootstrap-live: bootstrap-%:
	@scripts/bootstrap $*

# Configures a preset once; afterwards ninja notices changes by itself.
build/%/build.ninja: CMakePresets.json | bootstrap
	@mkdir -p build
	@cmake --preset $* >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }
	@touch $@
build/asan/build.ninja: | bootstrap-fuzz

build: build/release/build.ninja ## the program, at build/dynosim
	@cmake --build --preset release --target dynosim
	@ln -sfn release/dynosim build/dynosim

# In a folder of its own, so that `make build` goes on without cargo. The link is the last one built.
build-tokenizers: | bootstrap ## the program with --tokenizer for tokenizer.json files, at build/dynosim
	@scripts/bootstrap tokenizers
	@mkdir -p build
	@[ -e build/tokenizers/build.ninja ] || \
	  cmake --preset release -B build/tokenizers -DDYNO_HF_TOKENIZER=ON >build/tokenizers.log 2>&1 || \
	  { cat build/tokenizers.log; exit 1; }
	@cmake --build build/tokenizers --target dynosim
	@ln -sfn tokenizers/dynosim build/dynosim

# The ordinary tests skip these.
test-tokenizers: build-tokenizers ## the tests of --tokenizer, also against the tokenizers package
	@cmake --build build/tokenizers --target dynosim_tests
	@ctest --test-dir build/tokenizers -R '^Tokenizer' --no-tests=error --output-on-failure
	@[ -x build/live-clients/bin/python ] || python3 -m venv build/live-clients
	@build/live-clients/bin/pip install --quiet --disable-pip-version-check \
	  $(shell grep -E '^(tokenizers|prometheus-client)=' tests/live_clients/requirements.txt)
	@build/live-clients/bin/python tests/live_clients/tokenizer_run.py --bin build/tokenizers/dynosim

demo: build ## replays a public conversation trace on four simulated workers
	build/dynosim replay examples/conversation_trace.jsonl.zst --num-workers 4 \
	  --extra-engine-args '{"engine": {"backend": "vllm"}}' --report-json build/demo_report.json

test: build ## every test
	@cmake --build --preset release
	@ctest --preset release

asan: build/asan/build.ninja ## every test under the address and undefined behaviour sanitizers
	@cmake --build --preset asan
	@ctest --preset asan

# The package as a user installs it, in an environment of its own. What builds it is there too and
# stays: from a folder of its own for each build, as pip has it otherwise, no object would be reused.
PYTHON_BUILD = $(shell sed -n 's/^requires = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d '",')
PYTHON_PIP := build/python-test/bin/pip install --quiet --disable-pip-version-check --no-compile
python-test: | bootstrap ## the tests of the Python package and of the documents
	@python3 -c 'import ensurepip, os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' \
	  2>/dev/null || scripts/bootstrap python
	@[ -x build/python-test/bin/python ] || python3 -m venv build/python-test
	@$(PYTHON_PIP) $(PYTHON_BUILD) pytest==9.1.1 mypy==2.4.1
	@$(PYTHON_PIP) --no-build-isolation '.[frames,bayesian,ray]'
	@build/python-test/bin/python -m pytest -q -p no:cacheprovider tests/python

LIVE_CLIENT = build/live-clients/bin/python tests/live_clients/$(1).py --bin build/dynosim
live-clients: build bootstrap-live ## the live server with the clients, the load generator and the store that others wrote
	@[ -x build/live-clients/bin/python ] || python3 -m venv build/live-clients
	@build/live-clients/bin/pip install --quiet --disable-pip-version-check \
	  -r tests/live_clients/requirements.txt
	$(call LIVE_CLIENT,openai_client)
	$(call LIVE_CLIENT,kv_subscriber)
	$(call LIVE_CLIENT,etcd_run)
	$(call LIVE_CLIENT,soak) --seconds 20
	$(call LIVE_CLIENT,soak) --seconds 20 --pools
	$(call LIVE_CLIENT,aiperf_run) --concurrency 1 64 --workers 4
	PATH="$$PWD/build/live-clients/bin:$$PATH" tests/docs/run --bin build/dynosim docs/tutorial.md

# SYSTEM and BACKEND choose; both may name several.
perfdata: ## measured performance data of every system, or of SYSTEM="h100_sxm ..." BACKEND="vllm ..."
	@[ -x build/perfdata/bin/python ] || python3 -m venv build/perfdata
	@build/perfdata/bin/pip install --quiet $(PERFDATA_TOOLS)
	@PYTHONPATH=python build/perfdata/bin/python -m dynosim.perfdata install \
	  $(foreach s,$(SYSTEM),--system $(s)) $(foreach b,$(BACKEND),--backend $(b))

bench: build ## every benchmark program under bench/
	@cmake --build --preset release --target benchmarks
	@for source in bench/*.cc; do name=$$(basename $$source .cc); echo "== $$name"; build/release/$$name; done

conformance: build ## the recorded results of the reference
	@tests/conformance/run --bin build/dynosim

browser: build bootstrap-browser ## the HTML report in headless Chromium
	@tests/browser/page_test.py --bin build/dynosim

fuzz: build/asan/build.ninja ## every fuzz target for FUZZ_SECONDS seconds, FUZZ_JOBS at a time
	@cmake --build --preset asan --target fuzzers
	@tools/fuzz_smoke $(FUZZ_SECONDS) $(FUZZ_JOBS)

format: bootstrap-lint ## rewrites the sources in the one layout
	@$(CPP_FILES) | xargs -0 -r clang-format-19 -i

layout: bootstrap-lint ## project rules and layout
	@tools/tidy.py
	@$(CPP_FILES) | xargs -0 -r clang-format-19 --dry-run -Werror

# The compile commands are written anew each time, because no build notices new files here.
tidy: TIDY_BUILD = tidy
analyze: TIDY_BUILD = analyze
analyze: TIDY_ARGS = --analyze
tidy analyze: layout bootstrap $(CLANG_TIDY)
	@mkdir -p build
	@cmake --preset $(TIDY_BUILD) >build/$(TIDY_BUILD).log 2>&1 || { cat build/$(TIDY_BUILD).log; exit 1; }
	@tools/lint.py build/$(TIDY_BUILD) --tool $(CLANG_TIDY) $(TIDY_ARGS)
tidy: ## project rules, layout, clang-tidy
analyze: ## clang-tidy with its path analysis and of each file's includes, which takes an hour

# Versions before 21 look through every system header, which takes three times as long.
$(CLANG_TIDY):
	@python3 -m pip install --quiet --disable-pip-version-check --target build/lint clang-tidy==23.1.4
	@touch $@

clean: ## removes everything that was built
	rm -rf build
