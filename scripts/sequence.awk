# SPDX-License-Identifier: GPL-2.0-only
# Draws a sequence chart as SVG. One line of the source is one row of the picture:
#
#	actor ID NAME		a life line, from left to right
#	ID -> ID TEXT		a message that arrives
#	ID -x ID TEXT		a message that is lost
#	ID: TEXT		what an actor does or has
#	.. TEXT			time passes
#
# `#` begins a remark. COLOUR is the one accent.

function text(x, y, words, style) {
	gsub(/&/, "\\&amp;", words)
	gsub(/</, "\\&lt;", words)
	gsub(/>/, "\\&gt;", words)
	if (style !~ /stroke=/)
		style = style " stroke=\"none\""
	out("<text x=\"" x "\" y=\"" y "\"" style ">" words "</text>")
}

function line(x1, y1, x2, y2, style) {
	out("<path d=\"M" x1 " " y1 "L" x2 " " y2 "\"" style "/>")
}

function out(what) { body = body what "\n" }

function rest(from,   i, words) {
	for (i = from; i <= NF; i++)
		words = words (i > from ? " " : "") $i
	return words
}

function known(id) {
	if (!(id in column)) {
		print FILENAME ":" FNR ": " id ": there is no such actor" >"/dev/stderr"
		failed = 1
		exit 1
	}
	return column[id]
}

function box(x, y, words,   w) {
	w = 7.2 * length(words) + 20
	out("<rect x=\"" x - w / 2 "\" y=\"" y - 15 "\" width=\"" w "\" height=\"22\" rx=\"5\"" \
	    " fill=\"" PALE "\" stroke=\"" COLOUR "\"/>")
	text(x, y, words, "")
}

function message(from, to, lost,   tip, way) {
	way = to > from ? 1 : -1
	tip = lost ? from + (to - from) * 0.7 : to - way
	if (lost) {
		line(from, y, tip, y, " stroke=\"" COLOUR "\" stroke-dasharray=\"5 4\"")
		line(tip - 5, y - 5, tip + 5, y + 5, " stroke=\"" COLOUR "\" stroke-width=\"2\"")
		line(tip - 5, y + 5, tip + 5, y - 5, " stroke=\"" COLOUR "\" stroke-width=\"2\"")
	} else {
		line(from, y, tip - way * 6, y, "")
		out("<path d=\"M" tip " " y "l" (-way * 9) " -4.5v9z\" fill=\"black\" stroke=\"none\"/>")
	}
	text((from + (lost ? tip : to)) / 2, y - 7, rest(4), lost ? " fill=\"" COLOUR "\"" : "")
}

BEGIN { WIDTH = 780; ROW = 36; y = 40; COLOUR = "#1f5fa8"; PALE = "#e8f0fa" }

/^#/ || !NF { next }

$1 == "actor" {
	order[++actors] = $2
	name[$2] = rest(3)
	for (i = 1; i <= actors; i++)
		column[order[i]] = WIDTH / actors * (i - 0.5)
	next
}

$1 == ".." {
	y += ROW
	words = rest(2)
	gap[++gaps] = y
	text(WIDTH / 2, y - 1, words, " font-style=\"italic\" fill=\"#555\"" \
	     " paint-order=\"stroke\" stroke=\"white\" stroke-width=\"6\"")
	next
}

$2 == "->" || $2 == "-x" {
	y += ROW
	message(known($1), known($3), $2 == "-x")
	next
}

$1 ~ /:$/ {
	y += ROW
	id = substr($1, 1, length($1) - 1)
	box(known(id), y - 2, rest(2))
	next
}

{
	print FILENAME ":" FNR ": not understood: " $0 >"/dev/stderr"
	failed = 1
	exit 1
}

END {
	if (failed)
		exit 1
	bottom = y + 24
	height = bottom + 12
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" WIDTH "\" height=\"" height "\"" \
	      " viewBox=\"0 0 " WIDTH " " height "\" font-family=\"Helvetica, Arial, sans-serif\"" \
	      " font-size=\"13\" text-anchor=\"middle\">"
	print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
	print "<g stroke=\"#888\" stroke-width=\"1\">"
	for (a = 1; a <= actors; a++) {
		id = order[a]
		top = 34
		for (i = 1; i <= gaps; i++) {
			print "<path d=\"M" column[id] " " top "V" gap[i] - 18 "\"/>"
			print "<path d=\"M" column[id] " " gap[i] - 18 "V" gap[i] + 10 "\"" \
			      " stroke-dasharray=\"2 4\"/>"
			top = gap[i] + 10
		}
		print "<path d=\"M" column[id] " " top "V" bottom "\"/>"
	}
	print "</g>"
	print "<g font-weight=\"bold\">"
	for (a = 1; a <= actors; a++)
		print "<text x=\"" column[order[a]] "\" y=\"24\">" name[order[a]] "</text>"
	print "</g>"
	printf "<g stroke=\"black\" stroke-width=\"1.4\">\n%s</g>\n</svg>\n", body
}
