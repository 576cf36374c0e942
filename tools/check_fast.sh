#!/usr/bin/env bash
# tools/check_fast.sh BUILD_DIR: every check that needs only Python and a configured build; runs all
# of them, and fails if one does.
set -uo pipefail
build=$1
here=$(dirname "$0")
failed=0
python3 "$here/test_checks.py" || failed=1
python3 "$here/check_layers.py" || failed=1
python3 "$here/check_flags.py" "$build" || failed=1
python3 "$here/check_bit_tests.py" || failed=1
python3 "$here/check_text.py" || failed=1
python3 "$here/check_docs.py" --program "$build/samebits" || failed=1
python3 "$here/status.py" --check || failed=1
exit $failed
