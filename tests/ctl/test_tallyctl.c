// SPDX-License-Identifier: GPL-2.0-only
/* What the commands ask of the daemon, what they make of its answers, and how they fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

#define TENANT                                                                                                  \
	"{\"name\":\"red\",\"from\":\"runtime\",\"slots\":1024,\"slots_used\":256,"                             \
	"\"draining\":false,\"group\":\"games\",\"packets_per_second\":200000,\"bytes_per_second\":1250000000," \
	"\"priority\":3,\"ingress\":[\"eth1 vlan 5 source 10.0.0.0/24\"],\"jobs\":1}"
#define OK(result) "{\"ok\":true,\"result\":" result "}"
#define TOKEN "5b1f5b1f5b1f5b1f"

static void every_option_of_a_tenant_is_in_the_request(void **state)
{
	int code = ask(ARGUMENTS("tenant", "add", "red", "--slots", "1024", "--packets-per-second",
				 "200k", "--bytes-per-second", "1.25G", "--priority", "3",
				 "--ingress", "eth1 vlan 5 source 10.0.0.0/24", "--ingress",
				 "eth2"),
		       "{\"do\":\"tenant-add\",\"name\":\"red\",\"slots\":1024,"
		       "\"packets_per_second\":200000,\"bytes_per_second\":1250000000,"
		       "\"priority\":3,\"ingress\":[\"eth1 vlan 5 source 10.0.0.0/24\",\"eth2\"]}",
		       OK(TENANT));

	assert_int_equal(code, 0);
	assert_string_equal(err, "");
	assert_string_equal(out,
			    "TENANT  FROM       SLOTS USED  PACKETS      BYTES  PRIORITY  JOBS  "
			    "GROUP  COMES IN AT\n"
			    "red     runtime  256 of 1,024  200 k/s  10 Gbit/s         3     1  "
			    "games  eth1 vlan 5 source 10.0.0.0/24\n");
}

static void what_is_not_named_is_not_in_the_request(void **state)
{
	assert_int_equal(ask(ARGUMENTS("tenant", "set", "red", "--slots", "8"),
			     "{\"do\":\"tenant-set\",\"name\":\"red\",\"slots\":8}", OK(TENANT)),
			 0);
	assert_int_equal(ask(ARGUMENTS("tenant", "set", "red", "--ingress", "any"),
			     "{\"do\":\"tenant-set\",\"name\":\"red\",\"ingress\":[]}", OK(TENANT)),
			 0);
	assert_int_equal(ask(ARGUMENTS("tenant", "list"), "{\"do\":\"tenant-list\"}", OK("[]")), 0);
	assert_string_equal(out, "no tenants\n");
}

static void quota_shows_and_sets(void **state)
{
	assert_int_equal(ask(ARGUMENTS("quota"), "{\"do\":\"tenant-list\"}", OK("[" TENANT "]")),
			 0);
	assert_has(out, "256 of 1,024");
	assert_int_equal(ask(ARGUMENTS("quota", "red"), "{\"do\":\"tenant-list\",\"name\":\"red\"}",
			     OK("[" TENANT "]")),
			 0);
	assert_int_equal(ask(ARGUMENTS("quota", "red", "--slots", "2k"),
			     "{\"do\":\"tenant-set\",\"name\":\"red\",\"slots\":2000}", OK(TENANT)),
			 0);
	assert_has(out, "256 of 1,024");
	assert_int_equal(run(ARGUMENTS("quota", "--slots", "2k")), 2);
	assert_int_equal(ask(ARGUMENTS("quota"), "{\"do\":\"tenant-list\"}",
			     OK("[{\"name\":\"red\",\"from\":\"runtime\",\"slots\":64,"
				"\"slots_used\":32,\"slots_lent\":1024}]")),
			 0);
	assert_has(out, " 32 of 64, 1,024 on loan ");
}

static void quotas_of_the_cluster_name_who_does_not_hold_them(void **state)
{
#define SHARED \
	"\"name\":\"red\",\"slots\":256,\"packets_per_second\":0,\"bytes_per_second\":0,\"priority\":3"
	assert_int_equal(
		ask(ARGUMENTS("quota", "--cluster"), "{\"do\":\"tenant-list\",\"cluster\":true}",
		    OK("[{" SHARED ",\"jobs\":2,\"nodes\":["
		       "{\"node\":\"n0\",\"slots\":256,\"held\":true,\"own\":false,\"why\":\"\"},"
		       "{\"node\":\"n1\",\"slots\":8,\"held\":false,\"own\":true,\"why\":\"its own\"},"
		       "{\"node\":\"n2\",\"slots\":300,\"held\":true,\"own\":true,\"why\":\"\"}]}]")),
		0);
	assert_has(out, "red       256  2 of 3 nodes  no limit  no limit         3     2  -");
	assert_has(out, "red is not held at n1, with 8 slots of 256: its own\n");
	assert_has(out, "red at n2 is the node's own, with 300 slots: its own limits hold there\n");
	/* Where it comes in at other nodes alone, nothing is missing. */
	assert_int_equal(
		ask(ARGUMENTS("quota", "--cluster"), "{\"do\":\"tenant-list\",\"cluster\":true}",
		    OK("[{" SHARED ",\"ingress\":[\"n0/eth1\"],\"jobs\":2,\"nodes\":["
		       "{\"node\":\"n0\",\"slots\":256,\"held\":true,\"own\":false,\"why\":\"\"},"
		       "{\"node\":\"n1\",\"slots\":0,\"held\":false,\"own\":false,\"apart\":true,"
		       "\"why\":\"elsewhere\"}]}]")),
		0);
	assert_has(out, "red       256  1 of 1 nodes  no limit  no limit         3     2  -      "
			"n0/eth1\n");
	assert_has_not(out, "not held");
	assert_int_equal(ask(ARGUMENTS("quota", "--cluster"),
			     "{\"do\":\"tenant-list\",\"cluster\":true}", OK("[]")),
			 0);
	assert_string_equal(out, "no tenants of the cluster\n");
	assert_int_equal(
		ask(ARGUMENTS("quota", "red", "--slots", "256", "--cluster"),
		    "{\"do\":\"tenant-set\",\"name\":\"red\",\"slots\":256,\"cluster\":true}",
		    OK("{" SHARED "}")),
		0);
	assert_has(out, "red       256  -");
	assert_int_equal(run(ARGUMENTS("quota", "--slots", "2k", "--cluster")), 2);
#undef SHARED
}

static void json_is_the_result_as_it_came(void **state)
{
	assert_int_equal(
		ask(ARGUMENTS("--json", "stats", "--job", "resnet", "--port", "eth1"),
		    "{\"do\":\"stats\",\"job\":\"resnet\",\"port\":\"eth1\"}",
		    OK("{\"Z\":{\"packets\":0,\"bytes\":0},\"A\":[0.1,null,\"\\u00e4\"]}")),
		0);
	assert_string_equal(out, "{\"Z\":{\"packets\":0,\"bytes\":0},\"A\":[0.1,null,\"ä\"]}\n");
}

