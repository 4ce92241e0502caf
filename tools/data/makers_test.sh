#!/usr/bin/env bash
# The data makers: what they leave, that a second run changes nothing, and their refusals.
set -euo pipefail

bin=${1:-tools/data}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
  echo "makers_test: $*" >&2
  exit 1
}

digits=$out/digits
"$bin/make_digits" "$digits"
[[ $(wc -l <"$digits/train_list.txt") == 4000 ]] || fail "4000 training digits"
[[ $(wc -l <"$digits/test_list.txt") == 1000 ]] || fail "1000 test digits"
[[ $(find "$digits" -name '*.png' | wc -l) == 5000 ]] || fail "5000 files"
[[ $(sed -n 1601p "$digits/train_list.txt") == "train/4/0000.png 4" ]] || fail "order of the list"
while read -r path _; do
  [[ -s $digits/$path ]] || fail "$path is missing"
done <"$digits/test_list.txt"
before=$(find "$digits" -type f -printf '%p %T@\n' | sort | md5sum)
"$bin/make_digits" "$digits" | grep -q "there already" || fail "a second run says so"
[[ $before == $(find "$digits" -type f -printf '%p %T@\n' | sort | md5sum) ]] || fail "rewritten"

status=0
message=$("$bin/make_digits" "$out/none" --source="$out/absent.png" 2>&1) || status=$?
[[ $status == 3 && $message == *opencv-doc* ]] || fail "a missing source: $status $message"

"$bin/make_images" "$out/a" --classes=3 --train=4 --val=2 --size=32 --seed=5
"$bin/make_images" "$out/b" --classes=3 --train=4 --val=2 --size=32 --seed=5
diff -r "$out/a" "$out/b" || fail "the same seed gives the same files"
[[ $(find "$out/a/train" -name '*.JPEG' | wc -l) == 12 ]] || fail "12 training pictures"
[[ $(head -n1 "$out/a/val_list.txt") == "val/n00000000/n00000000_0.JPEG 0" ]] || fail "val list"

status=0
"$bin/make_images" "$out/c" --classes=none 2>/dev/null || status=$?
[[ $status == 2 ]] || fail "a bad number ends with $status"
echo "makers_test: passed"
