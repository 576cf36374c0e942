#!/usr/bin/env bash
# tools/run_tests.sh BUILD_DIR CTEST…: runs ctest there, writes BUILD_DIR/junit.xml and ends with
# one line of totals. ctest's exit status is kept.
set -uo pipefail
build=$1
shift
rm -f "$build/junit.xml"
# Tests ask for more memory than there is, and want the refusal, not the sanitizer's abort.
export ASAN_OPTIONS="${ASAN_OPTIONS:-allocator_may_return_null=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:allocator_may_return_null=1}"
# GCC 12's ThreadSanitizer cannot place its memory where more than 28 address bits are random.
run=()
if grep -q '^SB_SANITIZE:.*thread' "$build/CMakeCache.txt" &&
  [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -gt 28 ]; then
  run=(setarch "$(uname -m)" -R)
fi
"${run[@]}" "$@" --test-dir "$build" --output-junit junit.xml
status=$?
case "$*" in *Full*) echo "not run: tests named *Full, the long sweeps (make test-full)" ;; esac
python3 "$(dirname "$0")/summary.py" "$build/junit.xml" || exit 1
exit $status
