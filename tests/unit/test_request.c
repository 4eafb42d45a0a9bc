// SPDX-License-Identifier: GPL-2.0-only
/* Requests on the control socket: what is taken, what is refused and why, and what is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "agent/core/request.h"
#include "agent/dataplane/dataplane.h"

static struct request q;
static struct why why;

/* From an exact copy on the heap, so that a step past its end is seen. */
static int parse_bytes(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int r;

	memcpy(copy, text, length);
	memset(&q, 0xee, sizeof(q));
	r = request_parse(copy, length, &q, &why);
	free(copy);
	return r;
}

static void taken(const char *text)
{
	if (parse_bytes(text, strlen(text)) < 0)
		fail_msg("%s", why.text);
}

static void refused_with(int error, const char *text, size_t length, const char *reason)
{
	struct request untouched;

	memset(&untouched, 0xee, sizeof(untouched));
	assert_int_equal(parse_bytes(text, length), error);
	assert_string_equal(why.text, reason);
	assert_memory_equal(&q, &untouched, sizeof(q));
}

static void refused(const char *text, const char *reason)
{
	refused_with(-EINVAL, text, strlen(text), reason);
}

static void every_verb_has_its_name_and_is_found_by_it(void **state)
{
	char text[160];

	for (unsigned int verb = 0; verb < REQUEST_VERB_COUNT; verb++) {
		/* What any of them needs is needed by it, or refused by name. */
		snprintf(text, sizeof(text), "{\"do\": \"%s\"}", request_verb_name(verb));
		if (parse_bytes(text, strlen(text)) == 0)
			assert_int_equal(q.verb, verb);
		else
			assert_memory_equal(why.text, request_verb_name(verb),
					    strlen(request_verb_name(verb)));
	}
}

#define KEY "000102030405060708090a0b0c0d0e0f"
#define DOCUMENT                                                                                   \
	"\"job\":\"j\",\"node\":\"a0\",\"address\":\"10.77.0.2\",\"root\":\"10.77.0.1\",\"id\":7," \
	"\"epoch\":9,\"window\":64,\"payload\":128,\"workers\":4,\"ranks\":[{\"rank\":1,"          \
	"\"address\":\"10.77.1.1:40000\"}],\"nodes\":[{\"name\":\"b0\",\"address\":\"10.77.0.3\"," \
	"\"ranks\":\"2-3\"}]"

static void who_may_ask_is_known(void **state)
{
	static const enum request_right right[REQUEST_VERB_COUNT] = {
		[REQUEST_RELOAD] = REQUEST_OPERATOR,	  [REQUEST_CORDON] = REQUEST_OPERATOR,
		[REQUEST_UNCORDON] = REQUEST_OPERATOR,	  [REQUEST_JOB_RESTART] = REQUEST_OF_JOB,
		[REQUEST_JOB_KICK] = REQUEST_OF_JOB,	  [REQUEST_TENANT_ADD] = REQUEST_OPERATOR,
		[REQUEST_TENANT_SET] = REQUEST_OPERATOR,  [REQUEST_TENANT_DEL] = REQUEST_OPERATOR,
		[REQUEST_JOB_CREATE] = REQUEST_OF_JOB,	  [REQUEST_JOB_TOKEN] = REQUEST_OF_JOB,
		[REQUEST_JOB_ROTATE] = REQUEST_OF_JOB,	  [REQUEST_JOB_DEL] = REQUEST_OF_JOB,
		[REQUEST_TRACE] = REQUEST_OPERATOR,	  [REQUEST_APPLY] = REQUEST_OPERATOR,
		[REQUEST_JOB_DOCUMENTS] = REQUEST_OF_JOB, [REQUEST_JOB_PLACE] = REQUEST_OPERATOR,
	};

	for (unsigned int verb = 0; verb < REQUEST_VERB_COUNT; verb++)
		assert_int_equal(request_kinds[verb].right, right[verb]);
}

