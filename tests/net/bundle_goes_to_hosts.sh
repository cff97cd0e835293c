#!/usr/bin/env bash
# The bundle that a node needs is sent once: agent, engine with its libraries, data. Faults of a node are reported
# before anything starts.
. "$(dirname "$0")/lib.sh"
hosts 2

data="$net/launch/it's a \$(corpus).txt"
seq 300000 >"$data"
plan() { # ship
    python3 - "$data" "$1" >"$net/plan.json" <<'END'
import json, sys
print(json.dumps({"nodes": [{"name": "host1"}, {"name": "host2"}],
                  "recipe": {"data": {"train": [sys.argv[1]], "validation": [], "ship": sys.argv[2]}}}))
END
}
prepare() { "$DTRUN_BIN/prepare_node" "$1" run1 "$net/launch/$1" "$net/plan.json" >"$net/out" 2>"$net/err"; }
far() { [ "$net_kind" = namespace ]; } # hosts that do not see this machine's files
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$net/out" "$1"; }
good() { prepare "$1" || fail "$2: $(tail -n 1 "$net/err")"; }
refused() { # host text what
    ! prepare "$1" || fail "$3: was taken"
    grep -qF -- "$2" "$net/err" || fail "$3: does not say '$2': $(tail -n 1 "$net/err")"
}

# An empty host gets everything, and the engine runs from it.
plan never
far && refused host1 "data.ship is never" "data that may not be shipped"
plan auto
good host1 "a first launch"
grep -q 'copying' "$net/err" || fail "nothing is said of what is copied"
engine=$(field engine)
ssh host1 "$engine" >"$net/out.engine" 2>&1
ours=$("$DTRUN_BIN/dtrun-engine" 2>&1)
[ "$(cat "$net/out.engine")" = "$ours" ] || fail "the engine there says '$(cat "$net/out.engine")', here '$ours'"
needs=$(ssh host1 "ldd $engine")
! grep -q 'not found' <<<"$needs" || fail "a library is missing there: $needs"
grep -q "bundles/.*/libstdc++" <<<"$needs" || fail "the bundle's libraries are not what is loaded"
! grep -q "bundles/.*/libc.so" <<<"$needs" || fail "glibc travels along"
there=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["paths"].get(sys.argv[2], [sys.argv[2]])[0])' "$net/out" "$data")
far && [ "$there" = "$data" ] && fail "the data are where they cannot be"
"$DTRUN_BIN/dtrun-reach" host1 /bin/cat "$there" | cmp -s - "$data" || fail "the data there are others"
[ "$(ssh host1 'stat -c %a ~/.local/state/dtrun/nodes/run1 ~/.cache/dtrun' | sort -u)" = 700 ] ||
    fail "folders there can be read by others"

# Again: nothing is copied.
good host1 "a second launch"
! grep -q copying "$net/err" || fail "a second launch copies again"

if far; then
    # An interrupted transfer continues: most of the file was sent earlier.
    ssh host1 "cd ~/.cache/dtrun/data && for d in *; do head -c 1500000 \$d/* >\$d.part && rm -r \$d; done"
    good host1 "data that broke off"
    sent=$(sed -n 's/.*copying.*: \([0-9]*\) of.*/\1/p' "$net/err" | head -n 1)
    [ "$sent" -gt 1400 ] || fail "data that broke off are sent from the beginning"
    "$DTRUN_BIN/dtrun-reach" host1 /bin/cat "$there" | cmp -s - "$data" || fail "the resumed data are others"
    # ... and if the part is not the beginning of the file, the next try sends all of it.
    ssh host1 "cd ~/.cache/dtrun/data && for d in *; do head -c 1500000 /dev/urandom >\$d.part && rm -r \$d; done"
    refused host1 "damaged in transfer" "a damaged part"
    good host1 "after a damaged part"
fi

# A new dtrun: only new files are copied, the others are linked from the previous bundle, unless they are damaged there.
cp "$DTRUN_BIN/dtrun-engine" "$net/launch/engine"
new_engine() { # what
    printf x >>"$net/launch/engine"
    DTRUN_ENGINE=$net/launch/engine good host1 "$1"
    new=$(dirname "$(dirname "$(field engine)")")
}
links() { ssh host1 "find $1/lib -type f -links $2 | wc -l"; }
new_engine "a new engine"
[ "$(links "$new" 1)" = 0 ] || fail "libraries are copied again: $(ssh host1 ls -l "$new/lib")"
ssh host1 "cmp -s $new/bin/dtrun-engine $engine" && fail "the engine is the one of before"
damaged=$(ssh host1 "ls $new/lib/libstdc*")
ssh host1 "printf x | dd of=$damaged bs=1 seek=5000 conv=notrunc" 2>/dev/null
new_engine "a new engine beside a damaged bundle"
[ "$(links "$new" +1)" = 0 ] || fail "files of a damaged bundle are linked"
ssh host1 "cmp -s $new/lib/${damaged##*/} $damaged" && fail "a damaged library is taken"

# Two launches at once, to an empty host: both succeed, and one bundle exists.
"$DTRUN_BIN/prepare_node" host2 run1 "$net/launch/a" "$net/plan.json" >"$net/out" 2>"$net/err.a" &
first=$!
"$DTRUN_BIN/prepare_node" host2 run2 "$net/launch/b" "$net/plan.json" >"$net/out.b" 2>"$net/err.b" &
wait $first || fail "one of two launches: $(tail -n 1 "$net/err.a")"
wait $! || fail "the other of two launches: $(tail -n 1 "$net/err.b")"
[ "$(ssh host2 'ls -A ~/.cache/dtrun/bundles | wc -l')" = 1 ] || fail "two launches leave $(ssh host2 'ls -A ~/.cache/dtrun/bundles')"

# Bundles that were not requested for a day are removed when a new one comes; those in use stay.
ssh host2 'cd ~/.cache/dtrun/bundles && rm -rf ./* && mkdir -p old/bin used/bin &&
    cp /bin/sleep used/bin/dtrun-engine && touch -d "2 days ago" old used &&
    { ~/.cache/dtrun/bundles/used/bin/dtrun-engine 60 >/dev/null 2>&1 & }'
good host2 "a launch that prunes"
left=$(ssh host2 'ls ~/.cache/dtrun/bundles')
! grep -q old <<<"$left" || fail "an old bundle stays"
grep -q used <<<"$left" || fail "a bundle in use is removed"

# A program that needs a newer glibc than the host has.
cp "$DTRUN_BIN/dtrun-engine" "$net/launch/engine"
printf 'GLIBC_2.99' >>"$net/launch/engine"
DTRUN_ENGINE=$net/launch/engine refused host1 "this dtrun needs 2.99" "a glibc that is too old"

if far; then
    empty() { on "$1" sh -c 'umount -l /root; mount -t tmpfs -o "$1",mode=0700 tmpfs /root' sh "$2"; }
    empty host1 size=1m
    refused host1 "is there free space" "a home without room for the agent"
    empty host1 size=20m
    refused host1 "not enough free space" "a home without room for the bundle"
    empty host1 noexec
    refused host1 "noexec" "a home that is noexec"
    empty host1 ro
    refused host1 "is ~/.cache writable" "a home that is read-only"
    empty host1 size=512m
    printf '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo riscv64\n' >"$net/uname"
    chmod 755 "$net/uname"
    on host1 mount --bind "$net/uname" /usr/bin/uname
    refused host1 "is a riscv64 machine" "another architecture"
    on host1 umount /usr/bin/uname
    good host1 "a home that is good again"
fi
