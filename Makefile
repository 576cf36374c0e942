# One entry point for people and CI; `make help` lists what there is. CMake and its presets do the
# work, so an IDE that opens CMakePresets.json builds the same thing.
JOBS ?= $(shell nproc)
ARGS ?=
FUZZ_SECONDS ?= 60
# Tests named *Full are long sweeps: only `make test-full` and FULL=1 run them.
SKIP_FULL = $(if $(FULL),,-E 'Full(/| |$$)')
CTEST = ctest --output-on-failure -j$(JOBS) --no-tests=error $(SKIP_FULL)
# Where bytes of a file become values.
READERS = $(addprefix model/,safetensors.cc checkpoint.cc json_strict.cc config.cc config_reader.cc \
    config_features.cc config_parts.cc generation_config.cc tokenizer_check.cc) \
  $(addprefix gate/,token_rows.cc rollout_file.cc json_line.cc score_file.cc header_json.cc \
    trace_file.cc trace_file_check.cc) arith/mma_golden.cc
SOURCES = git ls-files -z -- '*.h' '*.cc' '*.cu' '*.cuh' '*.hip'

.PHONY: all help demo test test-full check check-fast check-format check-tidy asan tsan coverage \
  fuzz fuzz-coverage format gpu-bundle status clean bootstrap bootstrap-test bootstrap-check
.DELETE_ON_ERROR:

all: bootstrap build/release/build.ninja  ## build everything (release)
	cmake --build build/release -j$(JOBS)

help:  ## this list
	@awk -F ':.*## ' '/^[a-z -]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo "  Variables: JOBS=N, FULL=1 (long sweeps too), FUZZ_SECONDS=N, ARGS='…' for make demo"

demo: bootstrap build/release/build.ninja  ## build the program and show what it does
	cmake --build build/release -j$(JOBS) --target samebits
	build/release/samebits demo $(ARGS)

test: bootstrap-test build/release/build.ninja  ## build, cheap checks, the tests
	cmake --build build/release -j$(JOBS)
	@tools/check_fast.sh build/release; checks=$$?; \
	tools/run_tests.sh build/release $(CTEST); tests=$$?; \
	[ $$checks -eq 0 ] || echo "a check FAILED, see above the tests"; \
	exit $$((checks || tests))

test-full:  ## the long sweeps too, the suite without them under both sanitizers, then fuzzing
	$(MAKE) test FULL=1
	$(MAKE) asan tsan
	$(MAKE) fuzz

check: bootstrap-check check-fast check-format check-tidy  ## format, lint and every cheap check

check-fast: build/release/build.ninja  ## layers, flags, bit tests, text, docs
	tools/check_fast.sh build/release

check-format: bootstrap-check  ## clang-format, without changing files
	$(SOURCES) | xargs -0 clang-format-19 --dry-run -Werror

check-tidy: bootstrap-check build/release/build.ninja  ## clang-tidy on the host sources
	run-clang-tidy-19 -quiet -j$(JOBS) -p build/release '/src/samebits/.*\.cc$$'

asan tsan: bootstrap  ## build and test under a sanitizer (address+undefined; thread)
	cmake --preset $@
	cmake --build build/$@ -j$(JOBS)
	tools/run_tests.sh build/$@ $(CTEST)

coverage: bootstrap  ## line coverage by file
	cmake --preset coverage
	cmake --build build/coverage -j$(JOBS)
	find build/coverage -name '*.gcda' -delete
	tools/run_tests.sh build/coverage $(CTEST)
	python3 tools/coverage.py build/coverage

fuzz: bootstrap-fuzz  ## fuzz the readers of files, FUZZ_SECONDS (60) each
	cmake --preset fuzz
	cmake --build build/fuzz -j$(JOBS) --target fuzz
	tools/fuzz.py build/fuzz --seconds $(FUZZ_SECONDS)

fuzz-coverage: bootstrap  ## line coverage of the readers by the committed fuzz corpora alone
	cmake --preset coverage
	cmake --build build/coverage -j$(JOBS) --target sb_fuzz_test
	find build/coverage -name '*.gcda' -delete
	build/coverage/fuzz/sb_fuzz_test --gtest_filter='*CorpusHoldsEveryProperty*' --gtest_brief=1
	python3 tools/coverage.py build/coverage --min 90 $(READERS)

format: bootstrap-check  ## rewrite the sources with clang-format
	$(SOURCES) | xargs -0 clang-format-19 -i

gpu-bundle: all  ## a folder that runs every GPU test where there is one: gpu-bundle/run OUT
	tools/gpu_bundle.sh build/release gpu-bundle

status:  ## docs/status.md from the last `make test`
	python3 tools/status.py --junit build/release/junit.xml

clean:  ## remove every build directory
	rm -rf build

build/release/build.ninja: CMakePresets.json
	cmake --preset release

bootstrap:
	@tools/bootstrap.sh
bootstrap-test bootstrap-check bootstrap-fuzz: bootstrap-%:
	@tools/bootstrap.sh $*