#define NETWORK                                                                               \
	"{\"cluster\":{\"name\":\"tally\",\"node\":\"n0\"},\"machines\":[{\"kind\":\"node\"," \
	"\"name\":\"n0\"}],\"links\":[],\"ways\":[]}"

/* What a job has on it is two requests. */
static void the_network_is_drawn(void **state)
{
	pid_t pid = program_start(ARGUMENTS("cluster", "train", "--svg"));
	int connection;

	connection = connection_take(pid);
	request_expect(connection, "{\"do\":\"cluster-jobs\",\"name\":\"train\"}");
	answer_give(connection, OK("{\"jobs\":[{\"name\":\"train\",\"root\":\"n0\","
				   "\"tree\":[{\"name\":\"n0\",\"depth\":0}]}]}"));
	connection = connection_take(pid);
	request_expect(connection, "{\"do\":\"topology\"}");
	answer_give(connection, OK(NETWORK));
	assert_int_equal(program_end(pid), 0);
	assert_has(out, "<g class=\"node root\"><title>node n0, ready");
	assert_has(out, "</svg>\n");
	assert_string_equal(err, "");
	assert_int_equal(ask(ARGUMENTS("topology", "--svg"), "{\"do\":\"topology\"}", OK(NETWORK)),
			 0);
	assert_has(out, "<g class=\"node\"><title>node n0, ready");
	assert_int_equal(run(ARGUMENTS("cluster", "--svg")), 2);
	assert_has(err, "cluster: --svg: the name of the job is missing");
}

#define WITH_WAYS(trouble)                                                                        \
	OK("{\"cluster\":{\"name\":\"tally\",\"node\":\"n0\"},\"leader\":\"n0\",\"tenants\":[],"  \
	   "\"jobs\":[{\"name\":\"train\",\"why\":\"\",\"outlook\":\"it stays\",\"weighed\":[],"  \
	   "\"tree\":[],\"ways\":{\"why\":\"the upper one is free\",\"trouble\":\"" trouble "\"," \
	   "\"sums\":[\"n0\",\"n1\"],\"ways\":[{\"worker\":\"10.0.1.1\",\"nodes\":[\"n0\","       \
	   "\"n1\",\"n3\"]},{\"worker\":\"10.0.2.1\",\"nodes\":[\"n3\"]}]}}]}")

static void the_ways_of_a_job_are_shown_and_why_they_do_not_hold(void **state)
{
	const char *ways = "\nnow: it stays\n"
			   "\nways: the upper one is free\nsummed on the way at: n0, n1\n";
	const char *table = "\nWORKER    WAY\n10.0.1.1  n0, n1, n3\n10.0.2.1  n3\n";
	const char *asked = "{\"do\":\"cluster-jobs\",\"name\":\"train\"}";

	assert_int_equal(ask(ARGUMENTS("cluster", "train"), asked, WITH_WAYS("")), 0);
	assert_has(out, ways);
	assert_has(out, table);
	assert_null(strstr(out, "of routing"));
	assert_int_equal(
		ask(ARGUMENTS("cluster", "train"), asked, WITH_WAYS("n2 does not hear n3")), 0);
	assert_has(out,
		   "at: n0, n1\npackets take the ways of routing: n2 does not hear n3\n\nWORKER");
}

/* The simulator takes lines of 4096 bytes. */
static void a_large_network_is_exported_in_short_lines(void **state)
{
	char answer[HARNESS_TEXT_BYTES], name[32];
	size_t used, names = 0;

	used = snprintf(answer, sizeof(answer),
			"{\"ok\":true,\"result\":{\"cluster\":{\"name\":\"tally\","
			"\"node\":\"n0\"},\"links\":[],\"ways\":[],\"machines\":[");
	for (unsigned int i = 0; i < 1000; i++)
		used += snprintf(answer + used, sizeof(answer) - used,
				 "%s{\"kind\":\"host\",\"name\":\"h10.77.10.%u\"}", i ? "," : "",
				 i);
	snprintf(answer + used, sizeof(answer) - used, "]}}");
	assert_int_equal(ask(ARGUMENTS("topology", "--export"), "{\"do\":\"topology\"}", answer),
			 0);
	for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(strlen(line) <= 1000);
		if (*line == '#')
			continue;
		assert_memory_equal(line, "host ", 5);
		for (const char *c = line + 4; *c == ' '; c += strlen(name), names++) {
			snprintf(name, sizeof(name), " h10.77.10.%zu", names);
			assert_memory_equal(c, name, strlen(name));
		}
	}
	assert_int_equal(names, 1000);
}

static void what_has_happened_is_a_table(void **state)
{
	setenv("TZ", "UTC", 1);
	assert_int_equal(
		ask(ARGUMENTS("events"), "{\"do\":\"events\"}",
		    OK("{\"cluster\":{\"name\":\"tally\",\"node\":\"n0\",\"nodes\":3,"
		       "\"store\":\"etcd\",\"heard_s\":0.1,\"troubles\":[\"the store was never "
		       "heard\"]},\"events\":[{\"time_s\":86399.9,"
		       "\"kind\":\"moved\",\"job\":\"train\",\"node\":\"n2\",\"from\":\"n3\","
		       "\"why\":\"it moves: cost 0.5\",\"weighed\":[]},{\"time_s\":86401,"
		       "\"kind\":\"silent\",\"job\":\"\",\"node\":\"n3\",\"from\":\"\","
		       "\"why\":\"gone\\u001b[2J\",\"weighed\":[]}]}")),
		0);
	assert_string_equal(out,
			    "cluster tally, as node n0 of 3; etcd heard 0.1 s ago\n"
			    "the store was never heard\n\n"
			    "TIME                 EVENT   JOB    NODE  BEFORE  WHY\n"
			    "1970-01-01 23:59:59  moved   train  n2    n3      it moves: cost 0.5\n"
			    "1970-01-02 00:00:01  silent  -      n3    -       gone?[2J\n");
}

static void counters_of_nothing_are_shown_only_if_asked_for(void **state)
{
	const char *answer = OK("{\"STALE\":{\"packets\":0,\"bytes\":0},"
				"\"ABSORBED\":{\"packets\":1234567,\"bytes\":9}}");

	assert_int_equal(ask(ARGUMENTS("stats"), "{\"do\":\"stats\"}", answer), 0);
	assert_string_equal(out, "OUTCOME     PACKETS  BYTES  MEANING\n"
				 "ABSORBED  1,234,567      9  added to its slot; other "
				 "contributions are missing\n");
	assert_int_equal(ask(ARGUMENTS("stats", "--all"), "{\"do\":\"stats\"}", answer), 0);
	assert_has(out, "STALE             0");
}

