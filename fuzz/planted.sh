#!/usr/bin/env bash
# Ten planted bugs, each in another module: a copy of the sources gets one, and a test must fail.
#
# Usage: fuzz/planted.sh [NAME]: all of them, or one. CARGO_TARGET_DIR may name a warm folder.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
only="${1:-}"
copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files | grep -v '^benches/' | tar -cf - -T - | tar -xf - -C "$copy"
# The workspace names a member that the tests do not need.
(cd "$root" && git ls-files benches | tar -cf - -T - | tar -xf - -C "$copy")
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"

# All small worlds, if short ones, for the tests that take slices.
export CONSTRAIN_WORLDS=all CONSTRAIN_WORLD_TEXTS=1500

missed=0
# plant NAME FILE OLD NEW TEST...: OLD stands once in FILE; TEST... are the arguments of cargo test.
plant() {
  local name="$1" file="$copy/$2" old="$3" new="$4"
  shift 4
  [[ -z "$only" || "$only" == "$name" ]] || return 0
  local before after
  before="$(cat "$file")"
  after="${before/"$old"/"$new"}"
  if [[ "$before" == "$after" || "${after/"$old"/}" != "$after" && "$new" != *"$old"* ]]; then
    echo "$name: the line to change does not stand once in the source"
    missed=1
    return 0
  fi
  printf '%s\n' "$after" >"$file"
  local log="$copy/$name.log" rc=0
  (cd "$copy" && cargo test --quiet --locked --no-default-features --features cli "$@") >"$log" 2>&1 || rc=$?
  printf '%s\n' "$before" >"$file"
  if grep -q '^error\(\[E[0-9]*\]\)\?: ' "$log" && ! grep -q 'test result: FAILED' "$log"; then
    echo "$name: does not compile"
    tail -n 20 "$log"
    missed=1
  elif [[ "$rc" == 0 ]]; then
    echo "$name: MISSED by cargo test $*"
    missed=1
  else
    echo "$name: caught: $(grep -m 1 -A 1 'panicked at' "$log" | tail -n 1 | cut -c 1-120)"
  fi
}

worlds=(--test worlds schemas_accept_what_is_valid_and_nothing_else)
# A bound that is exclusive and counts as inclusive.
plant bound src/schema/assemble.rs \
  'found.push((self.decimal(at)?, true, at))' 'found.push((self.decimal(at)?, false, at))' "${worlds[@]}"
# A short escape that stands for another character.
plant escape src/escape.rs "(b'n', '\\n')" "(b'n', '\\u{b}')" "${worlds[@]}"
# Token tables that are found although they belong to another boundary.
plant cache-key src/mask/tables.rs \
  'let key = u64::from(boundary.0) << 32 | u64::from(state.raw());' \
  'let key = u64::from(state.raw());' "${worlds[@]}"
# The caller's buffer is not cleared first.
plant mask-tail src/mask/allowed.rs 'words.fill(0);' 'let _ = &mut *words;' --test engine any_json
# The items of an array are counted to one less than what still matters.
plant counter-clamp src/machine/arrays.rs 'next.min(matters)' 'next.min(matters.saturating_sub(1))' \
  "${worlds[@]}"
# Negative numbers compare the wrong way round.
plant decimal src/grammar/decimal.rs '(true, true) => other.cmp_magnitude(self)' \
  '(true, true) => self.cmp_magnitude(other)' "${worlds[@]}"
# A text costs one token less than it takes.
plant cost src/cost/spell.rs 'fewest[end].saturating_add(1)' 'fewest[end].max(1)' --lib every_output_is_complete_within_its_budget
# What was rolled back stays in the text.
plant rollback src/matcher.rs 'self.text.truncate(self.steps[last].text as usize);' '' \
  --test engine objects_of_every_kind
# In declared order a key may come again.
plant property-order src/machine/objects.rs 'if self.ordered { key + 1 }' 'if self.ordered { key }' \
  "${worlds[@]}"
# The last byte of the checksum is not compared.
plant checksum src/codec.rs 'header[12..] != blake3::hash(payload).as_bytes()[..]' \
  'header[12..43] != blake3::hash(payload).as_bytes()[..31]' \
  --test saved foreign_and_damaged_files_are_typed_errors

if [[ "$missed" != 0 ]]; then
  echo "some planted bugs were not caught"
  exit 1
fi
echo "all planted bugs were caught"
