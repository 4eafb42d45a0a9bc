// SPDX-License-Identifier: GPL-2.0-only
/* The agent's state as Prometheus reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/core/metrics.h"

enum {
	FAMILIES_MAX = 128
};

static struct metrics_snapshot snapshot;
static struct tally_counter counter[3][TALLY_OUTCOME_COUNT];
static struct metrics_row row[3];
static struct metrics_job job[2];
static struct metrics_tenant tenant[2];
static struct traffic_link_flow link_flow[2];
static const struct traffic_link_flow *flows[2] = { &link_flow[0], &link_flow[1] };
static char *text;
static size_t length;

static struct traffic_rates rates_of(double n)
{
	return (struct traffic_rates){
		.packets_per_second = n,
		.bytes_per_second = n + 0.5,
		.forecast_bytes_per_second = n + 2,
		.chunks_per_second = n + 3,
		.refused_per_second = n + 4,
		.duplicate_percent = 25,
	};
}

static void describe_links(void)
{
	link_flow[0] = (struct traffic_link_flow){
		.link = { .ifindex = 2,
			  .name = "eth1",
			  .up = true,
			  .carrier = true,
			  .mtu = 1500,
			  .speed_mbps = 10000,
			  .receive = { 1, UINT64_MAX, 3, 4 },
			  .transmit = { 5, 6, 7, 8 },
			  .backlog_bytes = 9,
			  .backlog_packets = 10,
			  .changes = 11 },
		.receive = { 12, 13, 14 },
		.transmit = { 15, 16, 17.25 },
	};
	link_flow[1] = (struct traffic_link_flow){ .link = { .ifindex = 3, .name = "eth2" } };
}

static int prepare(void **state)
{
	memset(counter, 0, sizeof(counter));
	row[0] = (struct metrics_row){ METRICS_NO_JOB, "", "", counter[0] };
	row[1] = (struct metrics_row){ METRICS_GONE_JOBS, "", "", counter[1] };
	row[2] = (struct metrics_row){ "resnet", "red", "eth1", counter[2] };
	job[0] = (struct metrics_job){ "resnet", "red", METRICS_JOB_RUNNING, 8,		 8,
				       256,	 0,	{ { 0 } },	     rates_of(1) };
	job[1] = (struct metrics_job){ "bert", "blue", METRICS_JOB_FORMING, 4,		3,
				       0,      0,      { { 0 } },	    rates_of(2) };
	tenant[0] = (struct metrics_tenant){ "red", 1024, 256, 128, 77, rates_of(3) };
	tenant[1] = (struct metrics_tenant){ "blue", 512, 0, 0, 0, rates_of(4) };
	describe_links();
	snapshot = (struct metrics_snapshot){
		.version = "1.2.3",
		.build = "abc",
		.slots_total = 4096,
		.slots_reserved = 1536,
		.slots_used = 256,
		.rows = row,
		.row_count = 3,
		.jobs = job,
		.job_count = 2,
		.tenants = tenant,
		.tenant_count = 2,
		.links = flows,
		.link_count = 2,
		.traffic = { .samples = 60, .rows_ignored = 1, .links_ignored = 2, .evicted = 3 },
		.link_events_lost = 4,
		.sampling_seconds = 0.005,
		.looking_seconds = 0.003,
		.cpu_seconds = 1.5,
		.start_seconds = 1700000000.25,
		.resident_bytes = 8 << 20,
	};
	return 0;
}

static int clean_up(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

static void print(void)
{
	free(text);
	text = NULL;
	assert_int_equal(metrics_print(&snapshot, &text, &length), 0);
	assert_int_equal(strlen(text), length);
}

/* How many lines are exactly this. */
static unsigned int count_line(const char *line)
{
	size_t n = strlen(line);
	unsigned int count = 0;

	for (const char *at = text; (at = strstr(at, line)); at += n)
		count += (at == text || at[-1] == '\n') && at[n] == '\n';
	return count;
}

static void assert_line(const char *line)
{
	if (count_line(line) != 1)
		fail_msg("%u times: %s\n%s", count_line(line), line, text);
}

