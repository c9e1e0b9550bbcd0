#!/bin/sh
# deps.sh build|models|tests|cross: installs what a step needs, from Debian's packages.
#
# Prints what it installs, uses sudo where it is not root, does nothing where all is there.
# On another system it says which packages were meant and goes on if their commands are there.
set -eu

want() {
    case $1 in
    build) echo gcc libc6-dev meson ninja-build pkg-config libjansson-dev libedit-dev node-llhttp \
        node-markdown-it node-dompurify python3 ;;
    models) echo python3 python3-pip ca-certificates ;;
    tests) echo libcmocka-dev python3-numpy python3-pip python3-venv ca-certificates clang \
        libclang-rt-dev llvm g++ qemu-user time chromium-headless-shell ;;
    cross) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
    *) echo "deps.sh: no such step: $1" >&2; exit 2 ;;
    esac
}

missing=
for step in "$@"; do
    for package in $(want "$step"); do
        state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
        case $state in
        ii*) ;;
        *) missing="$missing $package" ;;
        esac
    done
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "deps.sh: no apt-get here; these packages of Debian are meant:$missing" >&2
    exit 0
fi
root=
if [ "$(id -u)" -ne 0 ]; then
    root=sudo
    command -v sudo >/dev/null || {
        echo "deps.sh: neither root nor sudo; install by hand:$missing" >&2
        exit 1
    }
fi
echo "deps.sh: installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get could not install:$missing" >&2
    exit 1
fi