static void a_history_is_a_table_of_samples(void **state)
{
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	assert_int_equal(ask(ARGUMENTS("stats", "--job", "resnet", "--history", "2"),
			     "{\"do\":\"stats\",\"job\":\"resnet\",\"history\":2}",
			     OK("[{\"time_s\":3661.5,\"packets_per_second\":2000,"
				"\"bytes_per_second\":125000,\"chunks_per_second\":500,"
				"\"duplicates_per_second\":0,\"refused_per_second\":20}]")),
			 0);
	assert_string_equal(out, "TIME        RECEIVES            SUMS  AGAIN  REFUSED\n"
				 "01:01:01  1.0 Mbit/s  2.0 k/s  500/s    0/s     20/s\n");
	assert_int_equal(ask(ARGUMENTS("stats", "--port", "eth1", "--history", "600"),
			     "{\"do\":\"stats\",\"port\":\"eth1\",\"history\":600}",
			     OK("[{\"time_s\":3662,\"transmit_bytes_per_second\":250000,"
				"\"transmit_packets_per_second\":30,\"backlog_bytes\":3500}]")),
			 0);
	assert_string_equal(out, "TIME      RECEIVES          SENDS        BACKLOG\n"
				 "01:01:02         -  -  2.0 Mbit/s  30/s   3.5 kB\n");
	assert_int_equal(ask(ARGUMENTS("stats", "--port", "eth1", "--history", "1"),
			     "{\"do\":\"stats\",\"port\":\"eth1\",\"history\":1}", OK("[]")),
			 0);
	assert_string_equal(out, "no samples yet\n");
	assert_int_equal(run(ARGUMENTS("stats", "--job", "resnet", "--history", "601")), 2);
	assert_has(err, "--history 601: must be a number from 1 to 600");
}

static void the_daemons_words_are_the_error(void **state)
{
	assert_int_equal(ask(ARGUMENTS("tenant", "del", "red"),
			     "{\"do\":\"tenant-del\",\"name\":\"red\"}",
			     "{\"ok\":false,\"error\":\"tenant-del: red has 2 jobs: delete them "
			     "first\",\"errno\":\"EBUSY\"}"),
			 1);
	assert_string_equal(err, "tallyctl: tenant-del: red has 2 jobs: delete them first\n");
	assert_string_equal(out, "");
}

static void what_is_no_answer_is_an_error(void **state)
{
	static const char *const answers[] = { "hello",
					       "[]",
					       "{\"ok\":true}",
					       "{\"ok\":false}",
					       "{\"result\":{}}",
					       "{\"ok\":1,\"result\":{}}",
					       "" };

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		assert_int_equal(ask(ARGUMENTS("status"), "{\"do\":\"status\"}", answers[i]), 1);
		assert_has(err, "is not tallyd");
	}
}

static void a_daemon_that_ends_in_mid_answer_is_an_error(void **state)
{
	pid_t pid = program_start(ARGUMENTS("links"));
	int connection = connection_take(pid);

	request_expect(connection, "{\"do\":\"links\"}");
	assert_int_equal(write(connection, "{\"ok\":tr", 8), 8);
	close(connection);
	assert_int_equal(program_end(pid), 1);
	assert_string_equal(err, "tallyctl: tallyd closed the connection\n");
}

static void an_answer_in_single_bytes_is_an_answer(void **state)
{
	static const char answer[] = OK("[]") "\n";
	pid_t pid = program_start(ARGUMENTS("job", "list"));
	int connection = connection_take(pid);

	request_expect(connection, "{\"do\":\"job-list\"}");
	for (size_t i = 0; i + 1 < sizeof(answer); i++)
		assert_int_equal(write(connection, answer + i, 1), 1);
	assert_int_equal(program_end(pid), 0);
	close(connection);
	assert_string_equal(out, "no jobs\n");
}

static void an_answer_of_a_megabyte_is_an_answer(void **state)
{
	pid_t pid = program_start(ARGUMENTS("--json", "job", "list"));
	int connection = connection_take(pid);
	char *text = malloc(1 << 20), *expected;
	size_t n = sprintf(text, "{\"ok\":true,\"result\":[0");

	request_expect(connection, "{\"do\":\"job-list\"}");
	while (n < (1 << 20) - 32)
		n += sprintf(text + n, ",1234567");
	sprintf(text + n, "]}");
	answer_give(connection, text);
	close(connection);
	assert_int_equal(program_end(pid), 0);
	expected = strstr(text, "[0");
	assert_memory_equal(out, expected, sizeof(out) - 1);
	free(text);
}

static void no_daemon_says_what_to_do(void **state)
{
	assert_int_equal(run(ARGUMENTS("--socket", "/nowhere/at/all", "status")), 1);
	assert_has(err, "tallyd is not running: /nowhere/at/all does not exist");
	assert_has(err, "systemctl start tallyd");
	assert_int_equal(run(ARGUMENTS("status", "--socket", "")), 1);
	assert_has(err, "the path must have 1 to 107 bytes");
}

