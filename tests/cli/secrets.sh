#!/usr/bin/env bash
# A secret written in a recipe is refused before anything is stored: it is in no file, no message, and not on the page.
# A secret by ${env:NAME} is accepted, and appears nowhere either.
. "$(dirname "$0")/lib.sh"

secret=a1B2c3D4e5F6g7H8i9J0k1L2
make_tiny
nowhere() {
    grep -qF "$secret" "$work/out" "$work/err" && fail "says the secret"
    grep -rqaF "$secret" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" 2>/dev/null && fail "keeps the secret"
    return 0
}
refused() { # URL, then the expected message
    printf 'notify: {webhook: "%s"}\n' "$1" | cat "$work/tiny.yaml" - >"$work/secret.yaml"
    for command in "validate" "launch --dry-run" "launch --wait" "launch --wait --json"; do
        expect 2 $command "$work/secret.yaml"
        [ "$command" = "launch --wait --json" ] || says "$2" '${env:'
        nowhere
    done
    expect 2 launch --wait "$work/tiny.yaml" --set "notify.webhook=$1"
    says "$2"
    nowhere
}
refused "https://me:$secret@a.example/" "before '@'"
refused "https://a.example/hook?token=$secret" "after '?'"
refused "https://a.example/services/$secret" "in its path"
expect 0 list --json
json "o['runs'] == []"

export HOOK=$secret
expect 0 launch --wait --json "$work/tiny.yaml" --set 'notify.webhook=http://127.0.0.1:1/${env:HOOK}'
run=$(field "o['run']")
nowhere
for command in show status logs; do
    expect 0 $command "$run"
    nowhere
done
expect 2 resume "$run" --set "notify.webhook=https://a.example/services/$secret" --set schedule.steps=80
says "in its path"
nowhere