static void a_tenant_is_read_whole(void **state)
{
	taken("{\"do\": \"tenant-add\", \"name\": \"red\", \"slots\": 262144,"
	      " \"packets_per_second\": 1000000000000, \"bytes_per_second\": 7, \"priority\": 255,"
	      " \"ingress\": [\"eth1 vlan 5 source 10.77.1.0/24\", \"eth2\"]}\n");
	assert_int_equal(q.verb, REQUEST_TENANT_ADD);
	assert_int_equal(q.given, REQUEST_NAME | REQUEST_SLOTS | REQUEST_PACKETS_PER_SECOND |
					  REQUEST_BYTES_PER_SECOND | REQUEST_PRIORITY |
					  REQUEST_INGRESS);
	assert_string_equal(q.tenant.name, "red");
	assert_int_equal(q.tenant.slots, DATAPLANE_SLOTS_MAX);
	assert_true(q.tenant.packets_per_second == TENANT_RATE_MAX);
	assert_int_equal(q.tenant.bytes_per_second, 7);
	assert_int_equal(q.tenant.priority, 255);
	assert_int_equal(q.tenant.points, 2);
	assert_int_equal(q.tenant.point[0].vlan, 5);
	assert_string_equal(q.tenant.point[1].port, "eth2");
}

static void what_is_not_named_is_not_given(void **state)
{
	taken("{\"do\":\"tenant-set\",\"name\":\"red\",\"slots\":0,\"ingress\":[]}");
	assert_int_equal(q.verb, REQUEST_TENANT_SET);
	assert_int_equal(q.given, REQUEST_NAME | REQUEST_SLOTS | REQUEST_INGRESS);
	assert_int_equal(q.tenant.points, 0);
	taken("{\"do\":\"tenant-set\",\"name\":\"red\"}");
	assert_int_equal(q.given, REQUEST_NAME);
}

static void a_job_is_read_whole(void **state)
{
	const struct sockaddr_in6 *a = (const void *)&q.job.service;

	taken("{\"do\":\"job-create\",\"name\":\"r.1\",\"workers\":256,\"tenant\":\"red\","
	      "\"window\":1024,\"payload\":3392,\"service\":\"fd77::1\",\"id\":4294967295,\"tags\":false,"
	      "\"sealed\":true}");
	assert_false(q.job.tags);
	assert_true(q.job.sealed);
	assert_int_equal(q.verb, REQUEST_JOB_CREATE);
	assert_string_equal(q.job.name, "r.1");
	assert_int_equal(q.job.workers, 256);
	assert_string_equal(q.job.tenant, "red");
	assert_int_equal(q.job.window, 1024);
	assert_int_equal(q.job.payload_bytes, 3392);
	assert_int_equal(a->sin6_family, AF_INET6);
	assert_int_equal(ntohs(a->sin6_port), TALLY_UDP_PORT);
	assert_true(q.job.id == UINT32_MAX);
	taken("{\"do\":\"job-create\",\"name\":\"r\",\"workers\":1}");
	assert_int_equal(q.given, REQUEST_NAME | REQUEST_WORKERS);
	assert_true(q.job.tags && !q.job.sealed);
	assert_string_equal(q.job.tenant, "");
	assert_int_equal(q.job.window, 0);
	assert_int_equal(q.job.service.ss_family, AF_UNSPEC);
}

static void filters_are_read(void **state)
{
	taken("{\"do\":\"tenant-list\",\"name\":\"red\"}");
	assert_string_equal(q.filter.tenant, "red");
	taken("{\"do\":\"job-list\",\"name\":\"j\",\"tenant\":\"red\"}");
	assert_string_equal(q.filter.job, "j");
	assert_string_equal(q.filter.tenant, "red");
	taken("{\"do\":\"stats\",\"job\":\"j\",\"tenant\":\"t\",\"port\":\"eth1\"}");
	assert_string_equal(q.filter.job, "j");
	assert_string_equal(q.filter.tenant, "t");
	assert_string_equal(q.filter.port, "eth1");
	assert_int_equal(q.filter.history, 0);
	taken("{\"do\":\"stats\",\"job\":\"j\",\"history\":600}");
	assert_int_equal(q.filter.history, 600);
	taken("{\"do\":\"trace\",\"every\":2147483648,\"job\":\"j\"}");
	assert_true(q.filter.every == 1U << 31);
	assert_string_equal(q.filter.job, "j");
	taken("{\"do\":\"trace\"}");
	assert_int_equal(q.filter.every, 1);
	taken("{\"do\":\"job-token\",\"name\":\"j\"}");
	assert_string_equal(q.name, "j");
	taken("{\"do\":\"job-kick\",\"name\":\"j\",\"rank\":255}");
	assert_string_equal(q.kick.job, "j");
	assert_int_equal(q.kick.rank, 255);
}