static void a_row_is_a_series_for_each_outcome_that_happened(void **state)
{
	counter[2][TALLY_ABSORBED] = (struct tally_counter){ 70, 7000 };
	counter[2][TALLY_COMPLETED] = (struct tally_counter){ UINT64_MAX, 1 };
	counter[1][TALLY_STALE] = (struct tally_counter){ 5, 500 };
	print();
	assert_line("tally_packets_total{outcome=\"ABSORBED\",job=\"resnet\",tenant=\"red\","
		    "port=\"eth1\"} 70");
	assert_line("tally_bytes_total{outcome=\"ABSORBED\",job=\"resnet\",tenant=\"red\","
		    "port=\"eth1\"} 7000");
	assert_line("tally_packets_total{outcome=\"COMPLETED\",job=\"resnet\",tenant=\"red\","
		    "port=\"eth1\"} 18446744073709551615");
	assert_line(
		"tally_packets_total{outcome=\"STALE\",job=\"(gone)\",tenant=\"\",port=\"\"} 5");
	assert_null(strstr(text, "outcome=\"DUPLICATE\",job=\"resnet\""));
}

static void every_outcome_is_there_and_explained(void **state)
{
	char line[128];

	print();
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		snprintf(
			line, sizeof(line),
			"tally_packets_total{outcome=\"%s\",job=\"(none)\",tenant=\"\",port=\"\"} 0",
			tally_outcome_name(i));
		assert_line(line);
		snprintf(line, sizeof(line), " %s: ", tally_outcome_name(i));
		assert_non_null(strstr(strstr(text, "# HELP tally_packets_total"), line));
	}
	assert_non_null(strstr(text, " FOREIGN: not a Tally message."));
}

static void gauges_say_what_the_snapshot_says(void **state)
{
	static const char *const lines[] = {
		"tally_build_info{version=\"1.2.3\",dataplane=\"abc\"} 1",
		"tally_slots{state=\"total\"} 4096",
		"tally_slots{state=\"reserved\"} 1536",
		"tally_slots{state=\"used\"} 256",
		"tally_tenant_slots{tenant=\"red\",kind=\"quota\"} 1024",
		"tally_tenant_slots{tenant=\"red\",kind=\"used\"} 256",
		"tally_tenant_slots{tenant=\"red\",kind=\"lent\"} 128",
		"tally_tenant_software_memory_bytes{tenant=\"red\"} 77",
		"tally_jobs{state=\"waiting\"} 0",
		"tally_jobs{state=\"forming\"} 1",
		"tally_jobs{state=\"running\"} 1",
		"tally_jobs{state=\"suspended\"} 0",
		"tally_job_workers{job=\"bert\",tenant=\"blue\",kind=\"all\"} 4",
		"tally_job_workers{job=\"bert\",tenant=\"blue\",kind=\"joined\"} 3",
		"tally_job_slots{job=\"resnet\",tenant=\"red\"} 256",
		"tally_samples_total 60",
		"tally_sampling_ignored_total 3",
		"tally_sampling_evicted_total 3",
		"tally_link_events_lost_total 4",
		"tally_sampling_cpu_seconds_total 0.005",
		"tally_late_cpu_seconds_total 0.003",
		"process_cpu_seconds_total 1.5",
		"process_resident_memory_bytes 8388608",
		"process_start_time_seconds 1700000000.250",
	};

	print();
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_line(lines[i]);
}

/* Of others there is no series, so there are few. */
static void late_ranks_have_a_series_each(void **state)
{
	print();
	assert_null(strstr(text, "tally_job_late_part{"));
	job[0].lates = 2;
	job[0].late[0] = (struct late_rank){ 3, 84 };
	job[0].late[1] = (struct late_rank){ 255, 100 };
	print();
	assert_line("tally_job_late_part{job=\"resnet\",tenant=\"red\",rank=\"3\"} 0.84");
	assert_line("tally_job_late_part{job=\"resnet\",tenant=\"red\",rank=\"255\"} 1");
	assert_null(strstr(text, "tally_job_late_part{job=\"bert\""));
}

