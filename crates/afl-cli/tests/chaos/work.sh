#!/bin/sh
# Leaves a mark for each time it works, then answers as its facet wants it. Nothing here starts a process.
read -r payload
number() {
    rest=${payload#*"\"$1\":"}
    number=${rest%%[!0-9]*}
}
printf '%s %s\n' "$AFL_FACET" "$AFL_IDEMPOTENCY_KEY" >> "$1"
case $AFL_FACET in
    chaos.Add)
        number a; sum=$number
        number b; sum=$((sum + number))
        printf '{"sum": %s}' "$sum" ;;
    chaos.Broken)
        echo 'it is broken' >&2
        exit 1 ;;
    *)
        if [ "$AFL_FACET $AFL_ATTEMPT" = 'chaos.Shaky 1' ]; then exit 1; fi
        number n
        printf '{"n": %s}' "$number" ;;
esac