/* Every window, every payload: exactly those that the wire knows. */
static void windows_and_payloads_are_those_of_the_wire(void **state)
{
	char text[128];

	for (unsigned int n = 0; n < 4000; n++) {
		bool window = n && n <= 1024 && !(n & (n - 1));
		bool payload = n && n <= 3392 && n % 64 == 0;

		snprintf(text, sizeof(text),
			 "{\"do\":\"job-create\",\"name\":\"r\",\"workers\":1,\"window\":%u}", n);
		assert_int_equal(parse_bytes(text, strlen(text)), window ? 0 : -EINVAL);
		snprintf(text, sizeof(text),
			 "{\"do\":\"job-create\",\"name\":\"r\",\"workers\":1,\"payload\":%u}", n);
		assert_int_equal(parse_bytes(text, strlen(text)), payload ? 0 : -EINVAL);
	}
}

#define VERBS                                                                                                         \
	"status, reload, cordon, uncordon, tenant-list, tenant-add, tenant-set, tenant-del, job-list, "               \
	"job-create, job-token, job-rotate, job-del, job-restart, job-kick, job-documents, job-place, apply, stats, " \
	"links, top, topology, cluster-jobs, events and trace"

static void verbs_and_keys_that_are_wrong_hear_what_there_is(void **state)
{
	refused("{}", "key 'do' is missing; one of " VERBS);
	refused("{\"do\":\"tenant-ad\"}",
		"do: 'tenant-ad': there is no such request; there are " VERBS);
	refused("{\"do\":7}", "do: '7': there is no such request; there are " VERBS);
	refused("{\"do\":\"tenant-add\",\"name\":\"red\",\"slot\":1024}",
		"tenant-add: slot: there is no such key; there are name, slots, "
		"packets_per_second, bytes_per_second, priority, group, ingress and cluster");
	refused("{\"do\":\"links\",\"na\\nme\":\"red\"}",
		"links: na?me: there is no such key; there is none");
	refused("{\"do\":\"tenant-del\"}", "tenant-del: name: is needed");
	refused("{\"do\":\"job-create\",\"name\":\"j\"}", "job-create: workers: is needed");
}

static void values_that_are_wrong_hear_what_is_allowed(void **state)
{
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":0}",
		"job-create: workers: '0': a whole number from 1 to 256");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":257}",
		"job-create: workers: '257': a whole number from 1 to 256");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":1.5}",
		"job-create: workers: '1.5': a whole number from 1 to 256");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":\"4\"}",
		"job-create: workers: '4': a whole number from 1 to 256");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":1,\"id\":-1}",
		"job-create: id: '-1': a whole number from 0 to 4294967295");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":1,\"id\":4294967296}",
		"job-create: id: '4294967296': a whole number from 0 to 4294967295");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":1,\"window\":100}",
		"job-create: window: '100': a power of two from 1 to 1024");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":1,\"payload\":65}",
		"job-create: payload: '65': a multiple of 64 from 64 to 3392 (bytes)");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":1,\"service\":\"10.0.0.1:5\"}",
		"job-create: service: '10.0.0.1:5': an address without port, such as 10.77.0.1 or "
		"fd77::1");
	refused("{\"do\":\"job-del\",\"name\":\"-j\"}",
		"job-del: name: '-j': 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit");
	refused("{\"do\":\"job-del\",\"name\":null}",
		"job-del: name: 'null': 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit");
	refused("{\"do\":\"job-kick\",\"name\":\"j\",\"rank\":256}",
		"job-kick: rank: '256': a whole number from 0 to 255");
	refused("{\"do\":\"job-kick\",\"name\":\"j\"}", "job-kick: rank: is needed");
	refused("{\"do\":\"stats\",\"history\":601}",
		"stats: history: '601': a whole number from 1 to 600");
	refused("{\"do\":\"stats\",\"port\":\"a/b\"}",
		"stats: port: 'a/b': the name of an interface");
	refused("{\"do\":\"trace\",\"every\":0}",
		"trace: every: '0': a whole number from 1 to 2147483648");
	refused("{\"do\":\"trace\",\"every\":2147483649}",
		"trace: every: '2147483649': a whole number from 1 to 2147483648");
	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"packets_per_second\":1000000000001}",
		"tenant-add: packets_per_second: '1000000000001': a whole number from 0 to "
		"1000000000000");
	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"priority\":256}",
		"tenant-add: priority: '256': a whole number from 0 to 255");
	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"slots\":262145}",
		"tenant-add: slots: '262145': a whole number from 0 to 262144");
}

