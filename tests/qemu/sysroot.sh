#!/bin/sh
# sysroot.sh DIR: unpacks the arm64 packages that tests link with into DIR, beside the system.
#
# Uses an index of its own under DIR, so that the machine's packages are left as they are and no
# root is needed. Writes DIR/sysroot.meson, which goes before aarch64.meson.
set -eu
dir=$1
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
printf "[constants]\nsysroot = '%s'\n" "$dir/root" >"$dir/sysroot.meson"
