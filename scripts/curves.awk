# SPDX-License-Identifier: GPL-2.0-only
# Draws what `make bench-memory` and `make bench-peers` measure as SVG: a field for each spread or
# number of workers, a curve for each policy or side with its range. Both axes are logarithmic.
#
#	colours NAME COLOUR...	the curves, if they are others than those of bench-memory
#	least RATIO		at the bottom (1), and so many octaves above it (3)
#	octaves NUMBER
#	below WORDS		what the axes are
#	spread NUMBER		or
#	field WORDS		begin a field
#	memory NUMBER...	what is on the axis across
#	NAME MEDIAN (FIRST-LAST)...

function log2(x) { return log(x) / log(2) }

function across(i) { return left + 20 + (i - 1) * 40 }

function down(ratio) { return bottom - log2(ratio / least) * 225 / octaves }

function text(x, y, words, style) {
	print "<text x=\"" x "\" y=\"" y "\"" style ">" words "</text>"
}

function path(d, style) { print "<path d=\"" d "\" fill=\"none\"" style "/>" }

# Grid, and the numbers of both axes.
function field(   i, ratio) {
	text(left + 120, 24, title, " text-anchor=\"middle\"")
	for (i = 1; i <= count; i++)
		text(across(i), bottom + 18, memory[i], " text-anchor=\"middle\"")
	for (ratio = least; ratio <= least * 2 ^ octaves; ratio *= 2) {
		path("M" left " " down(ratio) "h240", " stroke=\"#ddd\"")
		text(left - 6, down(ratio) + 4, ratio, " text-anchor=\"end\"")
	}
}

# A line of the table: NAME, then "MEDIAN (FIRST-LAST)" for each memory.
function curve(   i, d, ends, style) {
	style = " stroke=\"" colour[$1] "\" stroke-width=\"1.6\""
	for (i = 1; i <= count; i++) {
		split(substr($(2 * i + 1), 2, length($(2 * i + 1)) - 2), ends, "-")
		d = d (i > 1 ? "L" : "M") across(i) " " down($(2 * i))
		path("M" across(i) " " down(ends[1]) "V" down(ends[2]), style)
	}
	path(d, style)
}

function colours(list,   i) {
	delete colour
	split(list, words, " ")
	for (i = 1; i in words; i += 2)
		colour[words[i]] = words[i + 1]
}

function rest(   words) {
	words = $0
	sub(/^[^ ]+ /, "", words)
	return words
}

BEGIN {
	width = 930; height = 380; bottom = 310; left = -260
	least = 1; octaves = 3
	below = "time beside the best; memory / (jobs x BDP)"
	colours("static #888 fcfs #c33 early #d80 evict #07a esa #383 ranges #000")
	OFMT = CONVFMT = "%.4g"
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" width "\" height=\"" height \
		"\" viewBox=\"0 0 " width " " height \
		"\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">"
	print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
}

$1 == "colours" { colours(rest()) }

$1 == "least" { least = $2 }

$1 == "octaves" { octaves = $2 }

$1 == "below" { below = rest() }

$1 == "spread" { title = "up to " $2 " packets late" }

$1 == "field" { title = rest() }

$1 == "memory" {
	count = NF - 1
	for (i = 1; i <= count; i++)
		memory[i] = $(i + 1)
	left += 300
	field()
}

$1 in colour && $3 ~ /^\(/ { curve() }

END {
	for (i = 1; i in words; i += 2) {
		path("M" 40 + (i - 1) * 50 " 360h20", " stroke-width=\"3\" stroke=\"" words[i + 1] "\"")
		text(66 + (i - 1) * 50, 364, words[i], "")
	}
	text(width - 10, 364, below, " text-anchor=\"end\"")
	print "</svg>"
}
