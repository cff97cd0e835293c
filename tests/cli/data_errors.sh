#!/usr/bin/env bash
# Data that is missing, empty, too short or unreadable: told before anything starts.
. "$(dirname "$0")/lib.sh"
make_tiny

refused() { # file texts...
    local file=$1 text
    shift
    for how in validate "launch --wait"; do
        expect 2 $how "$work/tiny.yaml" --set "data.train=$file"
        one_line
        for text; do says "$text"; done
    done
}

refused "$work/missing.txt" "missing.txt"
: >"$work/empty.txt"
refused "$work/empty.txt" "empty.txt" "empty"
echo "short" >"$work/short.txt"
refused "$work/short.txt" "short.txt"
mkdir "$work/folder.txt"
refused "$work/folder.txt" "folder.txt"
ln -s "$work/nowhere" "$work/dangling.txt"
refused "$work/dangling.txt" "dangling.txt"
refused "$work/no*match.txt" "no*match.txt"
if [ "$(id -u)" -ne 0 ]; then # root may read everything
    cp "$work/corpus.txt" "$work/secret.txt"
    chmod 000 "$work/secret.txt"
    refused "$work/secret.txt" "secret.txt" "Permission denied"
fi
sed "s|^data:.*|data: [corpus.txt, empty.txt]|" "$work/tiny.yaml" >"$work/two.yaml"
line=$(grep -n "^data:" "$work/two.yaml" | cut -d: -f1)
for how in validate "launch --wait" doctor; do
    expect 2 $how "$work/two.yaml"
    says "two.yaml:$line:20: data.train"
done
nothing_half_made
