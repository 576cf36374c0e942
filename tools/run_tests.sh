#!/usr/bin/env bash
# tools/run_tests.sh BUILD_DIR CTEST…: runs ctest there, writes BUILD_DIR/junit.xml and ends with one
# line of totals. ctest's exit status is kept.
set -uo pipefail
build=$1
shift
rm -f "$build/junit.xml"
# Tests ask for more memory than there is, and want the refusal, not the sanitizer's abort.
export ASAN_OPTIONS="${ASAN_OPTIONS:-allocator_may_return_null=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:allocator_may_return_null=1}"
"$@" --test-dir "$build" --output-junit junit.xml
status=$?
python3 "$(dirname "$0")/summary.py" "$build/junit.xml" || exit 1
exit $status
