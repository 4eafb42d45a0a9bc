# SPDX-License-Identifier: GPL-2.0-only
# Draws what `make bench-memory` prints as SVG: a field for each spread, a curve for each policy with
# the range of its seeds. Both axes are logarithmic.

function log2(x) { return log(x) / log(2) }

function across(i) { return left + 20 + (i - 1) * 40 }

function down(ratio) { return bottom - log2(ratio) * 75 }

function text(x, y, words, style) {
	print "<text x=\"" x "\" y=\"" y "\"" style ">" words "</text>"
}

function path(d, style) { print "<path d=\"" d "\" fill=\"none\"" style "/>" }

# Grid, and the numbers of both axes.
function field(spread,   i, ratio) {
	text(left + 120, 24, "up to " spread " packets late", " text-anchor=\"middle\"")
	for (i = 1; i <= count; i++)
		text(across(i), bottom + 18, memory[i], " text-anchor=\"middle\"")
	for (ratio = 1; ratio <= 8; ratio *= 2) {
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

BEGIN {
	width = 930; height = 380; bottom = 310; left = -260
	split("static #888 fcfs #c33 early #d80 evict #07a esa #383 ranges #000", words, " ")
	for (i = 1; i in words; i += 2)
		colour[words[i]] = words[i + 1]
	OFMT = CONVFMT = "%.4g"
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" width "\" height=\"" height \
		"\" viewBox=\"0 0 " width " " height \
		"\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">"
	print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
}

$1 == "spread" { spread = $2 }

$1 == "memory" {
	count = NF - 1
	for (i = 1; i <= count; i++)
		memory[i] = $(i + 1)
	left += 300
	field(spread)
}

$1 in colour && $3 ~ /^\(/ { curve() }

END {
	for (i = 1; i in words; i += 2) {
		path("M" 40 + (i - 1) * 50 " 360h20", " stroke-width=\"3\" stroke=\"" words[i + 1] "\"")
		text(66 + (i - 1) * 50, 364, words[i], "")
	}
	text(width - 10, 364, "time beside the best; memory / (jobs x BDP)", " text-anchor=\"end\"")
	print "</svg>"
}