static void ingress_points_are_refused_by_their_place(void **state)
{
	char many[512];
	size_t used;

	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"ingress\":[\"eth1\",\"eth2 vlan 5000\"]}",
		"tenant-add: ingress[1]: vlan '5000': a number from 0 (untagged) to 4094");
	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"ingress\":\"eth1\"}",
		"tenant-add: ingress: 'eth1': a list is needed here; each element is an "
		"ingress point, such as eth1 vlan 5 source 10.77.1.0/24");
	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"ingress\":[[]]}",
		"tenant-add: ingress[0]: (a list): an ingress point, such as "
		"eth1 vlan 5 source 10.77.1.0/24");
	used = snprintf(many, sizeof(many),
			"{\"do\":\"tenant-add\",\"name\":\"a\",\"ingress\":[\"e\"");
	for (unsigned int i = 1; i < TENANT_POINTS_MAX; i++)
		used += snprintf(many + used, sizeof(many) - used, ",\"e\"");
	snprintf(many + used, sizeof(many) - used, "]}");
	taken(many);
	assert_int_equal(q.tenant.points, TENANT_POINTS_MAX);
	snprintf(many + used, sizeof(many) - used, ",\"e\"]}");
	refused(many, "tenant-add: ingress[16]: one too many; there can be at most 16");
}

static void a_tenant_of_the_cluster_comes_in_at_nodes(void **state)
{
	char many[1024];
	size_t used;

	taken("{\"do\":\"tenant-set\",\"name\":\"red\",\"cluster\":true,\"ingress\":"
	      "[\"n0/eth1 vlan 5\",\"n2/eth3\"]}");
	assert_int_equal(q.given, REQUEST_NAME | REQUEST_INGRESS);
	assert_int_equal(q.tenant.points, 0);
	assert_int_equal(q.places, 2);
	assert_string_equal(q.place[0].node, "n0");
	assert_int_equal(q.place[0].point.vlan, 5);
	assert_string_equal(q.place[1].point.port, "eth3");
	taken("{\"do\":\"tenant-set\",\"name\":\"red\",\"cluster\":true,\"ingress\":[]}");
	assert_int_equal(q.given, REQUEST_NAME | REQUEST_INGRESS);
	assert_int_equal(q.places, 0);
	refused("{\"do\":\"tenant-add\",\"name\":\"a\",\"cluster\":true,\"ingress\":[\"n0/e\",\"eth1\"]}",
		"tenant-add: ingress: eth1: in the cluster ports are those of each node, so name "
		"that, too: NODE/eth1");
	refused("{\"do\":\"tenant-set\",\"name\":\"a\",\"ingress\":[\"eth1\",\"n0/eth1\"]}",
		"tenant-set: ingress: n0/eth1: points of nodes are for a tenant of the cluster: say "
		"cluster, too, or leave the node out");
	refused("{\"do\":\"tenant-set\",\"name\":\"a\",\"ingress\":[\"N0/eth1\"]}",
		"tenant-set: ingress[0]: 'N0/eth1': NODE/PORT [vlan N] [source ADDRESS/BITS], such as "
		"eth1 vlan 5 source 10.77.1.0/24 at node NODE of the cluster");
	used = snprintf(
		many, sizeof(many),
		"{\"do\":\"tenant-add\",\"name\":\"a\",\"cluster\":true,\"ingress\":[\"n/e\"");
	for (unsigned int i = 1; i < TENANT_PLACES_MAX; i++)
		used += snprintf(many + used, sizeof(many) - used, ",\"n/e\"");
	snprintf(many + used, sizeof(many) - used, "]}");
	taken(many);
	assert_int_equal(q.places, TENANT_PLACES_MAX);
	snprintf(many + used, sizeof(many) - used, ",\"n/e\"]}");
	refused(many, "tenant-add: ingress[64]: one too many; there can be at most 64");
}

/* The library's own words differ from version to version. */
static void no_json(const char *text)
{
	assert_int_equal(parse_bytes(text, strlen(text)), -EINVAL);
	assert_memory_equal(why.text, "not JSON: byte ", strlen("not JSON: byte "));
	for (const char *c = why.text; *c; c++)
		assert_in_range(*c, ' ', '~');
}