static void a_socket_that_nobody_listens_at_says_so(void **state)
{
	assert_int_equal(close(open(harness_path("out"), O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(run(ARGUMENTS("--socket", harness_path("out"), "status")), 1);
	assert_has(err, "no program listens at");
}

/* --- tokens ---------------------------------------------------------------------------------- */

static void a_token_goes_to_standard_output_alone(void **state)
{
	assert_int_equal(ask(ARGUMENTS("job", "create", "resnet", "--workers", "4", "--tenant",
				       "red", "--window", "64", "--payload", "1408", "--service",
				       "10.77.0.1", "--id", "9", "--tags", "no", "--sealed"),
			     "{\"do\":\"job-create\",\"name\":\"resnet\",\"workers\":4,"
			     "\"tenant\":\"red\",\"window\":64,\"payload\":1408,"
			     "\"service\":\"10.77.0.1\",\"id\":9,\"tags\":false,\"sealed\":true}",
			     OK("{\"name\":\"resnet\",\"id\":9,\"token\":\"" TOKEN "\"}")),
			 0);
	assert_string_equal(out, TOKEN "\n");
	assert_has(err, "number 9");
	assert_has_not(err, TOKEN);
}

static void a_tokens_file_is_its_owners_alone(void **state)
{
	char text[64] = "", path[256];
	struct stat info;
	int fd;

	snprintf(path, sizeof(path), "%s", harness_path("token"));
	umask(0);
	assert_int_equal(ask(ARGUMENTS("job", "token", "resnet", "--token-file", path),
			     "{\"do\":\"job-token\",\"name\":\"resnet\"}",
			     OK("{\"token\":\"" TOKEN "\"}")),
			 0);
	assert_has_not(out, TOKEN);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), strlen(TOKEN "\n"));
	close(fd);
	assert_string_equal(text, TOKEN "\n");
	/* It is never written over: the daemon is not even asked. */
	assert_int_equal(
		run(ARGUMENTS("job", "create", "x", "--workers", "2", "--token-file", path)), 1);
	assert_has(err, "exists");
	unlink(path);
}

static void a_refused_job_leaves_no_file(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s", harness_path("token"));
	assert_int_equal(ask(ARGUMENTS("--json", "job", "create", "x", "--workers", "2",
				       "--token-file", path),
			     "{\"do\":\"job-create\",\"name\":\"x\",\"workers\":2}",
			     "{\"ok\":false,\"error\":\"x is there\",\"errno\":\"EEXIST\"}"),
			 1);
	assert_int_equal(access(path, F_OK), -1);
}

static void json_with_a_tokens_file_has_no_token(void **state)
{
	char path[256], expected[512];

	snprintf(path, sizeof(path), "%s", harness_path("token"));
	assert_int_equal(ask(ARGUMENTS("--json", "job", "create", "x", "--workers", "2",
				       "--token-file", path),
			     "{\"do\":\"job-create\",\"name\":\"x\",\"workers\":2}",
			     OK("{\"name\":\"x\",\"id\":9,\"token\":\"" TOKEN "\"}")),
			 0);
	snprintf(expected, sizeof(expected), "{\"name\":\"x\",\"id\":9,\"token_file\":\"%s\"}\n",
		 path);
	assert_string_equal(out, expected);
	unlink(path);
}

/* --- trees ----------------------------------------------------------------------------------- */

/* A file with this text; its path until the next one. */
static const char *file_with(const char *text)
{
	static char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s", harness_path("file"));
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

#define TREE_NODE "{\"name\":\"a0\",\"address\":\"10.77.0.2\",\"ranks\":\"0-1\"}"

static void a_tree_is_read_from_a_file(void **state)
{
	const char *path = file_with("[" TREE_NODE "]\n");

	assert_int_equal(
		ask(ARGUMENTS("job", "create", "x", "--workers", "2", "--tree", path),
		    "{\"do\":\"job-create\",\"name\":\"x\",\"workers\":2,\"tree\":[" TREE_NODE "]}",
		    OK("{\"name\":\"x\",\"id\":9,\"token\":\"" TOKEN "\"}")),
		0);
	path = file_with("null");
	assert_int_equal(run(ARGUMENTS("job", "create", "x", "--workers", "2", "--tree", path)), 1);
	assert_has(err, "is null; a tree is a list of nodes");
	path = file_with("[{");
	assert_int_equal(run(ARGUMENTS("job", "create", "x", "--workers", "2", "--tree", path)), 1);
	assert_has(err, "line 1, column 2: not JSON");
	path = file_with("[]");
	assert_int_equal(run(ARGUMENTS("job", "create", "x", "--workers", "2", "--tree", path)), 1);
	assert_has(err, "has no node; a tree is a list of nodes");
	unlink(path);
	assert_int_equal(run(ARGUMENTS("job", "create", "x", "--workers", "2", "--tree", "/")), 1);
	assert_has(err, "/: Is a directory");
}

static void documents_are_printed_a_line_each(void **state)
{
	assert_int_equal(ask(ARGUMENTS("job", "documents", "x", "--node", "a0"),
			     "{\"do\":\"job-documents\",\"name\":\"x\",\"node\":\"a0\"}",
			     OK("[{\"job\":\"x\",\"node\":\"a0\"},{\"job\":\"x\"}]")),
			 0);
	assert_string_equal(out, "{\"job\":\"x\",\"node\":\"a0\"}\n{\"job\":\"x\"}\n");
}

static void what_became_of_a_document_is_said(void **state)
{
	const char *path = file_with("{\"job\":\"x\"}");

	assert_int_equal(ask(ARGUMENTS("apply", path, "--tenant", "red"),
			     "{\"do\":\"apply\",\"tenant\":\"red\",\"document\":{\"job\":\"x\"}}",
			     OK("{\"name\":\"x\",\"id\":9,\"epoch\":7,\"running\":true,"
				"\"trouble\":\"\"}")),
			 0);
	assert_string_equal(out, "run 7 of job x is on at this node\n");
	assert_int_equal(ask(ARGUMENTS("apply", path),
			     "{\"do\":\"apply\",\"document\":{\"job\":\"x\"}}",
			     OK("{\"name\":\"x\",\"id\":9,\"epoch\":7,\"running\":false,"
				"\"trouble\":\"10.77.1.1: no neighbour answers\"}")),
			 0);
	assert_has(
		out,
		"begins here when it can: 10.77.1.1: no neighbour answers (tallyctl job show x)");
	path = file_with("[{\"job\":\"x\"}]");
	assert_int_equal(run(ARGUMENTS("apply", path)), 1);
	assert_has(err, "is a list; a document is an object");
	unlink(path);
}

/* --- usage ----------------------------------------------------------------------------------- */

static void wrong_usage_names_what_there_is(void **state)
{
	static const struct {
		const char *words[6];
		const char *says;
	} cases[] = {
		{ { "tallyctl" }, "usage: tallyctl" },
		{ { "tallyctl", "frob" },
		  "frob: unknown command; the commands are status, reload, cordon, drain, uncordon, tenant add," },
		{ { "tallyctl", "tenant" }, "tenant add, tenant set, tenant del, tenant list\n" },
		{ { "tallyctl", "job", "frob" },
		  "job frob: unknown command; the commands are job create, job show" },
		{ { "tallyctl", "--frob" }, "--frob: unknown option; the options are" },
		{ { "tallyctl", "tenant", "add" }, "tenant add: NAME is missing" },
		{ { "tallyctl", "tenant", "add", "a", "b" }, "b: one argument too many" },
		{ { "tallyctl", "tenant", "add", "a", "--window=5" }, "the options are --slots," },
		{ { "tallyctl", "tenant", "add", "a", "--slots" },
		  "--slots: the option needs a value" },
		{ { "tallyctl", "tenant", "add", "a", "--slots=-1" }, "a whole number" },
		{ { "tallyctl", "tenant", "add", "a", "--slots=99999999999G" }, "too big" },
		{ { "tallyctl", "job", "create", "a" }, "job create: --workers N is missing" },
		{ { "tallyctl", "status", "now" }, "the command takes none" },
		{ { "tallyctl", "top", "--interval", "0" },
		  "--interval 0: must be a number from 1 to 3600" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(run(cases[i].words), 2);
		assert_string_equal(out, "");
		assert_has(err, cases[i].says);
	}
}

static void sixty_five_ingress_points_are_too_many(void **state)
{
	const char *words[4 + 2 * 65 + 1] = { "tallyctl", "tenant", "add", "a" };
	int n = 4;

	for (int i = 0; i < 65; i++) {
		words[n++] = "--ingress";
		words[n++] = "eth1";
	}
	assert_int_equal(run(words), 2);
	assert_has(err, "64 times at most");
}

static void help_is_no_error(void **state)
{
	assert_int_equal(run(ARGUMENTS("--help")), 0);
	assert_has(out, "job create NAME");
	assert_int_equal(run(ARGUMENTS("job", "create", "--help")), 0);
	assert_has(out, "--token-file FILE");
	assert_has_not(out, "--ingress");
	assert_int_equal(run(ARGUMENTS("help")), 0);
	assert_has(out, "job create NAME");
	assert_int_equal(run(ARGUMENTS("help", "job", "create")), 0);
	assert_has(out, "--token-file FILE");
	assert_string_equal(err, "");
	assert_int_equal(run(ARGUMENTS("help", "job")), 2);
	assert_has(err, "the commands are job create, ");
}

static void a_number_of_workers_that_no_job_can_have_is_wrong_usage(void **state)
{
	assert_int_equal(run(ARGUMENTS("job", "create", "resnet", "--workers", "0")), 2);
	assert_has(err, "--workers 0: must be a number from 1 to 256");
	assert_int_equal(run(ARGUMENTS("job", "create", "resnet", "--workers", "257")), 2);
	assert_int_equal(run(ARGUMENTS("job", "create", "x", "--workers", "2", "--tags", "maybe")),
			 2);
	assert_has(err, "--tags maybe: must be yes or no");
}

/* --- what is shown --------------------------------------------------------------------------- */

static void a_job_is_shown_with_its_members(void **state)
{
	const char *answer = OK(
		"[{\"name\":\"resnet\",\"id\":7,\"tenant\":\"red\",\"state\":\"forming\","
		"\"workers\":2,\"window\":128,\"payload\":1408,\"epoch\":12,\"slots\":256,"
		"\"sealed\":true,\"service\":\"10.77.0.1\",\"members\":[{\"rank\":0,\"state\":\"joined\","
		"\"address\":\"10.77.1.1:40000\"},{\"rank\":1,\"state\":\"missing\","
		"\"address\":\"\"}],\"missing\":\"1\",\"trouble\":\"rank 1 is torn\"}]");

	assert_int_equal(ask(ARGUMENTS("job", "show", "resnet"),
			     "{\"do\":\"job-list\",\"name\":\"resnet\"}", answer),
			 0);
	assert_has(out, "RANK  STATE    ADDRESS\n"
			"   0  joined   10.77.1.1:40000\n"
			"   1  missing  -\n");
	assert_has(out, "SEALED  SERVICE\n");
	assert_has(out, "yes     10.77.0.1\n\nrank 1 is torn\n\nRANK");
	assert_has_not(out, "late");
	assert_int_equal(ask(ARGUMENTS("job", "show", "resnet"),
			     "{\"do\":\"job-list\",\"name\":\"resnet\"}",
			     OK("[{\"name\":\"resnet\",\"late\":[{\"rank\":3,\"percent\":82},"
				"{\"rank\":11,\"percent\":51,\"node\":\"n7\"}]}]")),
			 0);
	assert_has(out, "\nlate: rank 3 in 82 % of samples\n"
			"late: rank 11 in 51 % of samples (as n7 sees it)\n\n");
	assert_int_equal(ask(ARGUMENTS("job", "show", "x"), "{\"do\":\"job-list\",\"name\":\"x\"}",
			     OK("[]")),
			 1);
	assert_has(err, "there is no job x");
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	assert_int_equal(ask(ARGUMENTS("status"), "{\"do\":\"status\"}",
			     OK("{\"ports\":[{\"name\":\"eth1\",\"mode\":\"generic\","
				"\"why\":\"a\\u001b[2Jb\\u009b5n\"}],\"version\":\"\\u001b[2J\","
				"\"services\":[\"\\u001b[2J\"]}")),
			 0);
	assert_has_not(out, "\033");
	assert_has_not(out, "\302\233");
	assert_has(out, "a?[2Jb");
}

static void an_empty_object_is_shown_without_a_crash(void **state)
{
	static const char *const commands[][2] = { { "status", "status" },
						   { "stats", "stats" },
						   { "links", "links" },
						   { "quota", "tenant-list" } };
	char request[64];

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		snprintf(request, sizeof(request), "{\"do\":\"%s\"}", commands[i][1]);
		assert_int_equal(ask(ARGUMENTS(commands[i][0]), request, OK("{}")), 0);
		assert_int_equal(ask(ARGUMENTS(commands[i][0]), request, OK("[{},[],null]")), 0);
	}
}

static void status_says_what_is_not_as_it_should_be(void **state)
{
	assert_int_equal(
		ask(ARGUMENTS("status"), "{\"do\":\"status\"}",
		    OK("{\"runs\":3,\"runs_in_software\":2,\"runs_borrowing\":1,\"not_saved\":\"s.json: No space\","
		       "\"troubles\":[\"cj suspended\"],\"ports\":[{\"name\":\"eth1\","
		       "\"mode\":\"native\",\"down\":true}]}")),
		0);
	assert_has(out, "3, 2 summed in software, for lack of slots, 1 in borrowed slots");
	assert_has(out, "not saved, tallyd tries again every 10 s: s.json: No space\n");
	assert_has(out, "cj suspended\n");
	assert_has(out, "eth1  native  the link is down, or has no carrier\n");
}

static void a_job_without_slots_looks_like_that(void **state)
{
	assert_int_equal(
		ask(ARGUMENTS("job", "list"), "{\"do\":\"job-list\"}",
		    OK("[{\"name\":\"slow\",\"state\":\"running\",\"in_software\":true}]")),
		0);
	assert_has(out, "in software");
	assert_has_not(out, "running");
	assert_int_equal(ask(ARGUMENTS("job", "show", "slow"),
			     "{\"do\":\"job-list\",\"name\":\"slow\"}",
			     OK("[{\"name\":\"slow\",\"no_slots\":\"in use: 64 by alpha\"}]")),
			 0);
	assert_has(out, "\nin use: 64 by alpha\n");
	assert_int_equal(
		ask(ARGUMENTS("job", "list"), "{\"do\":\"job-list\"}",
		    OK("[{\"name\":\"slow\",\"state\":\"running\",\"in_software\":true,"
		       "\"borrows\":true},{\"name\":\"tree\",\"state\":\"running\","
		       "\"role\":\"inner\",\"borrows\":true},{\"name\":\"next\","
		       "\"state\":\"waiting\",\"role\":\"inner\",\"borrows\":true},{\"name\":"
		       "\"bare\",\"state\":\"running\",\"role\":\"inner\","
		       "\"passes_on\":true}]")),
		0);
	assert_has(out, "borrows slots");
	assert_has(out, "inner, borrows");
	assert_has(out, "inner, waits");
	assert_has(out, "inner, passes on");
	assert_has_not(out, "in software");
}

static void an_inner_node_is_said_to_be_one(void **state)
{
	assert_int_equal(ask(ARGUMENTS("job", "show", "tree"),
			     "{\"do\":\"job-list\",\"name\":\"tree\"}",
			     OK("[{\"name\":\"tree\",\"nodes\":[{\"name\":\"a0\",\"state\":"
				"\"away\",\"trouble\":\"it refuses\"},{\"name\":\"a1\","
				"\"state\":\"told\",\"trouble\":\"\"}]}]")),
			 0);
	assert_has(out, "\na0: it refuses\n");
	assert_has_not(out, "a1: ");
	assert_int_equal(ask(ARGUMENTS("job", "show", "tree"),
			     "{\"do\":\"job-list\",\"name\":\"tree\"}",
			     OK("[{\"name\":\"tree\",\"role\":\"inner\",\"state\":\"running\","
				"\"passes_on\":true}]")),
			 0);
	assert_has(out, "packets pass this inner node as they come");
}

static void a_full_disk_is_a_failure(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), connection;
	pid_t pid = program_start_into(ARGUMENTS("links"), full);

	close(full);
	connection = connection_take(pid);
	request_expect(connection, "{\"do\":\"links\"}");
	answer_give(connection, OK("[]"));
	close(connection);
	assert_int_equal(program_end(pid), 1);
	assert_has(err, "standard output: No space left on device");
}

/* --- trace ----------------------------------------------------------------------------------- */

#define EVENT                                                                                    \
	"{\"time_ns\":5000000000,\"outcome\":\"ABSORBED\",\"job\":7,\"name\":\"\",\"epoch\":12," \
	"\"seq\":3,\"ranks\":\"0-1\",\"port\":\"eth1\",\"kind\":\"contribution\",\"bytes\":1500}"

static pid_t trace_start(int *ret_connection)
{
	pid_t pid = program_start(ARGUMENTS("trace", "--every", "10", "--job", "resnet"));

	*ret_connection = connection_take(pid);
	request_expect(*ret_connection, "{\"do\":\"trace\",\"job\":\"resnet\",\"every\":10}");
	answer_give(*ret_connection, OK("{}"));
	return pid;
}

/* Until the program has written this to its file. */
static void await_output(const char *part)
{
	for (int i = 0; i < HARNESS_WAIT_MS; i++) {
		int fd = open(harness_path("out"), O_RDONLY);
		ssize_t n = read(fd, out, sizeof(out) - 1);

		close(fd);
		out[n > 0 ? n : 0] = '\0';
		if (strstr(out, part))
			return;
		poll(NULL, 0, 1);
	}
	fail_msg("'%s' never came; there is '%s'", part, out);
}

static void trace_ends_well_at_interrupt(void **state)
{
	int connection;
	pid_t pid = trace_start(&connection);

	answer_give(connection, EVENT);
	answer_give(connection, "{\"lost\":3}");
	await_output("3 packets are missing here");
	kill(pid, SIGINT);
	assert_int_equal(program_end(pid), 0);
	assert_has(out, "ABSORBED     7                   12          3  0-1");
	assert_string_equal(err, "");
	close(connection);
}

static void trace_says_that_the_daemon_has_gone(void **state)
{
	int connection;
	pid_t pid = trace_start(&connection);

	answer_give(connection, EVENT);
	close(connection);
	assert_int_equal(program_end(pid), 1);
	assert_has(out, "ABSORBED");
	assert_has(err, "closed the connection");
}

static void trace_ends_when_its_reader_does(void **state)
{
	int output[2], connection;
	char text[4096];
	pid_t pid;

	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	pid = program_start_into(ARGUMENTS("trace"), output[1]);
	close(output[1]);
	connection = connection_take(pid);
	request_expect(connection, "{\"do\":\"trace\"}");
	answer_give(connection, OK("{}"));
	answer_give(connection, EVENT);
	assert_true(read(output[0], text, sizeof(text)) > 0);
	close(output[0]); /* and no other packet ever comes */
	assert_int_equal(program_end(pid), 0);
	close(connection);
}

/* --- completion ------------------------------------------------------------------------------ */

#define NAMES OK("[{\"name\":\"red\"},{\"name\":\"rose\"},{\"name\":\"blue\"}]")

/* Presses the key behind these words, in bash; request NULL: the daemon is not asked. */
static void complete(const char *words, const char *request, const char *answer)
{
	const char *build = getenv("TALLY_BUILD");
	char script[1024];
	const char *const arguments[] = { "bash", "-c", script, NULL };

	snprintf(script, sizeof(script),
		 "source completion/tallyctl.bash; COMP_WORDS=(%s/tests/ctl/tallyctl %s);"
		 "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tallyctl; echo \"${COMPREPLY[*]}\"",
		 build ? build : "build", words);
	if (request)
		assert_int_equal(ask(arguments, request, answer), 0);
	else
		assert_int_equal(run(arguments), 0);
	assert_string_equal(err, "");
}

static void the_key_completes_commands(void **state)
{
	complete("''", NULL, NULL);
	assert_string_equal(
		out,
		"status reload cordon drain uncordon tenant quota job apply stats links top cluster events topology trace doctor help\n");
	complete("tenant ''", NULL, NULL);
	assert_string_equal(out, "add set del list\n");
	complete("--json job cr", NULL, NULL);
	assert_string_equal(out, "create\n");
	complete("frob ''", NULL, NULL);
	assert_string_equal(out, "\n");
}

static void the_key_completes_options_that_are_not_there_yet(void **state)
{
	complete("quota red --slots 5 --p", NULL, NULL);
	assert_string_equal(out, "--packets-per-second --priority\n");
	complete("quota --s", NULL, NULL);
	assert_string_equal(out, "--slots --socket\n");
	complete("quota --slots 5 --s", NULL, NULL);
	assert_string_equal(out, "--socket\n");
	complete("quota --ingress eth1 --i", NULL, NULL);
	assert_string_equal(out, "--ingress\n");
}

static void the_key_completes_names_that_the_daemon_has(void **state)
{
	complete("tenant set r", "{\"do\":\"tenant-list\"}", NAMES);
	assert_string_equal(out, "red rose\n");
	complete("stats --tenant = b", "{\"do\":\"tenant-list\"}", NAMES);
	assert_string_equal(out, "blue\n");
	complete("job show ''", "{\"do\":\"job-list\"}", NAMES);
	assert_string_equal(out, "red rose blue\n");
	complete("stats --port e", "{\"do\":\"status\"}",
		 OK("{\"ports\":[{\"name\":\"eth1\"},{\"name\":\"eth2\"}]}"));
	assert_string_equal(out, "eth1 eth2\n");
	complete("tenant set ''", "{\"do\":\"tenant-list\"}", "no JSON");
	assert_string_equal(out, "\n");
	complete("tenant set red ''", NULL, NULL); /* it takes one */
	assert_string_equal(out, "\n");
	complete("tenant add ''", NULL, NULL); /* a new name: nobody knows it */
	assert_string_equal(out, "\n");
}

static void the_key_completes_files(void **state)
{
	complete("job create x --token-file completion/tally", NULL, NULL);
	assert_string_equal(out, "completion/tallyctl.bash\n");
}

/* --- doctor ---------------------------------------------------------------------------------- */

/* doctor, of a daemon that answers so; then of a port's counters, at each of so many readings. */
static int doctor_read(const char *status, const char *jobs, const char *tenants, const char *top,
		       const char *port, const char *const *counters, int readings)
{
	static const char *const verb[] = { "status", "job-list", "tenant-list", "top" };
	const char *const answer[] = { status, jobs, tenants, top };
	pid_t pid = program_start(ARGUMENTS("doctor"));
	int connection = connection_take(pid), code;
	char request[64];

	for (int i = 0; i < 4; i++) {
		snprintf(request, sizeof(request), "{\"do\":\"%s\"}", verb[i]);
		request_expect(connection, request);
		answer_give(connection, answer[i]);
	}
	for (int i = 0; i < readings; i++) {
		snprintf(request, sizeof(request), "{\"do\":\"stats\",\"port\":\"%s\"}", port);
		request_expect(connection, request);
		answer_give(connection, counters[i]);
	}
	code = program_end(pid);
	close(connection);
	return code;
}

static int doctor_told(const char *status, const char *jobs, const char *tenants, const char *top)
{
	return doctor_read(status, jobs, tenants, top, "", NULL, 0);
}

static void doctor_knows_a_service_address_that_is_not_ours(void **state)
{
	assert_int_equal(doctor_read(OK("{\"version\":\"0\",\"services\":[\"127.0.0.1\","
					"\"192.0.2.7\"],\"ports\":[{\"name\":\"nosuch0\"}]}"),
				     OK("[]"), OK("[]"), OK("{}"), "nosuch0",
				     (const char *const[]){ OK("{}") }, 1),
			 1);
	assert_has(out, "fail  service     service address 192.0.2.7 is not an address");
	assert_has(out, "ip address add 192.0.2.7/32 dev lo");
	assert_has(out,
		   "warn  service     service address 127.0.0.1 is this machine's own: workers");
	assert_has(out, "nosuch0: no such interface");
	assert_has(out, "tallyd has version 0, but this tallyctl has version ");
}

static void doctor_knows_a_node_that_workers_cannot_send_to(void **state)
{
	const char *none = OK("[]");

	assert_int_equal(doctor_told(OK("{\"version\":\"0\",\"services\":[],\"ports\":[]}"), none,
				     none, OK("{}")),
			 1);
	assert_has(out, "fail  service     the node has no service address");
	assert_has_not(out, "all service addresses");
	assert_int_equal(doctor_told(OK("{\"version\":\"0\",\"services\":[\"2001:db8::7\"],"
					"\"ports\":[]}"),
				     none, none, OK("{}")),
			 1);
	assert_has(out, "ip address add 2001:db8::7/128 dev lo");
	assert_int_equal(doctor_told(OK("{\"version\":\"0\",\"services\":[\"127.0.0.1\"],"
					"\"ports\":[]}"),
				     none, none, OK("{}")),
			 0);
	assert_has(out, "ok    service     all service addresses are addresses of this machine");
}

#define NODE(maps) \
	OK("{\"version\":\"0\",\"services\":[\"127.0.0.1\"],\"ports\":[],\"maps\":{" maps "}}")

static void doctor_knows_maps_that_are_full_or_soon_will_be(void **state)
{
	const char *none = OK("[]");

	doctor_told(NODE("\"gates\":{\"used\":89,\"max\":100}"), none, none, OK("{}"));
	assert_has(out, "ok    maps        the maps have room");
	doctor_told(NODE("\"gates\":{\"used\":90,\"max\":100},\"jobs\":{\"used\":1,\"max\":9}"),
		    none, none, OK("{}"));
	assert_has(out, "warn  maps        map gates has 90 of 100 entries: new runs will soon be");
	assert_has_not(out, "the maps have room");
	assert_has_not(out, "map jobs");
	doctor_told(NODE("\"children\":{\"used\":100,\"max\":100}"), none, none, OK("{}"));
	assert_has(out, "fail  maps        map children has 100 of 100 entries: new runs are ref");
}

static void doctor_knows_jobs_whose_ranks_are_missing_for_minutes(void **state)
{
	const char *jobs = OK("[{\"name\":\"new\",\"missing\":\"1\",\"incomplete_s\":119},"
			      "{\"name\":\"old\",\"missing\":\"2-3\",\"incomplete_s\":180},"
			      "{\"name\":\"gone\",\"missing\":\"\",\"incomplete_s\":121}]");

	doctor_told(NODE(), jobs, OK("[]"), OK("{}"));
	assert_has(out, "warn  ranks       job old: the others wait for ranks 2-3, for 3 minutes");
	assert_has(out, "warn  ranks       job gone: ranks of the run have gone, for 2 minutes");
	assert_has_not(out, "job new");
}

static void doctor_knows_jobs_whose_packets_are_refused(void **state)
{
	doctor_told(NODE(), OK("[]"), OK("[]"),
		    OK("{\"jobs\":[{\"name\":\"few\",\"refused_per_second\":0.5},"
		       "{\"name\":\"many\",\"refused_per_second\":7}]}"));
	assert_has(out, "warn  refused     job many: 7 packets a second are refused");
	assert_has_not(out, "job few");
}

/* Counters of packets that no job's gate lets in, and of others. */
#define PORT(other_port, forged, over_rate)                \
	OK("{\"OTHER_PORT\":{\"packets\":" other_port "}," \
	   "\"FORGED\":{\"packets\":" forged "},"          \
	   "\"FOREIGN\":{\"packets\":" over_rate "},"      \
	   "\"OVER_RATE\":{\"packets\":" over_rate "}}")

static void doctor_knows_ports_where_what_nobody_may_send_comes_in(void **state)
{
	const char *status = OK("{\"version\":\"0\",\"services\":[\"127.0.0.1\"],"
				"\"ports\":[{\"name\":\"nosuch0\"}]}");
	const char *none = OK("[]"), *top = OK("{\"interval_s\":1}");
	const char *const rising[] = { PORT("3", "40", "1"), PORT("3", "40", "2"),
				       PORT("3", "51", "3"), PORT("4", "51", "4") };
	const char *const never[] = { PORT("0", "0", "9") };

	doctor_read(status, none, none, top, "nosuch0", rising, 4);
	assert_has(out, "warn  refused     port nosuch0: 1 OTHER_PORT, 11 FORGED packets were "
			"refused while");
	assert_has_not(out, "OVER_RATE");
	doctor_read(status, none, none, OK("{}"), "nosuch0", rising, 1); /* no more come */
	assert_has_not(out, "refused");
	doctor_read(status, none, none, top, "nosuch0", never, 1);
	assert_has_not(out, "refused");
}

static void doctor_knows_what_operators_and_files_have_done(void **state)
{
	const char *jobs = OK("[{\"name\":\"slow\",\"tenant\":\"red\",\"in_software\":true},"
			      "{\"name\":\"fast\",\"in_software\":false}]");
	const char *none = OK("[]");

	doctor_told(OK("{\"version\":\"0\",\"services\":[],\"cordoned\":true,"
		       "\"metrics\":\"192.0.2.1:9464\",\"config\":\"/nowhere/tallyd.yaml\","
		       "\"troubles\":[\"cj is suspended\"]}"),
		    jobs, none, OK("{}"));
	assert_has(out, "warn  cordon      the node is cordoned: no run begins\n");
	assert_has(out, "tallyctl uncordon\n");
	assert_has(out, "fail  metrics     metrics: 192.0.2.1 is not an address of this machine");
	assert_has(out, "warn  config      /nowhere/tallyd.yaml: No such file or directory. The ");
	assert_has(out, "warn  software    job slow is summed in software");
	assert_has_not(out, "job fast");
	assert_has(out, "fail  data plane  cj is suspended\n");
	doctor_told(OK("{\"version\":\"0\",\"services\":[],\"metrics\":\"[::]:9464\"}"), none, none,
		    OK("{}"));
	assert_has_not(out, "metrics");
	assert_has_not(out, "cordon");
}

/* A network of our own: v0 and v1 are the ends of a veth. False: we are not root. */
static bool network_make(int *ret_home)
{
	*ret_home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET) < 0)
		return false;
	assert_int_equal(system("ip link add v0 type veth peer name v1 && ip link set v0 up && "
				"ip link set v1 up && ip link set lo up"),
			 0);
	return true;
}

