#!/usr/bin/env bash
# Installs the Debian packages that a target needs and that are missing; silent, and without any
# network use, when all are there.
#   tools/bootstrap.sh          what building and testing need
#   tools/bootstrap.sh test     also clang-19 for the HIP compile test; goes on without it
#   tools/bootstrap.sh check    also clang-format-19 and clang-tidy-19
#   tools/bootstrap.sh fuzz     also clang-19 with libFuzzer
# Exit 7: required packages are missing and could not be installed.
set -euo pipefail

required=(g++ cmake ninja-build ccache libgtest-dev libgmock-dev libcli11-dev
  nlohmann-json3-dev libfmt-dev libexpected-dev libxxhash-dev libssl-dev
  libmpfr-dev pkg-config python3 git make)
optional=()
case "${1:-build}" in
  build) ;;
  test) optional=(clang-19 lld-19 llvm-19 clang-tools-19) ;;
  check) required+=(clang-format-19 clang-tidy-19) ;;
  fuzz) required+=(clang-19 libclang-rt-19-dev) ;;
  *) echo "bootstrap: unknown level '$1'; use build, test, check or fuzz" >&2; exit 64 ;;
esac

missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
}

updated=no
install() {
  local run=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "bootstrap: not root, and sudo is not installed" >&2
      return 1
    fi
    run=(sudo -n)
  fi
  echo "installing: $*"
  if [ "$updated" = no ]; then
    "${run[@]}" apt-get update -qq </dev/null || return 1
    updated=yes
  fi
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

if ! command -v dpkg-query >/dev/null; then
  echo "bootstrap: no dpkg on this system, so nothing is checked or installed; Debian 12's names of"
  echo "bootstrap: what is needed: ${required[*]} ${optional[*]:-}"
  exit 0
fi

mapfile -t need < <(missing "${required[@]}")
if [ "${#need[@]}" -gt 0 ] && ! install "${need[@]}"; then
  echo "bootstrap: could not install: ${need[*]}" >&2
  echo "bootstrap: this needs root (or sudo without a password) and the network;" >&2
  echo "bootstrap: or install them yourself: apt-get install ${need[*]}" >&2
  exit 7
fi

mapfile -t want < <(missing "${optional[@]}")
if [ "${#want[@]}" -gt 0 ] && ! install "${want[@]}"; then
  echo "bootstrap: could not install: ${want[*]}; the HIP compile test will be skipped" >&2
fi
