#!/bin/sh
# sysroot.sh: unpacks the arm64 packages that the command and tests link with, beside the system,
# into tern/arm64 of the user's cache, where aarch64.meson looks for them.
#
# Uses an index of its own there, so that the machine's packages are left as they are and no root
# is needed.
set -eu
dir=${XDG_CACHE_HOME:-$HOME/.cache}/tern/arm64
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ ! -f "$dir/done" ]; then
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs" "$dir/root"
    : >"$dir/apt/status"
    cd "$dir/debs"
    apt="apt-get -q -o Dir::State=$dir/apt -o Dir::State::lists=$dir/apt/lists \
        -o Dir::State::status=$dir/apt/status -o Dir::Cache=$dir/apt/cache \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="
    $apt update >"$dir/log" 2>&1 && $apt download libcmocka-dev libcmocka0 libjansson-dev \
        libjansson4 >>"$dir/log" 2>&1 || {
        tail -n 5 "$dir/log" >&2
        exit 1
    }
    for deb in *.deb; do
        dpkg -x "$deb" "$dir/root"
    done
    rm -rf "$dir/apt"
    : >"$dir/done"
fi