static void rates_are_of_jobs_and_tenants(void **state)
{
	static const char *const lines[] = {
		"tally_job_packets_per_second{job=\"resnet\",tenant=\"red\"} 1",
		"tally_job_bytes_per_second{job=\"resnet\",tenant=\"red\"} 1.5",
		"tally_job_forecast_bytes_per_second{job=\"resnet\",tenant=\"red\"} 3",
		"tally_job_chunks_per_second{job=\"resnet\",tenant=\"red\"} 4",
		"tally_job_refused_packets_per_second{job=\"resnet\",tenant=\"red\"} 5",
		"tally_job_duplicates_ratio{job=\"resnet\",tenant=\"red\"} 0.25",
		"tally_job_packets_per_second{job=\"bert\",tenant=\"blue\"} 2",
		"tally_tenant_packets_per_second{tenant=\"red\"} 3",
		"tally_tenant_bytes_per_second{tenant=\"blue\"} 4.5",
		"tally_tenant_refused_packets_per_second{tenant=\"blue\"} 8",
	};

	print();
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_line(lines[i]);
}

/* Each field of eth1 has a value of its own. */
static void links_say_what_the_kernel_says(void **state)
{
	static const char *const lines[] = {
		"up{link=\"eth1\"} 1",
		"up{link=\"eth2\"} 0",
		"carrier{link=\"eth1\"} 1",
		"mtu_bytes{link=\"eth1\"} 1500",
		"speed_bytes_per_second{link=\"eth1\"} 1250000000",
		"receive_packets_total{link=\"eth1\"} 1",
		"receive_bytes_total{link=\"eth1\"} 18446744073709551615",
		"receive_dropped_total{link=\"eth1\"} 3",
		"receive_errors_total{link=\"eth1\"} 4",
		"transmit_packets_total{link=\"eth1\"} 5",
		"transmit_bytes_total{link=\"eth1\"} 6",
		"transmit_dropped_total{link=\"eth1\"} 7",
		"transmit_errors_total{link=\"eth1\"} 8",
		"backlog_bytes{link=\"eth1\"} 9",
		"backlog_packets{link=\"eth1\"} 10",
		"changes_total{link=\"eth1\"} 11",
		"receive_packets_per_second{link=\"eth1\"} 12",
		"receive_bytes_per_second{link=\"eth1\"} 13",
		"receive_forecast_bytes_per_second{link=\"eth1\"} 14",
		"transmit_packets_per_second{link=\"eth1\"} 15",
		"transmit_bytes_per_second{link=\"eth1\"} 16",
		"transmit_forecast_bytes_per_second{link=\"eth1\"} 17.25",
	};
	char line[128];

	print();
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		snprintf(line, sizeof(line), "tally_link_%s", lines[i]);
		assert_line(line);
	}
	assert_null(strstr(text, "speed_bytes_per_second{link=\"eth2\"}")); /* unknown, not 0 */
}

static void what_the_agent_counts_is_there_from_the_start(void **state)
{
	snapshot.cordoned = true;
	snapshot.runs_in_software = 3;
	snapshot.runs_borrowing = 4;
	snapshot.runs_inner = 2;
	snapshot.inner_nodes_away = 3;
	snapshot.software_bytes = 5;
	snapshot.software_bytes_max = 6;
	snapshot.software_evicted = 8;
	snapshot.software_full = 9;
	snapshot.counts = (struct core_counts){ .runs_begun = 7,
						.runs_moved = 6,
						.loans = 5,
						.loans_recalled = 4,
						.runs_refilled = 9,
						.saves_failed = 8 };
	snapshot.counts.runs_refused[CORE_RUN_QUOTA] = 9;
	snapshot.counts.joins_refused[CORE_JOIN_TOKEN] = 10;
	print();
	assert_line("tally_cordoned 1");
	assert_line("tally_runs_in_software 3");
	assert_line("tally_runs_borrowing 4");
	assert_line("tally_runs_inner 2");
	assert_line("tally_inner_nodes_away 3");
	assert_line("tally_software_memory_bytes{kind=\"used\"} 5");
	assert_line("tally_software_memory_bytes{kind=\"limit\"} 6");
	assert_line("tally_software_evicted_total 8");
	assert_line("tally_software_full_total 9");
	assert_line("tally_runs_total 7");
	assert_line("tally_runs_moved_total 6");
	assert_line("tally_loans_total 5");
	assert_line("tally_loans_recalled_total 4");
	assert_line("tally_runs_refilled_total 9");
	assert_line("tally_state_write_failures_total 8");
	assert_line("tally_state_saved 1");
	assert_line("tally_runs_refused_total{reason=\"quota\"} 9");
	assert_line("tally_runs_refused_total{reason=\"kernel\"} 0");
	assert_line("tally_joins_refused_total{reason=\"token\"} 10");
	assert_line("tally_joins_refused_total{reason=\"no_way\"} 0");
}

