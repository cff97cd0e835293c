#!/usr/bin/env bash
# Data by URL, from a real https server with a self-made certificate: fetched, resumed, checked; errors name the URL and
# a remedy.
set -uo pipefail
cd "$(dirname "$0")/../.."
command -v openssl >/dev/null || { echo "skipped: no openssl here" >&2; exit 77; }
dtrun=$DTRUN_BIN/dtrun
work=$(mktemp -d)
server=
disk=
at_exit() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    [ -z "$disk" ] || umount -l "$disk"
    rm -rf "$work"
}
trap at_exit EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
export HOME=$work XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config OMP_NUM_THREADS=1
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE

{
    mkdir "$work/web"
    seq 60000 | sed 's/.*/line &/' >"$work/web/corpus.txt"
    sum=$(sha256sum "$work/web/corpus.txt" | cut -d' ' -f1)
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout "$work/ca.key" -out "$work/ca.pem"
    openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$work/key.pem" -out "$work/request.pem"
    openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 -CAcreateserial \
        -extfile <(echo subjectAltName=DNS:localhost) -out "$work/cert.pem"
} 2>"$work/openssl.log" || { cat "$work/openssl.log"; exit 1; }
mkfifo "$work/hold"
python3 tests/fetch/server.py "$work/web" "$work/cert.pem" "$work/key.pem" <"$work/hold" >"$work/ports" &
server=$!
exec 9>"$work/hold"
for _ in $(seq 100); do [ -s "$work/ports" ] && break; sleep 0.1; done
read -r https http <"$work/ports"

recipe() { # URL
    cat >"$work/r.yaml" <<END
name: fetched
nodes: localhost
model: {kind: gpt2, layers: 1, heads: 1, embed: 8}
data: {train: "$1", tokens: char}
batch: {sequences: 2, tokens: 16}
schedule: {kind: cosine, steps: 3}
evaluate: {every: 0, sequences: 4}
END
}
wants() { # code text url what
    recipe "$3"
    : >"$work/web/log"
    local got=0
    timeout 60 "$dtrun" validate "$work/r.yaml" >"$work/out" 2>&1 </dev/null || got=$?
    [ $got -eq "$1" ] || fail "$4: code $got, wanted $1: $(cat "$work/out")"
    [ -z "$2" ] || grep -qF -- "$2" "$work/out" || fail "$4: does not say '$2': $(cat "$work/out")"
}
base=https://localhost:$https
good() { wants 0 "" "$base/$1#sha256=$sum" "$2"; }
asked() { cut -d' ' -f1,2 "$work/web/log" | paste -sd, | sed "s/bytes=//g"; }
anew() { chmod -R u+w "$XDG_CACHE_HOME" 2>/dev/null; rm -rf "$XDG_CACHE_HOME"; }
cached() { sha256sum "$XDG_CACHE_HOME/dtrun/data/sha256-$sum/$1" 2>/dev/null | grep -q "^$sum" || fail "$2: not in the cache"; }

# A certificate that is not trusted here; both variables name one.
wants 2 "CURL_CA_BUNDLE" "$base/corpus.txt#sha256=$sum" "an unknown certificate"
[ -z "$(cat "$work/web/log")" ] || fail "it was asked all the same"
SSL_CERT_FILE=$work/ca.pem good corpus.txt "SSL_CERT_FILE"
cached corpus.txt "SSL_CERT_FILE"
export CURL_CA_BUNDLE=$work/ca.pem
anew
good corpus.txt "CURL_CA_BUNDLE"
good corpus.txt "the second time"
[ -z "$(cat "$work/web/log")" ] || fail "what is there is fetched again: $(asked)"

# Trains on the data; the run keeps the URL, and continues when the cache is gone.
recipe "$base/corpus.txt#sha256=$sum"
"$dtrun" launch --wait "$work/r.yaml" >"$work/out" 2>&1 || fail "launch: $(cat "$work/out")"
grep -q "corpus.txt#sha256=$sum" <<<"$("$dtrun" show last --json)" || fail "the run forgets the URL"
anew
"$dtrun" resume last --wait --set schedule.steps=5 >"$work/out" 2>&1 || fail "resume: $(cat "$work/out")"

# A broken transfer resumes where it broke, and the file is complete.
anew
good cut.txt "a connection that breaks"
cached cut.txt "a connection that breaks"
size=$(stat -c %s "$work/web/corpus.txt")
[ "$(asked)" = "/cut.txt -$(seq 100000 100000 $((size - 1)) | sed 's|.*|,/cut.txt &-|' | tr -d '\n')" ] ||
    fail "it is not resumed: $(asked)"