static void network_leave(int home)
{
	assert_int_equal(setns(home, CLONE_NEWNET), 0);
	close(home);
}

/* doctor, of a daemon with port v0 in generic mode and this tenant. */
static int doctor(const char *tenants)
{
	return doctor_read(OK("{\"version\":\"0\",\"services\":[\"127.0.0.1\"],\"ports\":"
			      "[{\"name\":\"v0\",\"mode\":\"generic\",\"why\":\"so\"}]}"),
			   OK("[{\"name\":\"big\",\"payload\":1472,\"service\":\"fd77::1\"},"
			      "{\"name\":\"found\",\"payload\":3392,\"payload_fits\":true,"
			      "\"service\":\"10.77.0.1\"}]"),
			   tenants, OK("{}"), "v0", (const char *const[]){ OK("{}") }, 1);
}

static void doctor_knows_a_tenants_vlan_that_xdp_cannot_see(void **state)
{
	const char *tagged = OK("[{\"name\":\"red\",\"ingress\":[\"v1\",\"v0 vlan 5\"]}]");
	const char *untagged = OK("[{\"name\":\"red\",\"ingress\":[\"v0 vlan 0 source "
				  "10.0.0.0/8\",\"v01 vlan 5\",\"v0\"]}]");
	int home;

	if (!network_make(&home))
		skip();
	assert_int_equal(doctor(tagged), 1);
	assert_has(out, "and messages of tenant red have one");
	assert_has(out, "ethtool -K v1 txvlan off");
	assert_has(out, "driver veth, generic XDP (in the stack) instead of native: so");
	assert_has(out, "job big with payload 1472 needs 1584");
	assert_has_not(out, "job found");
	assert_int_equal(doctor(untagged), 0);
	assert_has_not(out, "txvlan");
	assert_has(out, "ethtool -K v1 tx-udp-segmentation off");
	assert_int_equal(system("ethtool -K v1 txvlan off tx-udp-segmentation off >/dev/null"), 0);
	assert_int_equal(doctor(tagged), 0);
	assert_has_not(out, "ethtool -K v1");
	assert_has(out, "the other end, v1, sends messages one by one");
	network_leave(home);
}