static void what_is_no_request_is_refused(void **state)
{
	static const char nul[] = "{\"do\":\"status\"}\0";

	no_json("");
	no_json("{\"do\":\"status\"} {}");
	no_json("{\"do\":\"status\",\"do\":\"top\"}");
	no_json("{\"do\":\"job-del\",\"name\":\"a\\u0000b\"}");
	no_json("{\"do\":\"\xff\"}");
	no_json("{\"do\":\"stats\",\"\xc3\xa9\": x}");
	no_json("{\"do\":\"trace\",\"every\":99999999999999999999}");
	refused("[]", "a request is an object, such as {\"do\": \"status\"}");
	assert_int_equal(parse_bytes(nul, sizeof(nul)), -EINVAL);
}

static void a_tree_and_a_document_are_read_whole(void **state)
{
	taken("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":4,\"tree\":["
	      "{\"name\":\"a0\",\"address\":\"10.77.0.2\",\"ranks\":\"0-1\"}]}");
	assert_int_equal(q.job.tree.nodes, 1);
	assert_string_equal(q.job.tree.node[0].name, "a0");
	assert_true(tally_set_has(&q.job.tree.node[0].ranks, 1));
	taken("{\"do\":\"job-documents\",\"name\":\"j\",\"node\":\"a0\"}");
	assert_string_equal(q.documents.job, "j");
	assert_string_equal(q.documents.node, "a0");
	taken("{\"do\":\"apply\",\"tenant\":\"red\",\"document\":{" DOCUMENT "}}");
	assert_string_equal(q.apply.tenant, "red");
	assert_string_equal(q.apply.document.job, "j");
	assert_int_equal(q.apply.document.epoch, 9);
	assert_int_equal(q.apply.document.rank[0].rank, 1);
	assert_string_equal(q.apply.document.below[0].name, "b0");
	refused("{\"do\":\"apply\"}", "apply: document: is needed");
	refused("{\"do\":\"apply\",\"document\":null}",
		"apply: document: 'null': a mapping is needed here; its keys are job, node, address, "
		"root, id, birth, epoch, generation, window, payload, workers, ranks, nodes and keys");
	refused("{\"do\":\"apply\",\"document\":{\"job\":\"j\"}}",
		"apply: document: node: is needed");
	refused("{\"do\":\"apply\",\"document\":{" DOCUMENT ",\"token\":1}}",
		"apply: document: token: there is no such key; there are job, node, address, root, id, "
		"birth, epoch, generation, window, payload, workers, ranks, nodes and keys");
	refused("{\"do\":\"job-create\",\"name\":\"j\",\"workers\":4,\"tree\":["
		"{\"name\":\"a0\",\"address\":\"10.77.0.2\",\"ranks\":\"\"}]}",
		"job-create: tree[0].ranks: '': ranks, such as 0-3,7");
}

/* Neither what is printed for the log, nor what is said of a key that is none. */
static void keys_of_a_document_are_shown_nowhere(void **state)
{
	static const char line[] = "{\"do\":\"apply\",\"document\":{" DOCUMENT ",\"keys\":[\"" KEY
				   "\",\"" KEY "\"]},\"tenant\":\"red\"}";
	char *printed;

	taken(line);
	assert_int_equal(q.apply.document.keys, 2);
	printed = request_print(line, strlen(line));
	assert_non_null(strstr(printed, "\"tenant\":\"red\""));
	assert_non_null(strstr(printed, "\"epoch\":9"));
	assert_null(strstr(printed, "keys"));
	assert_null(strstr(printed, KEY));
	free(printed);
	refused("{\"do\":\"apply\",\"document\":{" DOCUMENT ",\"keys\":[\"" KEY "f\"]}}",
		"apply: document.keys[0]: 32 digits of 0-9 and a-f, not all of them 0, or - for one "
		"that need not be known here");
}

static void every_beginning_of_a_request_is_refused(void **state)
{
	static const char text[] = "{\"do\":\"job-create\",\"name\":\"j\",\"workers\":12,"
				   "\"tenant\":\"red\",\"window\":64}";

	for (size_t length = 0; length + 1 < sizeof(text); length++)
		assert_int_equal(parse_bytes(text, length), -EINVAL);
	assert_int_equal(parse_bytes(text, sizeof(text) - 1), 0);
}

