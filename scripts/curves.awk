# SPDX-License-Identifier: GPL-2.0-only
# Draws what `make bench-memory`, `make bench-peers` and `make bench-fair` measure as SVG: a field for
# each spread, number of workers or rate, a curve for each policy, side or flow with its range. Both
# axes are logarithmic, or `linear` says otherwise.
#
#	colours NAME COLOUR...	the curves, if they are others than those of bench-memory
#	least RATIO		at the bottom (1), and so many octaves above it (3)
#	octaves NUMBER
#	linear TOP STEP		instead: from 0 to TOP, with a line at each STEP
#	across PIXELS EVERY	from one number across to the next (40); so many have one label (1)
#	below WORDS		what the axes are
#	spread NUMBER		or
#	field WORDS		begin a field
#	memory NUMBER...	what is on the axis across
#	NAME MEDIAN (FIRST-LAST)...

function log2(x) { return log(x) / log(2) }

function across(i) { return left + pitch / 2 + (i - 1) * pitch }

function down(value) {
	if (top)
		return bottom - (value < top ? value : top) * 225 / top
	return bottom - log2(value / least) * 225 / octaves
}

function text(x, y, words, style) {
	print "<text x=\"" x "\" y=\"" y "\"" style ">" words "</text>"
}

function path(d, style) { print "<path d=\"" d "\" fill=\"none\"" style "/>" }

function level(value) {
	path("M" left " " down(value) "h" count * pitch, " stroke=\"#ddd\"")
	text(left - 6, down(value) + 4, value, " text-anchor=\"end\"")
}

# Grid, and the numbers of both axes.
function field(   i, value) {
	text(left + count * pitch / 2, 24, title, " text-anchor=\"middle\"")
	for (i = every; i <= count; i += every)
		text(across(i), bottom + 18, memory[i], " text-anchor=\"middle\"")
	for (value = 0; value <= top && top; value += step)
		level(value)
	for (value = least; value <= least * 2 ^ octaves && !top; value *= 2)
		level(value)
}

# A line of the table: NAME, then "MEDIAN (FIRST-LAST)" for each memory.
function curve(   i, d, ends, style) {
	style = " stroke=\"" colour[$1] "\" stroke-width=\"1.6\""
	for (i = 1; i <= count; i++) {
		split(substr($(2 * i + 1), 2, length($(2 * i + 1)) - 2), ends, "-")
		d = d (i > 1 ? "L" : "M") across(i) " " down($(2 * i))
		path("M" across(i) " " down(ends[1]) "V" down(ends[2]), style faint)
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
	width = 930; height = 380; bottom = 310; left = 40; pitch = 40; every = 1
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

$1 == "linear" { top = $2; step = $3 }

$1 == "across" { pitch = $2; every = $3; faint = " stroke-opacity=\".3\"" }

$1 == "below" { below = rest() }

$1 == "spread" { title = "up to " $2 " packets late" }

$1 == "field" { title = rest() }

$1 == "memory" {
	left += count ? count * pitch + 60 : 0
	count = NF - 1
	for (i = 1; i <= count; i++)
		memory[i] = $(i + 1)
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