static void doctor_knows_a_veth_whose_other_end_loses_results(void **state)
{
	const char *status = OK("{\"version\":\"0\",\"services\":[\"127.0.0.1\"],\"ports\":"
				"[{\"name\":\"v0\",\"mode\":\"native\"}]}");
	const char *none = OK("[]"), *const counters[] = { OK("{}") };
	int home;

	if (!network_make(&home))
		skip();
	assert_int_equal(system("ethtool -K v1 gro off >/dev/null"), 0);
	assert_int_equal(doctor_read(status, none, none, OK("{}"), "v0", counters, 1), 1);
	assert_has(out,
		   "fail  peer        the other end, v1, has no XDP program: a veth with native");
	assert_has(out, "tally-node attach v1 --slots 2 --pin /sys/fs/bpf/tally-v0-v1");
	assert_int_equal(system("ethtool -K v1 gro on >/dev/null"), 0);
	assert_int_equal(doctor_read(status, none, none, OK("{}"), "v0", counters, 1), 1);
	assert_has(out, "(XDP_TX)");
	network_leave(home);
}

static void doctor_names_who_has_our_udp_port(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(31249) };
	int home, fd;

	if (!network_make(&home))
		skip();
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		fail_msg("port 31249 cannot be had");
	doctor(OK("[]"));
	assert_has(out, "UDP port 31249 is in use by test_tallyctl (process");
	close(fd);
	doctor(OK("[]"));
	assert_has(out, "no other program uses UDP or TCP port 31249");
	network_leave(home);
}

