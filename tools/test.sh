#!/bin/sh
# test.sh [PART...]: installs what the tests need and runs them all, under 30 minutes on 2 cores.
#
# Parts, all by default:
#   release   gcc, warnings are errors: every suite
#   sanitize  clang with ASan and UBSan, the reference's kernels: unit, golden, fuzz replay
#   threads   clang with TSan: team, engine, scheduler
#   bits      other compilers and levels give the same bits
#   arm       aarch64 under QEMU: unit tests, and the same bits as here
#   old       kernels and the whole command under QEMU's Nehalem and Haswell
# and, only when named, as they take long:
#   live      the kernels and small models in a build with live_check
#   variants  the sanitizers over the SIMD kernels
#
#   TERN_MODELS  a folder with larger models, whose tests run where it has them (default: the
#                folder of the two that are fetched)
#   TERN_SHARED  a folder with public vectors (default: ../shared where it is there)
#   TERN_TEST    where everything is built (default: build-tests)
#   TERN_MUST_RUN  a file that names tests whose skipping is a failure
set -u
cd "$(dirname "$0")/.."
parts=${*:-release sanitize threads bits arm old}
out=${TERN_TEST:-build-tests}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tern
mkdir -p "$out" "$cache"
out=$(cd "$out" && pwd)
results=$out/results
: >"$results"
if [ -z "${TERN_SHARED:-}" ] && [ -d ../shared ]; then
    TERN_SHARED=$(cd ../shared && pwd)
fi
export TERN_SHARED="${TERN_SHARED:-}"

sh tools/deps.sh build models tests || exit 1
case " $parts " in *" arm "*) sh tools/deps.sh cross || exit 1 ;; esac

python=/usr/bin/python3
[ -x $python ] || python=python3
# Oracles that are Python packages, in an environment of their own; their tests skip without.
venv=$cache/venv
if ! "$venv/bin/python" -c 'import numpy, gguf, tokenizers, regex, jinja2
import jsonschema, rfc3339_validator' 2>/dev/null; then
    echo "test.sh: installing Python packages that tests need into $venv" >&2
    { $python -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check numpy \
        gguf tokenizers regex jinja2 'jsonschema[format-nongpl]'; } >"$out/pip.log" 2>&1 ||
        echo "test.sh: tests that need them skip: $(tail -n 1 "$out/pip.log")" >&2
fi
if "$venv/bin/python" -c 'import numpy' 2>/dev/null; then
    python=$venv/bin/python
    PATH=$venv/bin:$PATH
    export PATH
fi
$python tools/get-models.py >/dev/null || echo "test.sh: tests on the models above skip" >&2
export TERN_MODELS="${TERN_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/tern/models}"

collect() { $python tests/collect.py "$@"; }

# configure LABEL ARGS...: a build folder, made once; ninja then. Failing to build is a failure.
configure() {
    label=$1
    shift
    log=$out/$label.log
    if [ ! -f "$out/$label/build.ninja" ]; then
        rm -rf "${out:?}/$label"
        meson setup "$out/$label" . "$@" >"$log" 2>&1 || {
            collect run "$results" "$label" configure sh -c "tail -n 15 '$log'; exit 1"
            return 1
        }
    fi
    ninja -C "$out/$label" >>"$log" 2>&1 || {
        collect run "$results" "$label" build \
            sh -c "grep -E 'error|FAILED' '$log' | tail -n 15; exit 1"
        return 1
    }
    collect run "$results" "$label" build true
}

# suites LABEL ARGS...: meson test, whose results are taken over.
suites() {
    label=$1
    shift
    rm -f "$out/$label"/meson-logs/testlog*.json
    meson test -C "$out/$label" --no-rebuild --print-errorlogs "$@" 2>&1 |
        grep -vE '^ninja|^(Expected Fail|Unexpected Pass|Full log)' || true
    # With a wrapper the log has another name.
    for named in "$out/$label"/meson-logs/testlog-*.json; do
        [ -f "$named" ] && mv "$named" "$out/$label/meson-logs/testlog.json"
    done
    if [ -s "$out/$label/meson-logs/testlog.json" ]; then
        collect meson "$results" "$label" "$out/$label"
    else
        collect run "$results" "$label" "meson test" sh -c 'echo no tests ran; exit 1'
    fi
}

tern=$out/release/tools/tern
few=llama-q4_0,llama-mixed,gemma3
# bits LABEL NAME ARGS...: runs of several builds of the command give the same bits.
bits() {
    label=$1
    name=$2
    shift 2
    if [ -x "$tern" ] && $python -c 'import numpy' 2>/dev/null; then
        collect run "$results" "$label" "$name" $python tests/oracle/bits.py "$tern" "$@"
    else
        collect skip "$results" "$label" "$name" "needs the release build and numpy"
    fi
}