grep -q '"/cut.txt"' "$work/web/log" || fail "If-Range is not sent"

# ... from an earlier launch; a partial file that is of another file; a partial file that is complete.
part=$XDG_CACHE_HOME/dtrun/data/sha256-$sum.part
left() { anew; mkdir -p -m 0700 "${part%/*}"; }
left
head -c 300000 "$work/web/corpus.txt" >"$part"
good corpus.txt "a part from before"
[ "$(asked)" = "/corpus.txt 300000-" ] || fail "a part from before is not gone on with: $(asked)"
left
head -c 300000 /dev/urandom >"$part"
good corpus.txt "a part that does not fit"
[ "$(asked)" = "/corpus.txt 300000-,/corpus.txt -" ] || fail "a part that does not fit: $(asked)"
left
cp "$work/web/corpus.txt" "$part"
good corpus.txt "a part that is whole"
left
{ cat "$work/web/corpus.txt"; echo more; } >"$part"
good corpus.txt "a part that is too long"

# Servers without ranges, whose file changes during the transfer, that are busy, that redirect.
for path in plain cut-plain changing busy moved; do
    anew
    good $path.txt "$path"
    cached $path.txt "$path"
done
anew
wants 0 "" "http://localhost:$http/corpus.txt?token=secret#sha256=$sum" "http, and a query"
! grep -q secret "$work/out" || fail "the query is shown"
anew
echo "machine localhost login me password you" >"$work/.netrc"
chmod 600 "$work/.netrc"
good private.txt "a name from ~/.netrc"
rm "$work/.netrc"

# Files that cannot be fetched.
anew
wants 2 "check the URL" "$base/missing.txt#sha256=$sum" "404"
grep -qF "$base/missing.txt" "$work/out" || fail "404: the URL is not named"
wants 2 "~/.netrc" "$base/private.txt#sha256=$sum" "401"
wants 2 "without end" "$base/loop.txt#sha256=$sum" "redirects without end"
wants 2 "a URL that is not https" "$base/down.txt#sha256=$sum" "from https to http"
wants 2 "a URL that is not https" "$base/file.txt#sha256=$sum" "to a file"
other=$(echo other | sha256sum | cut -d' ' -f1)
wants 2 "its sha256 is $sum, expected $other" "$base/corpus.txt#sha256=$other" "another file"
wants 2 "does not match its digest" "$base/empty.txt#sha256=$other" "an empty file"
[ -z "$(find "$XDG_CACHE_HOME" -name '*.txt')" ] || fail "what is wrong is in the cache"
left
head -c 1000 "$work/web/corpus.txt" >"$part"
wants 2 "r.yaml:4" "$base/corpus.txt" "no digest"
wants 2 "without a digest" "$base/corpus.txt#sha256=1234" "a short digest"
wants 2 "neither https:// nor http://" "ftp://localhost/corpus.txt#sha256=$sum" "another protocol"
wants 2 "~/.netrc" "https://me:secret@localhost:$https/corpus.txt#sha256=$sum" "a password in the URL"
! grep -q secret "$work/out" || fail "a password is shown"

# Two launches at once: one fetches, both use the file.
anew
recipe "$base/cut.txt#sha256=$sum"
: >"$work/web/log"
"$dtrun" validate "$work/r.yaml" >"$work/out.a" 2>&1 &
first=$!
"$dtrun" validate "$work/r.yaml" >"$work/out" 2>&1 || fail "one of two: $(cat "$work/out")"
wait $first || fail "the other of two: $(cat "$work/out.a")"
[ "$(grep -c -- ' - ' "$work/web/log")" -le 1 ] || fail "two launches fetch it twice: $(asked)"

# Too little space: reported before the disk is full.
mkdir "$work/small"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=256k,mode=0700 tmpfs "$work/small" 2>/dev/null; then
    disk=$work/small
    XDG_CACHE_HOME=$disk wants 3 "set XDG_CACHE_HOME to a larger disk" "$base/corpus.txt#sha256=$sum" "a full disk"
    grep -qF "$base/corpus.txt" "$work/out" || fail "a full disk: the URL is not named"
fi

# No server: a few tries, then the remedy.
anew
wants 3 "is the network up" "https://localhost:1/corpus.txt#sha256=$sum" "nobody there"
[ $failed -eq 0 ] && echo good
exit $failed