/* Each bound, and a little more. */
static void delays_are_a_histogram(void **state)
{
	uint64_t bound_ns = 1000000;

	for (unsigned int i = 0; i < DELAY_BOUNDS; i++, bound_ns *= 10) {
		delay_add(&snapshot.delays, bound_ns);
		delay_add(&snapshot.delays, bound_ns + 1000);
	}
	print();
	assert_line("tally_loop_delay_seconds_bucket{le=\"0.001\"} 1");
	assert_line("tally_loop_delay_seconds_bucket{le=\"0.01\"} 3");
	assert_line("tally_loop_delay_seconds_bucket{le=\"10\"} 9");
	assert_line("tally_loop_delay_seconds_bucket{le=\"+Inf\"} 10");
	assert_line("tally_loop_delay_seconds_sum 22.222005");
	assert_line("tally_loop_delay_seconds_count 10");
}

static void label_values_are_escaped(void **state)
{
	job[0].name = "a\\b\"c\nd";
	job[1].name = "\x01\x7f\xff\xc3\xa4 {},=#";
	print();
	assert_line("tally_job_slots{job=\"a\\\\b\\\"c\\nd\",tenant=\"red\"} 256");
	assert_line("tally_job_slots{job=\"\\\\x01\\\\x7f\\\\xff\\\\xc3\\\\xa4 {},=#\","
		    "tenant=\"blue\"} 0");
}

static void a_name_may_be_missing(void **state)
{
	snapshot.version = NULL;
	row[2].port = NULL;
	counter[2][TALLY_ABSORBED].packet = 1;
	print();
	assert_line("tally_build_info{version=\"\",dataplane=\"abc\"} 1");
	assert_line("tally_packets_total{outcome=\"ABSORBED\",job=\"resnet\",tenant=\"red\","
		    "port=\"\"} 1");
}

/* Every series stands behind the one HELP and TYPE of its family, and is there once. */
static void families_are_whole(void **state)
{
	static char family[FAMILIES_MAX][96];
	unsigned int families = 0, lines = 0;
	char *save, *copy;

	print();
	copy = strdup(text);
	assert_non_null(copy);
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *end = line + strcspn(line, "{ ");

		if (!strncmp(line, "# HELP ", 7)) {
			line += 7;
			line[strcspn(line, " ")] = '\0';
			for (unsigned int i = 0; i < families; i++)
				assert_string_not_equal(line, family[i]);
			assert_true(families < FAMILIES_MAX);
			snprintf(family[families++], sizeof(*family), "%s", line);
			continue;
		}
		assert_true(families > 0);
		if (!strncmp(line, "# TYPE ", 7)) {
			line += 7;
			end = line + strcspn(line, " ");
		} else {
			assert_int_equal(count_line(line), 1);
			lines++;
		}
		*end = '\0';
		/* of a histogram it is the beginning */
		assert_memory_equal(line, family[families - 1], strlen(family[families - 1]));
	}
	free(copy);
	assert_true(families > 45 && lines > 100);
}

static void a_cluster_is_told_where_there_is_one(void **state)
{
	print();
	assert_null(strstr(text, "tally_cluster"));
	snapshot.cluster = (struct metrics_cluster){
		.is_one = true,
		.heard_seconds = 0.25,
		.leads = true,
		.nodes = 3,
		.jobs = { 1, 2, 3, 4, 5 },
		.reports = 6,
		.report_bytes = 7,
		.placed = 8,
		.moved = 9,
		.ways = 12,
		.kinds = 2,
		.kind = (const char *const[]){ "came", "moved" },
		.events = (const uint64_t[]){ 10, 11 },
	};
	print();
	assert_line("tally_cluster_heard_seconds 0.25");
	assert_line("tally_cluster_leads 1");
	assert_line("tally_cluster_nodes 3");
	assert_line("tally_cluster_jobs{state=\"forming\"} 1");
	assert_line("tally_cluster_jobs{state=\"due\"} 2");
	assert_line("tally_cluster_jobs{state=\"placed\"} 3");
	assert_line("tally_cluster_jobs{state=\"running\"} 4");
	assert_line("tally_cluster_jobs{state=\"silent\"} 5");
	assert_line("tally_cluster_reports_total 6");
	assert_line("tally_cluster_report_bytes_total 7");
	assert_line("tally_cluster_placed_total 8");
	assert_line("tally_cluster_moved_total 9");
	assert_line("tally_cluster_ways_total 12");
	assert_line("tally_cluster_events_total{kind=\"came\"} 10");
	assert_line("tally_cluster_events_total{kind=\"moved\"} 11");
}

