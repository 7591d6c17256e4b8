#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The style that a script can check, over every tracked-to-be source file; TAP. Functions over 60
# lines fail (tables are no functions), files over 600, lines over 120 columns, banned calls.
[ -z "${SH_SANITIZED-}" ] || { echo "1..0 # SKIP sanitizers change no line of the sources"; exit 0; }
set -u
cd "${SH_TOP:-.}" || exit 99
sources=$(find src kernels traces planner plots demo tests bench -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | grep -v schema.inc | sort)

n=0
echo "1..8"
check() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; sed 's/^/# /' <<<"$2"; fi
}

check "every file begins with its licence line" \
    "$(for f in $sources; do head -n 1 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"; done)"
check "no file is over 600 lines" "$(wc -l $sources | awk '$2 != "total" && $1 > 600 {print $2 ": " $1}')"
check "no function is over 60 lines" "$(awk '
    FNR == 1 { body = 0 }
    /^[a-zA-Z_].*\)$/ { header = $0; at = FNR }
    /^\{$/ { body = FNR; name = header }
    /^\}/ { if (body && FNR - body - 1 > 60) print FILENAME ":" body ": " FNR - body - 1 " lines: " name; body = 0 }
' $sources)"
check "no function has more than 8 parameters" "$(awk '
    function parameters(text,    i, c, depth, n, most) { # the most in any parentheses that are not within others
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            if (c ~ /[(<[]/) n = depth++ ? n : 1
            else if (c ~ /[])>]/) depth--
            else if (c == "," && depth == 1 && ++n > most) most = n
        }
        return most
    }
    FNR == 1 { head = "" }
    head != "" { head = head $0 }
    head == "" && /^[a-zA-Z_].*\(/ && !/^(typedef|SH_[A-Z]+\()/ { at = FNR; head = $0 }
    head ~ /[;{}]/ {
        if (parameters(head) > 8) print FILENAME ":" at ": " parameters(head) ": " substr(head, 1, 80)
        head = ""
    }
' $(grep -Ev '^(tests|bench)/' <<<"$sources"))"
check "no line is over 120 columns" "$(awk 'length($0) > 120 {print FILENAME ":" FNR ": " length($0)}' $sources)"
check "no banned call" "$(for f in $sources; do
    sed -E 's/"([^"\\]|\\.)*"//g; s@/\*.*@@; s@^ \*.*@@' "$f" |
        grep -nE '\b(strcpy|strcat|sprintf|vsprintf|atoi|atol|atof|rand|srand|gets|strtok|system|popen)\(' | sed "s|^|$f:|"
done)"
check "no tab, no blank at a line's end" "$(grep -nP '^\t|[ \t]+$' $sources | cut -c1-80)"
check "no unfinished mark" "$(grep -nE '\b(TODO|FIXME|XXX|HACK)\b' $sources | cut -c1-100)"