for part in $parts; do
    echo "== $part"
    case $part in
    release)
        configure release -Dwerror=true && suites release
        ;;
    live)
        configure live -Dwerror=true -Dlive_check=true && suites live --suite kernels
        ;;
    sanitize)
        CC=clang configure sanitize -Db_sanitize=address,undefined -Db_lundef=false \
            --buildtype=debugoptimized -Dcpu_variants=none &&
            UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 suites sanitize \
                --timeout-multiplier 8 --suite unit --suite golden --suite fuzz
        ;;
    variants)
        CC=clang configure variants -Db_sanitize=address,undefined -Db_lundef=false \
            --buildtype=debugoptimized &&
            UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 suites variants \
                --timeout-multiplier 8 --suite unit --suite kernels
        ;;
    threads)
        CC=clang configure threads -Db_sanitize=thread -Db_lundef=false \
            --buildtype=debugoptimized -Dcpu_variants=none && {
            names=$(meson test -C "$out/threads" --list 2>/dev/null | sed -n 's|.* / ||p' |
                grep -E '^(team|engine|scheduler|step|cancel|conversation)' | sort -u)
            # Address-space layouts of new kernels can be too random for its shadow memory.
            fixed=
            setarch -R true 2>/dev/null && fixed='setarch -R'
            suites threads --timeout-multiplier 20 ${fixed:+--wrapper "$fixed"} $names
        }
        ;;
    bits)
        CC=gcc configure gcc-o2 --buildtype=release -Doptimization=2 -Dtests=disabled &&
            CC=clang configure clang-o3 --buildtype=release -Dtests=disabled &&
            bits bits "gcc -O3, gcc -O2 and clang -O3" "$out/gcc-o2/tools/tern" \
                "$out/clang-o3/tools/tern" --models $few
        ;;
    arm)
        if sh tests/qemu/sysroot.sh; then
            configure arm -Dwerror=true --cross-file tests/qemu/aarch64.meson && {
                suites arm --timeout-multiplier 20 --suite unit --suite kernels
                # Each variant on a CPU that has it and no more.
                for pair in cortex-a53:neon cortex-a76:dotprod max,sve=off:i8mm; do
                    collect run "$results" arm "kernels ${pair#*:} on ${pair%%:*}" \
                        env TERN_GUARD=0 qemu-aarch64 -cpu "${pair%%:*}" -L /usr/aarch64-linux-gnu \
                        -E LD_LIBRARY_PATH="$cache/arm64/root/usr/lib/aarch64-linux-gnu" \
                        "$out/arm/tests/kernels/check_kernels" "${pair#*:}"
                done
                collect run "$results" arm "cortex-a53 has no dotprod and says so" \
                    sh -c "qemu-aarch64 -cpu cortex-a53 -L /usr/aarch64-linux-gnu -E \
LD_LIBRARY_PATH=$cache/arm64/root/usr/lib/aarch64-linux-gnu \
'$out/arm/tests/kernels/check_kernels' dotprod; test \$? -eq 77"
                if $python -c 'import numpy' 2>/dev/null; then
                    collect run "$results" arm "instructions of a token" \
                        $python tests/budget/instructions.py "$out/arm/tools/tern" \
                        tests/budget/instructions.csv \
                        --lib "$cache/arm64/root/usr/lib/aarch64-linux-gnu"
                else
                    collect skip "$results" arm "instructions of a token" "needs numpy"
                fi
                bits arm "x86 and aarch64" --models llama-q4_0,gemma3 --ids 270 \
                    "qemu-aarch64 -cpu max,sve=off -L /usr/aarch64-linux-gnu -E \
LD_LIBRARY_PATH=$cache/arm64/root/usr/lib/aarch64-linux-gnu $out/arm/tools/tern"
            }
        else
            collect skip "$results" arm all "the arm64 packages of cmocka and jansson are not there"
        fi
        ;;
    old)
        kernels=$out/release/tests/kernels/check_kernels
        if [ -x "$kernels" ]; then
            # No AVX may leak into files that every machine runs: the variant is refused, not tried.
            collect run "$results" old "Nehalem has no avx2 and says so" \
                sh -c "qemu-x86_64 -cpu Nehalem '$kernels' avx2; test \$? -eq 77"
            collect run "$results" old "Haswell: kernels avx2" \
                env TERN_GUARD=0 qemu-x86_64 -cpu Haswell "$kernels" avx2
            bits old "the command on Nehalem and Haswell" "qemu-x86_64 -cpu Nehalem $tern" \
                "qemu-x86_64 -cpu Haswell $tern" --models llama-q4_0,qwen2-k --ids 60
        else
            collect skip "$results" old all "needs the release build"
        fi
        ;;
    *)
        echo "test.sh: no such part: $part" >&2
        exit 2
        ;;
    esac
done
echo "== summary"
collect end "$results" ${TERN_MUST_RUN:+"$TERN_MUST_RUN"}
