#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A real Prometheus, configured as docs/metrics.md says, watches a node that tallyd runs.
#
#   w0 ──┐
#        ├── n0 (tallyd, Prometheus)
#   w1 ──┘
# shellcheck source=tests/e2e/agent_lib.sh
source "$(dirname "$0")/agent_lib.sh"

text=http://127.0.0.1:9464
api=http://127.0.0.1:9090

pair() { two_hosts 200mbit; }

fetch() { on n0 curl --silent --show-error --max-time 10 "$@"; }
metrics() { fetch --fail "$text/metrics"; }

# The lines of the first block of this language in docs/metrics.md that has these words.
documented() { # LANGUAGE WORDS
	awk -v language="$1" -v words="$2" '
		/^```/ && !inside { inside = 1; is = substr($0, 4); block = ""; next }
		/^```/ { inside = 0; if (is == language && index(block, words)) { printf "%s", block; exit } }
		inside { block = block $0 "\n" }' docs/metrics.md
}

start_prometheus() {
	rm -rf "$work/prometheus"
	documented yaml scrape_configs |
		sed -e 's/scrape_interval: .*/scrape_interval: 1s\n    scrape_timeout: 1s/' \
			-e "s|targets: .*|targets: [\"${text#http://}\"]|" >"$work/prometheus.yml"
	grep -q "${text#http://}" "$work/prometheus.yml" || return 1
	printf 'rule_files: ["alerts.y*ml"]\nglobal: {evaluation_interval: 1s}\n' >>"$work/prometheus.yml"
	exec_on n0 prometheus --config.file="$work/prometheus.yml" --log.level=warn \
		--storage.tsdb.path="$work/prometheus" --web.listen-address="${api#http://}" \
		>"$work/prometheus.log" 2>&1 &
	until_true holds "up == 1" || { cat "$work/prometheus.log"; return 1; }
}

ask() { fetch --get --data-urlencode "query=$1" "$api/api/v1/query"; }

# Prometheus finds at least one series for the query: comparisons leave out what they are not true of.
holds() { ask "$1" 2>/dev/null | jq -e '.status == "success" and (.data.result | length > 0)' >/dev/null; }
comes_true() { until_true holds "$1" || { ask "${1%% [<>=]*}"; return 1; }; } # QUERY

load() { join_all train w0 w1 -- -d int32 -b 64K -e 64K -n 8 -w 0 -s "$1"; } # SECONDS

prometheus_sees_a_run_and_its_end() {
	pair
	start_agent
	start_prometheus
	create_job train 2
	load 8
	comes_true 'up == 1'
	comes_true 'tally_packets_total{job="train", tenant="default", outcome="COMPLETED"} > 0'
	comes_true 'tally_jobs{state="running"} == 1 and ignoring(state) tally_jobs{state="waiting"} == 0'
	comes_true 'tally_slots{state="used"} == 256 and ignoring(state) tally_slots{state="total"} == 4096'
	comes_true 'tally_job_workers{job="train", kind="joined"} == 2'
	# What tallyd has smoothed is what Prometheus makes of the counters.
	comes_true 'tally_job_chunks_per_second{job="train"} / on(job)
		sum by (job) (rate(tally_packets_total{outcome="COMPLETED"}[4s])) > 0.5 < 2'
	comes_true 'sum(tally_link_receive_bytes_per_second) /
		sum(rate(tally_link_receive_bytes_total[4s])) > 0.5 < 2'
	joined_end
	comes_true 'tally_jobs{state="waiting"} == 1 and ignoring(state) tally_slots{state="used"} == 0'
	comes_true "scrape_samples_scraped == $(metrics | grep -vc '^#')"
	# Whatever began, no scrape failed.
	holds 'min_over_time(up[1m]) == 1'
	[[ ! -s $work/prometheus.log ]] || { cat "$work/prometheus.log"; return 1; }
}

the_documented_queries_are_answered() {
	local query name found=0
	pair
	start_agent
	start_prometheus
	create_job train 2
	load 6
	comes_true 'sum by (job) (rate(tally_packets_total{outcome="COMPLETED"}[1m])) > 0'
	holds 'sum by (job) (rate(tally_packets_total{job="train", outcome="COMPLETED"}[1m])) > 0'
	while read -r query; do # each may have several lines
		ask "$query" | jq -e '.status == "success"' >/dev/null || { ask "$query"; return 1; }
		# Every series that it names is there.
		while read -r name; do
			holds "$name" || { echo "$name"; return 1; }
		done < <(grep -oE 'tally_[a-z_]+' <<<"$query")
		found=$((found + 1))
	done < <(documented '' tally_job_duplicates_ratio | grep '^[^#]' |
		awk '/^[^ }]/ && NR > 1 { print "" } { printf "%s", $0 } END { print "" }')
	((found >= 4))
	joined_end
}

promtool_has_nothing_to_say_about_the_text() {
	pair
	start_agent
	metrics >"$work/idle"
	create_job train 2
	ctl tenant add red --slots 16 >/dev/null
	load 5
	another train 100
	metrics >"$work/busy"
	joined_end
	metrics >"$work/after"
	for name in idle busy after; do
		promtool check metrics <"$work/$name" >"$work/words" 2>&1 || { cat "$work/words"; return 1; }
		[[ ! -s $work/words ]] || { cat "$work/words"; return 1; }
	done
	grep -q 'outcome="COMPLETED",job="train"' "$work/busy"
}

