#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# docs/reproduction: a cell of each CSV is measured again, and tables are written by it.
# shellcheck source=tests/ctl/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The header, and the rows of a cell.
rows() { sed -n "1p; /^${2// /,},/p" "docs/reproduction/$1.csv"; }
is_repeated() { # NAME CELL
	# shellcheck disable=SC2086
	"$build/tests/bench/$1" $2 >"$work/again" && (($(wc -l <"$work/again") > 1)) &&
		rows "$1" "$2" | diff - "$work/again"
}

# One switch a job at most: `exact` has the least traffic of all such decisions.
nothing_is_better_than_the_best() {
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$6 == "exact" && $7 == "bytes" { n++
			if ($(at["tapina_mg_less_high"]) > 0 || $(at["tapina_less_high"]) > 0) {
				print; wrong = 1 } }
		END { exit wrong || n != 4 }' docs/reproduction/tapina.csv
}
no_rate_is_above_its_bound() {
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$4 ~ /inart/ { n++
			if ($(at["median"]) > $(at["bound_median"]) || $(at["high"]) > $(at["bound_high"])) {
				print; wrong = 1 } }
		END { exit wrong || n != 36 }' docs/reproduction/inart.csv
}

cat >"$work/csv" <<-'END'
	jobs,policy,measure,median,mean,low,high,less_median,less_mean,less_low,less_high
	5,none,bytes,2000,2100,1000,4000,-0.2,0.1,-9,30
	5,tor,bytes,1500,1600,900,2000,12.6,13,1,25.4
	10,none,bytes,3000,3100,2000,5000,1,2,3,4
	9,none,bytes,1000,1000,1000,1000,0,0,0,0
	5,none,time,7,7,7,7,7,7,7,7
END
page() { # OPTIONS-OF-TABLE: a page with such a table, written anew
	printf '%s\n' before "<!-- table $1 -->" old "<!-- end of table -->" after >"$work/page"
	awk -f scripts/reproduce.awk "$work/csv" "$work/page"
}
a_table_has_its_rows() {
	page "measure=bytes across=jobs figure= times=1e-3 digits=1 of=less_" | diff - /dev/fd/3
} 3<<'END'
before
<!-- table measure=bytes across=jobs figure= times=1e-3 digits=1 of=less_ -->
| jobs | 5 | 9 | 10 |
| --- | --- | --- | --- |
| `none` | 2.0 (1.0 to 4.0) of 0.0 | 1.0 (1.0 to 1.0) of 0.0 | 3.0 (2.0 to 5.0) of 0.0 |
| `tor` | 1.5 (0.9 to 2.0) of 0.0 |  |  |
<!-- end of table -->
after
END
# shellcheck disable=SC2016
it_has_means_and_the_best() {
	page "measure=bytes across=jobs figure=less_ best=1" |
		grep -Fx '| `none` | 0, best 30 | 0, best 0 | 2, best 4 |'
}
what_is_no_table_is_refused() {
	! page "measure=bytes across=load figure=" && ! page "measure=byte across=jobs figure=" &&
		! page "across=jobs figure=" && ! page "measure bytes" &&
		grep -F "page:2: the CSV has no column load" \
			<(page "measure=bytes across=load figure=" 2>&1)
}

check "the network of TAPINA gives its figures again" is_repeated tapina "tapina uniform 5"
check "a fat-tree gives TAPINA's figures again" is_repeated tapina "fat-tree-8 uniform 10"
check "routes give their figures again" is_repeated inart "mixed 10 4"
check "no decision has less traffic than the exact one" nothing_is_better_than_the_best
check "no rate of InArt is above its bound" no_rate_is_above_its_bound
check "a table has its rows of the CSV" a_table_has_its_rows
check "a table has means and best instances" it_has_means_and_the_best
check "what is no table is refused" what_is_no_table_is_refused
finish