static void a_request_has_a_length_and_a_depth(void **state)
{
	static char line[REQUEST_BYTES_MAX + 1];
	int used = snprintf(line, sizeof(line), "{\"do\":\"status\"}");

	memset(line + used, ' ', sizeof(line) - used);
	assert_int_equal(parse_bytes(line, REQUEST_BYTES_MAX), 0);
	refused_with(-EMSGSIZE, line, REQUEST_BYTES_MAX + 1, "a request has at most 65536 bytes");
	memset(line, '[', sizeof(line));
	assert_int_equal(parse_bytes(line, REQUEST_BYTES_MAX), -EINVAL);
	assert_non_null(strstr(why.text, "depth"));
}

static void a_result_is_one_line(void **state)
{
	char *line = request_answer_ok(json_pack("{s:s, s:[i,i]}", "name", "r\ne\"d", "x", 1, 2));

	assert_string_equal(line, "{\"ok\": true, \"result\": {\"name\": \"r\\ne\\\"d\", "
				  "\"x\": [1, 2]}}\n");
	free(line);
}

static void an_error_names_its_errno(void **state)
{
	char *line = request_answer_error(-ENOSPC, "no room for \"j\"");

	assert_string_equal(line, "{\"ok\": false, \"error\": \"no room for \\\"j\\\"\", "
				  "\"errno\": \"ENOSPC\"}\n");
	free(line);
	line = request_answer_error(-12345, "odd");
	assert_string_equal(line, "{\"ok\": false, \"error\": \"odd\", \"errno\": \"EIO\"}\n");
	free(line);
	line = request_answer_error(-ENOENT, "/a\xff"
					     "b");
	assert_string_equal(line, "{\"ok\": false, \"error\": \"/a?b\", \"errno\": \"ENOENT\"}\n");
	free(line);
}

/* The longest result that fits, and one byte more. */
static void an_answer_fits_into_a_line_or_says_so(void **state)
{
	const size_t frame = strlen("{\"ok\": true, \"result\": \"\"}");
	char *text = malloc(REQUEST_ANSWER_BYTES_MAX), *line;

	memset(text, 'x', REQUEST_ANSWER_BYTES_MAX);
	line = request_answer_ok(json_stringn(text, REQUEST_ANSWER_BYTES_MAX - frame));
	assert_int_equal(strlen(line), REQUEST_ANSWER_BYTES_MAX + 1);
	free(line);
	line = request_answer_ok(json_stringn(text, REQUEST_ANSWER_BYTES_MAX - frame + 1));
	assert_non_null(strstr(line, "\"ok\": false"));
	assert_non_null(strstr(line, "\"EMSGSIZE\""));
	free(line);
	free(text);
}

static void no_memory_for_a_result_is_an_error(void **state)
{
	char *line = request_answer_ok(NULL);

	assert_string_equal(line, "{\"ok\": false, \"error\": \"Cannot allocate memory\", "
				  "\"errno\": \"ENOMEM\"}\n");
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verb_has_its_name_and_is_found_by_it),
		cmocka_unit_test(who_may_ask_is_known),
		cmocka_unit_test(a_tenant_is_read_whole),
		cmocka_unit_test(what_is_not_named_is_not_given),
		cmocka_unit_test(a_job_is_read_whole),
		cmocka_unit_test(filters_are_read),
		cmocka_unit_test(windows_and_payloads_are_those_of_the_wire),
		cmocka_unit_test(verbs_and_keys_that_are_wrong_hear_what_there_is),
		cmocka_unit_test(values_that_are_wrong_hear_what_is_allowed),
		cmocka_unit_test(ingress_points_are_refused_by_their_place),
		cmocka_unit_test(a_tenant_of_the_cluster_comes_in_at_nodes),
		cmocka_unit_test(what_is_no_request_is_refused),
		cmocka_unit_test(a_tree_and_a_document_are_read_whole),
		cmocka_unit_test(keys_of_a_document_are_shown_nowhere),
		cmocka_unit_test(every_beginning_of_a_request_is_refused),
		cmocka_unit_test(a_request_has_a_length_and_a_depth),
		cmocka_unit_test(a_result_is_one_line),
		cmocka_unit_test(an_error_names_its_errno),
		cmocka_unit_test(an_answer_fits_into_a_line_or_says_so),
		cmocka_unit_test(no_memory_for_a_result_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
