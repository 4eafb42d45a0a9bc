# SPDX-License-Identifier: GPL-2.0-only
# What scripts/bench-fair has counted, as shares. Each file is a round; a line is seconds since the
# first job began, and the bytes that job 1, job 2 and TCP have had until then.
#
#	-v mode=json	a line for each round and phase: % of the cable, and Jain's index
#	-v mode=curves	a field for scripts/curves.awk: medians and ranges of the rounds
#	-v rate=NAME -v mbit=N -v seconds=N	the cables, and how long a phase is

# Bytes that a flow had at that time, between two samples as if its rate were the same.
function bytes_at(round, flow, at,   i, part) {
	for (i = 1; i < samples[round] && time[round, i + 1] < at; i++)
		continue
	if (i == samples[round] || at < time[round, 1])
		return bytes[round, at < time[round, 1] ? 1 : i, flow]
	part = (at - time[round, i]) / (time[round, i + 1] - time[round, i])
	return bytes[round, i, flow] * (1 - part) + bytes[round, i + 1, flow] * part
}

function share(round, flow, from, to) {
	return 100 * (bytes_at(round, flow, to) - bytes_at(round, flow, from)) * 8 / 1e6 / mbit / (to - from)
}

function phase(name, which, length_s) {
	phases++
	phase_name[phases] = name
	phase_flows[phases] = which
	phase_begin[phases] = phase_end[phases - 1]
	phase_end[phases] = phase_begin[phases] + length_s
}

function is_in(p, flow) { return index(phase_flows[p], flow) }

function json_line(round, p,   flow, part, n, sum, squares, line) {
	for (flow = 1; flow <= 3; flow++) {
		if (!is_in(p, flow))
			continue
		part = share(round, flow, (phase_begin[p] + phase_end[p]) / 2, phase_end[p])
		n++
		sum += part
		squares += part * part
		line = line sprintf("\"%s\":%.3f,", key[flow], part)
	}
	printf "{\"rate\":\"%s\",\"round\":%d,\"number\":%d,\"phase\":\"%s\",%s\"all\":%.3f,\"jain\":%.4f}\n", \
		rate, round - 1, p, phase_name[p], line, sum, squares ? sum * sum / n / squares : 0
}

# The median of value[1] to value[n], which are sorted then.
function median(n,   i, j, x) {
	for (i = 2; i <= n; i++) {
		x = value[i]
		for (j = i - 1; j && value[j] > x; j--)
			value[j + 1] = value[j]
		value[j + 1] = x
	}
	return (value[int((n + 1) / 2)] + value[int(n / 2) + 1]) / 2
}

function curve(flow,   i, round) {
	printf "%s", name[flow]
	for (i = 1; i <= columns; i++) {
		for (round = 1; round <= rounds; round++) {
			value[round] = share(round, flow, (i - 1) * step, i * step)
			if (value[round] < 0) # a flow of TCP has ended, and its counter is gone
				value[round] = 0
		}
		printf " %.1f", median(rounds)
		printf " (%.1f-%.1f)", value[1], value[rounds]
	}
	printf "\n"
}

# What each would have if all had the same.
function equal_parts(   i, p, part) {
	printf "equal"
	for (i = 1; i <= columns; i++) {
		for (p = 1; (i - 0.5) * step > phase_end[p]; p++)
			continue
		part = 100 / length(phase_flows[p])
		printf " %.1f (%.1f-%.1f)", part, part, part
	}
	printf "\n"
}

function curves(   i, flow) {
	columns = 140
	step = phase_end[phases] / columns
	print "field " rate
	printf "memory"
	for (i = 1; i <= columns; i++)
		printf " %g", i * step
	printf "\n"
	equal_parts()
	for (flow = 1; flow <= 3; flow++)
		curve(flow)
}

BEGIN {
	split("job1 job2 cubic", key, " ")
	split("job-1 job-2 cubic", name, " ")
	phase_end[0] = 0
	phase("alone", "1", seconds / 4)
	phase("jobs", "12", seconds)
	phase("three", "123", seconds)
	phase("tcp", "13", seconds)
	phase("after", "1", seconds / 4)
}

FNR == 1 { rounds++ }

{
	samples[rounds]++
	time[rounds, samples[rounds]] = $1
	for (flow = 1; flow <= 3; flow++)
		bytes[rounds, samples[rounds], flow] = $(flow + 1)
}

END {
	if (mode == "curves") {
		curves()
		exit
	}
	for (round = 1; round <= rounds; round++)
		for (p = 1; p <= phases; p++)
			json_line(round, p)
}
