#!/usr/bin/env bash
# Which lines of the engine do the tests reach, unit tests and all test programs together? Prints a table by module, and
# with `-v` the lines that no test reaches. Lines of test code are not counted.
#
# LLVM_BIN is the folder of `llvm-profdata` and `llvm-cov`, of the LLVM that `rustc -vV` names. Only this crate is instrumented.
# `fuzz/coverage.sh -v --test engine` measures one test program.
set -euo pipefail
cd "$(dirname "$0")/.."
verbose=0
if [ "${1:-}" = -v ]; then verbose=1; shift; fi
[ $# -gt 0 ] || set -- --tests
bin=${LLVM_BIN:-$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '#!/bin/sh\nexec "$@" -Cinstrument-coverage\n' > "$work/rustc"
chmod +x "$work/rustc"
# The path of the wrapper is part of what cargo compares: it stays the same.
wrapper=${CARGO_TARGET_DIR:-target}/coverage-rustc
mkdir -p "$(dirname "$wrapper")"
mv "$work/rustc" "$wrapper"
export RUSTC_WORKSPACE_WRAPPER=$(realpath "$wrapper") LLVM_PROFILE_FILE="$work/%4m.profraw"
features="--no-default-features --features cli"
# shellcheck disable=SC2086
cargo test $features "$@" --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u > "$work/programs"
# shellcheck disable=SC2086
cargo test $features "$@" --no-fail-fast > "$work/log" 2>&1 || { grep -E "^test .*FAILED|panicked" "$work/log"; exit 1; }

"$bin/llvm-profdata" merge -sparse "$work"/*.profraw -o "$work/all.profdata"
mapfile -t programs < "$work/programs"
"$bin/llvm-cov" export -format=lcov -instr-profile "$work/all.profdata" "${programs[0]}" \
    "${programs[@]/#/-object=}" -sources "$PWD/src" > "$work/lcov"

# Modules in files end where their tests begin.
awk -v root="$PWD/" -v verbose="$verbose" '
/^SF:/ {
    file = substr($0, 4); name = substr(file, length(root) + 1); end = 0; number = 0; marked = 0
    if (name ~ /[\/_]tests?(\/|\.rs$)/) { name = ""; next }
    while ((getline line < file) > 0) {
        number++
        if (marked && line ~ /^mod .*\{/) { end = number; break }
        marked = line ~ /^#\[cfg\(test\)\]/
    }
    close(file)
    module = name; sub(/^src\//, "", module); sub(/[\/.].*/, "", module)
}
/^DA:/ && name != "" {
    split(substr($0, 4), at, ",")
    if (end && at[1] + 0 >= end) next
    all[module]++
    if (at[2] + 0 > 0) hit[module]++
    else if (verbose) missed[name] = missed[name] " " at[1]
}
END {
    for (module in all)
        printf "%-12s %6d of %6d lines  %5.1f %%\n", module, hit[module], all[module], 100 * hit[module] / all[module]
    for (name in missed) print name ":" missed[name]
}' "$work/lcov" | sort