#define fact(name) cmocka_unit_test_teardown(name, harness_clear)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		fact(every_option_of_a_tenant_is_in_the_request),
		fact(what_is_not_named_is_not_in_the_request),
		fact(quota_shows_and_sets),
		fact(quotas_of_the_cluster_name_who_does_not_hold_them),
		fact(json_is_the_result_as_it_came),
		fact(the_network_is_drawn),
		fact(the_ways_of_a_job_are_shown_and_why_they_do_not_hold),
		fact(a_large_network_is_exported_in_short_lines),
		fact(what_has_happened_is_a_table),
		fact(counters_of_nothing_are_shown_only_if_asked_for),
		fact(a_history_is_a_table_of_samples),
		fact(the_daemons_words_are_the_error),
		fact(what_is_no_answer_is_an_error),
		fact(a_daemon_that_ends_in_mid_answer_is_an_error),
		fact(an_answer_in_single_bytes_is_an_answer),
		fact(an_answer_of_a_megabyte_is_an_answer),
		fact(no_daemon_says_what_to_do),
		fact(a_socket_that_nobody_listens_at_says_so),
		fact(a_token_goes_to_standard_output_alone),
		fact(a_tokens_file_is_its_owners_alone),
		fact(a_refused_job_leaves_no_file),
		fact(json_with_a_tokens_file_has_no_token),
		fact(a_tree_is_read_from_a_file),
		fact(documents_are_printed_a_line_each),
		fact(what_became_of_a_document_is_said),
		fact(wrong_usage_names_what_there_is),
		fact(sixty_five_ingress_points_are_too_many),
		fact(help_is_no_error),
		fact(a_number_of_workers_that_no_job_can_have_is_wrong_usage),
		fact(a_job_is_shown_with_its_members),
		fact(control_characters_do_not_reach_the_terminal),
		fact(an_empty_object_is_shown_without_a_crash),
		fact(a_full_disk_is_a_failure),
		fact(trace_ends_well_at_interrupt),
		fact(trace_says_that_the_daemon_has_gone),
		fact(trace_ends_when_its_reader_does),
		fact(the_key_completes_commands),
		fact(the_key_completes_options_that_are_not_there_yet),
		fact(the_key_completes_names_that_the_daemon_has),
		fact(the_key_completes_files),
		fact(doctor_knows_a_tenants_vlan_that_xdp_cannot_see),
		fact(doctor_names_who_has_our_udp_port),
		fact(doctor_knows_a_service_address_that_is_not_ours),
		fact(doctor_knows_a_node_that_workers_cannot_send_to),
		fact(doctor_knows_a_veth_whose_other_end_loses_results),
		fact(doctor_knows_maps_that_are_full_or_soon_will_be),
		fact(doctor_knows_jobs_whose_ranks_are_missing_for_minutes),
		fact(doctor_knows_what_operators_and_files_have_done),
		fact(status_says_what_is_not_as_it_should_be),
		fact(a_job_without_slots_looks_like_that),
		fact(an_inner_node_is_said_to_be_one),
		fact(doctor_knows_jobs_whose_packets_are_refused),
		fact(doctor_knows_ports_where_what_nobody_may_send_comes_in),
	};

	return cmocka_run_group_tests(tests, harness_up, harness_down);
}
