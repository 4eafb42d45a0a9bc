# SPDX-License-Identifier: GPL-2.0-only
# Writes the tables of a page anew. First the CSV is read, then the page. What stands between
#
#	<!-- table COLUMN=VALUE... across=COLUMN figure=PREFIX [OPTION=VALUE...] -->
#	<!-- end of table -->
#
# becomes a table of those rows of the CSV: a line for each policy, a column for each value of
# `across`. A cell is PREFIXmedian (PREFIXlow to PREFIXhigh), with best=1 PREFIXmean and PREFIXhigh
# (the best instance). of=PREFIX puts that median behind it; times=FACTOR and digits=N (0) are of
# all numbers.

BEGIN { FS = "," }

function complain(words) {
	print FILENAME ":" FNR ": " words >"/dev/stderr"
	failed = 1
	exit 1
}

function number(value) {
	value = sprintf("%." digits "f", value * times)
	return value ~ /^-0(\.0*)?$/ ? substr(value, 2) : value
}

function field(row, name) {
	if (!(name in at))
		complain("the CSV has no column " name)
	return csv[row, at[name]]
}

function cell(row,   text) {
	if ("best" in option)
		return number(field(row, figure "mean")) ", best " number(field(row, figure "high"))
	text = number(field(row, figure "median")) " (" number(field(row, figure "low")) " to " \
		number(field(row, figure "high")) ")"
	if ("of" in option)
		text = text " of " number(field(row, option["of"] "median"))
	return text
}

function is_of_table(row,   name) {
	for (name in option)
		if (name in at && csv[row, at[name]] != option[name])
			return 0
	return 1
}

# As they come, but numbers by size.
function put_column(last, column) {
	for (; last > 1 && column + 0 == column && column + 0 < columns_of[last - 1] + 0; last--)
		columns_of[last] = columns_of[last - 1]
	columns_of[last] = column
}

function table(   row, policy, column, text, said, lines, columns, i, j) {
	digits = "digits" in option ? option["digits"] : 0
	times = "times" in option ? option["times"] : 1
	figure = option["figure"]
	for (row = 1; row <= rows; row++) {
		if (!is_of_table(row))
			continue
		policy = field(row, "policy")
		column = field(row, option["across"])
		if ((policy, column) in said)
			complain("two rows for " policy " and " option["across"] " " column)
		if (!(policy in known))
			lines_of[++lines] = policy
		if (!(column in head))
			put_column(++columns, column)
		known[policy] = head[column] = 1
		said[policy, column] = cell(row)
	}
	if (!lines)
		complain("no row of the CSV is in this table")
	text = "| " option["across"]
	for (j = 1; j <= columns; j++)
		text = text " | " columns_of[j]
	print text " |"
	gsub(/[^|]+/, " --- ", text)
	sub(/^ --- /, "", text)
	print text "|"
	for (i = 1; i <= lines; i++) {
		text = "| `" lines_of[i] "`"
		for (j = 1; j <= columns; j++)
			text = text " | " ((lines_of[i], columns_of[j]) in said ? \
				said[lines_of[i], columns_of[j]] : "")
		print text " |"
	}
	delete known
	delete head
}

# Options are words of the mark, NAME=VALUE.
function read_mark(   words, n, i, equals) {
	delete option
	n = split($0, words, " ")
	for (i = 3; i < n; i++) {
		equals = index(words[i], "=")
		if (!equals)
			complain("NAME=VALUE is meant: " words[i])
		option[substr(words[i], 1, equals - 1)] = substr(words[i], equals + 1)
	}
}

FNR == NR && FNR == 1 {
	for (i = 1; i <= NF; i++)
		at[$i] = i
	next
}

FNR == NR {
	rows++
	for (i = 1; i <= NF; i++)
		csv[rows, i] = $i
	next
}

/^<!-- table / {
	print
	read_mark()
	table()
	inside = 1
	next
}

/^<!-- end of table -->$/ { inside = 0 }

!inside

END {
	if (inside && !failed)
		complain("a table has no end")
}