static void rows_beyond_the_limit_are_left_out_and_counted(void **state)
{
	static struct metrics_row many[METRICS_ROWS_MAX + 7];
	static char name[METRICS_ROWS_MAX + 7][16];
	unsigned int series = 0;

	counter[2][TALLY_ABSORBED].packet = 1;
	for (unsigned int i = 0; i < METRICS_ROWS_MAX + 7; i++) {
		snprintf(name[i], sizeof(name[i]), "job%u", i);
		many[i] = (struct metrics_row){ name[i], "red", "eth1", counter[2] };
	}
	snapshot.rows = many;
	snapshot.row_count = METRICS_ROWS_MAX + 7;
	print();
	assert_line("tally_metrics_rows_omitted 7");
	for (const char *at = text; (at = strstr(at, "tally_packets_total{outcome=\"ABSORBED\""));
	     at++)
		series++;
	assert_int_equal(series, METRICS_ROWS_MAX);
}

static void the_largest_text_is_within_its_word(void **state)
{
	static struct metrics_row many[METRICS_ROWS_MAX];
	static char name[METRICS_ROWS_MAX][64];

	for (unsigned int k = 0; k < TALLY_OUTCOME_COUNT; k++)
		counter[0][k] = (struct tally_counter){ 1ull << 40, 1ull << 50 };
	for (unsigned int i = 0; i < METRICS_ROWS_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "a-job-with-a-common-name-%u", i);
		many[i] = (struct metrics_row){ name[i], "some-tenant", "enp65s0f0np0",
						counter[0] };
	}
	snapshot.rows = many;
	snapshot.row_count = METRICS_ROWS_MAX;
	print();
	assert_true(length < 52000000);
}

static void nothing_makes_a_valid_text_too(void **state)
{
	snapshot = (struct metrics_snapshot){ 0 };
	print();
	assert_line("tally_slots{state=\"total\"} 0");
	assert_line("tally_metrics_rows_omitted 0");
	assert_line("tally_jobs{state=\"running\"} 0");
}

static void give_to_promtool(void)
{
	FILE *f = popen("promtool check metrics >&2", "w");
	int status;

	if (!f) {
		fail_msg("cannot run promtool");
		return;
	}
	fwrite(text, 1, length, f);
	status = pclose(f);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("promtool ends with status %#x", status);
}

/* Its parser and its rules for names. */
static void promtool_has_nothing_to_say(void **state)
{
	if (system("command -v promtool >/dev/null") != 0)
		skip();
	counter[2][TALLY_ABSORBED] = (struct tally_counter){ 70, 7000 };
	job[0].name = "a\\b\"c\nd";
	job[1].name = "\x01\x7f\xff\xc3\xa4 {},=#";
	print();
	give_to_promtool();
	snapshot = (struct metrics_snapshot){ 0 };
	print();
	give_to_promtool();
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, prepare, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(a_row_is_a_series_for_each_outcome_that_happened),
		FACT(every_outcome_is_there_and_explained),
		FACT(gauges_say_what_the_snapshot_says),
		FACT(late_ranks_have_a_series_each),
		FACT(rates_are_of_jobs_and_tenants),
		FACT(links_say_what_the_kernel_says),
		FACT(what_the_agent_counts_is_there_from_the_start),
		FACT(delays_are_a_histogram),
		FACT(label_values_are_escaped),
		FACT(a_name_may_be_missing),
		FACT(families_are_whole),
		FACT(a_cluster_is_told_where_there_is_one),
		FACT(rows_beyond_the_limit_are_left_out_and_counted),
		FACT(the_largest_text_is_within_its_word),
		FACT(nothing_makes_a_valid_text_too),
		FACT(promtool_has_nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