# What the dashboard asks, one query a line, for all nodes.
queries_of_dashboard() {
	# shellcheck disable=SC2016
	jq -r '.panels[].targets[].expr | gsub("[$]node"; ".*") | gsub("[$]__rate_interval"; "5s")' \
		packaging/dashboard.json
}

rules_and_dashboard_ask_for_series_that_there_are() {
	local name query found=0
	pair
	echo "cluster: {node: n0, file: $work/cluster}" >>"$work/tallyd.yaml"
	start_agent
	cp packaging/alerts.yml "$work/alerts.yml"
	start_prometheus
	create_job train 2
	load 8
	another train 100
	metrics >"$work/busy"
	while read -r name; do
		grep -qE "^${name}[ {]" "$work/busy" || { echo "nobody exports $name"; return 1; }
		found=$((found + 1))
	done < <({ queries_of_dashboard; grep -v '^#' packaging/alerts.yml; } | grep -ohE '\b(tally|process)_[a-z_]+' | sort -u)
	((found > 20))
	while read -r query; do # each may have several lines
		ask "$query" | jq -e '.status == "success"' >/dev/null || { echo "$query"; ask "$query"; return 1; }
	done < <(queries_of_dashboard)
	# Prometheus has taken all rules, and none fails.
	until_true all_rules_are_well
	comes_true 'sum by (job) (rate(tally_packets_total{instance=~".*",outcome="COMPLETED",job!="(gone)"}[5s])) > 0'
	joined_end
}

all_rules_are_well() {
	fetch "$api/api/v1/rules" | jq -e --argjson all "$(grep -c 'alert:' packaging/alerts.yml)" '
		[.data.groups[].rules[] | select(.health == "ok")] | length == $all' >/dev/null
}

code_of() { fetch --output /dev/null --write-out '%{http_code}' "$@"; }

is_healthy() {
	local said
	said=$(fetch --fail "$text/healthz" 2>&1) || true
	[[ $said == ok ]] || { echo "healthz: $said"; return 1; }
}

health_is_told_and_other_paths_are_not() {
	local code=0
	pair
	start_agent
	is_healthy
	[[ $(code_of "$text/") == 404 && $(code_of "$text/metrics/x") == 404 ]]
	[[ $(code_of --request POST --data x "$text/metrics") == 405 ]]
	# A daemon that does not turn its loop is not healthy.
	kill -STOP "$daemon"
	fetch --fail --max-time 1 "$text/healthz" 2>"$work/words" || code=$?
	kill -CONT "$daemon" # or it could not be ended either
	((code != 0))
	is_healthy
}

completed='sum(tally_packets_total{outcome="COMPLETED"})'

counters_do_not_fall_when_tallyd_is_killed_and_when_runs_and_jobs_end() {
	local before
	pair
	start_agent
	start_prometheus
	create_job train 2
	load 60
	comes_true "$completed > 0"
	end_agent KILL
	comes_true 'up == 0'
	before=$(ask "max_over_time(${completed}[1m:1s])" | jq -r '.data.result[0].value[1]')
	start_agent
	comes_true "$completed > $before"
	kill "${worker[@]}"
	wait "${worker[@]}" || true
	comes_true 'tally_jobs{state="waiting"} == 1'
	load 2
	comes_true 'tally_jobs{state="running"} == 1'
	joined_end
	ctl job del train >/dev/null
	comes_true 'sum(tally_jobs) == 0 and on() '"$completed > $before"
	holds 'count_over_time(sum(tally_packets_total)[5m:1s]) > 5'
	holds 'max(resets((sum by (outcome) (tally_packets_total))[5m:1s])) == 0' ||
		{ ask '(sum by (outcome) (tally_packets_total))[5m:1s]'; return 1; }
}

sum_of_packets() { metrics | awk '/^tally_packets_total/ { n += $NF } END { printf "%d\n", n }'; }
is_deleted() { ! metrics | has 'job="train"'; }

# Also between two samples, which here are far apart.
counters_do_not_fall_when_a_job_is_deleted_in_the_middle_of_a_run() {
	local before
	pair
	echo 'sample: {interval_ms: 60000}' >>"$work/tallyd.yaml"
	start_agent
	create_job train 2
	load 30
	another train 100
	before=$(sum_of_packets)
	metrics | has 'job="train"'
	ctl job del train
	until_true is_deleted
	(($(sum_of_packets) >= before)) || { echo "$before, and then $(sum_of_packets)"; return 1; }
	wait "${worker[@]}" || true # whose job has gone
}

samples() { metrics | sed -n 's/^tally_loop_delay_seconds_count //p'; }
samples_reach() { (($(samples) >= $1)); }
packets_reach() { (($(sum_of_packets) >= $1)); }

what_a_run_counted_outlives_a_tallyd_that_is_killed() {
	local before
	pair
	start_agent
	create_job train 2
	load 1
	joined_end
	until_true state_is train waiting
	until_true samples_reach $(($(samples) + 2))
	before=$(sum_of_packets)
	end_agent KILL
	start_agent
	until_true packets_reach "$before"
}

facts prometheus_sees_a_run_and_its_end \
	the_documented_queries_are_answered \
	rules_and_dashboard_ask_for_series_that_there_are \
	promtool_has_nothing_to_say_about_the_text \
	health_is_told_and_other_paths_are_not \
	counters_do_not_fall_when_tallyd_is_killed_and_when_runs_and_jobs_end \
	counters_do_not_fall_when_a_job_is_deleted_in_the_middle_of_a_run \
	what_a_run_counted_outlives_a_tallyd_that_is_killed
