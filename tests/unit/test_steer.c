// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which packets a node sends where, so that they take the ways that are wanted: agent/cluster/
 * steer.h. In the kernel: test_netlink_steer.c.
 *
 *   w 10.0.1.1 ── n0 ── n1 ── n3
 *                  └─── n2 ───┘      ports have the name of the node behind them
 */
#include "cluster_world.h"

#include "agent/cluster/steer.h"
#include "common/owned.h"

#define BIRTH "00000000feedface"
#define JOB(name)                                                                            \
	"{\"name\": \"" name "\", \"tenant\": \"default\", \"token\": \"5b1f\", \"id\": 7, " \
	"\"birth\": \"" BIRTH "\", \"workers\": 2, \"window\": 128}"
#define PLACE(address) "{\"birth\": \"" BIRTH "\", \"root\": \"n3\", \"address\": \"" address "\"}"
#define WAYS(address, ways)                                                    \
	"{\"birth\": \"" BIRTH "\", \"root\": \"n3\", \"address\": \"" address \
	"\", \"ways\": [" ways "]}"
#define WAY(worker, nodes) "{\"worker\": \"" worker "\", \"nodes\": [" nodes "]}"
#define LOWER WAY("10.0.1.1", "\"n0\", \"n2\", \"n3\"")
#define UPPER WAY("10.0.1.1", "\"n0\", \"n1\", \"n3\"")

static struct picture picture;
static struct shared shared;
static struct steer steer;

static void take(const char *key, const char *value)
{
	static uint64_t revision;
	struct why why = { "" };

	if (shared_take(&shared, key, value, ++revision, &why) < 0)
		fail_msg("%s: %s", key, why.text);
}

static struct report *node(const char *name, const char *number)
{
	char own[32];
	struct report *r;

	snprintf(own, sizeof(own), "10.77.0.%s", number);
	r = report_of(name, own);
	r->steers = true;
	put(&picture, r);
	return r;
}

/* Port of a, whose name is that, to b: `net` and a's own number there make its addresses. */
static void half(struct report *a, const char *name, const char *b, const char *net, char own)
{
	struct report_port *p = port(a, b, 100);

	snprintf(p->ip4, sizeof(p->ip4), "10.%s.0.%c", net, own);
	snprintf(p->ip6, sizeof(p->ip6), "fe80::%s:%c", net, own);
	near(a, b, b, name);
}

static struct report *n0, *n1, *n2, *n3;

static int diamond(void **state)
{
	picture = (struct picture){ 0 };
	shared = (struct shared){ 0 };
	steer = (struct steer){ 0 };
	n0 = node("n0", "1");
	n1 = node("n1", "2");
	n2 = node("n2", "3");
	n3 = node("n3", "4");
	half(n0, "n0", "n1", "1", '1');
	half(n1, "n1", "n0", "1", '2');
	half(n0, "n0", "n2", "2", '1');
	half(n2, "n2", "n0", "2", '2');
	half(n1, "n1", "n3", "3", '1');
	half(n3, "n3", "n1", "3", '2');
	half(n2, "n2", "n3", "4", '1');
	half(n3, "n3", "n2", "4", '2');
	return 0;
}

static int over(void **state)
{
	picture_close(&picture);
	shared_close(&shared);
	steer_close(&steer);
	return 0;
}

static void job(const char *name, const char *job, const char *address, const char *ways)
{
	char key[64];

	snprintf(key, sizeof(key), "job/%s", name);
	take(key, job);
	snprintf(key, sizeof(key), "place/%s", name);
	take(key, address);
	snprintf(key, sizeof(key), "ways/%s", name);
	take(key, ways);
}

/* What the node has to do, a line each. */
static const char *at(const char *name)
{
	static char text[1024];
	char from[ADDRESS_BYTES], to[ADDRESS_BYTES], gateway[ADDRESS_BYTES];
	size_t used = 0;

	*text = '\0';
	steer_close(&steer);
	assert_int_equal(steer_make(&shared, &picture, name, &steer), 0);
	for (unsigned int i = 0; i < steer.routes; i++) {
		const struct steer_route *r = &steer.route[i];

		address_print(&r->from, from, sizeof(from));
		address_print(&r->to, to, sizeof(to));
		address_print(&r->gateway, gateway, sizeof(gateway));
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s>%s via %s dev %s%s\n", from, to, gateway, r->port,
					 r->sums ? " sums" : "");
	}
	return text;
}

static const char *trouble(const char *name)
{
	const struct steer_job *j;

	steer_close(&steer);
	assert_int_equal(steer_make(&shared, &picture, "n0", &steer), 0);
	j = steer_job_find(&steer, name);
	if (j && *j->why.text)
		assert_int_equal(steer.routes, 0);
	return j ? j->why.text : "no ways";
}

static void each_node_sends_to_the_next(void **state)
{
	job("train", JOB("train"), PLACE("10.77.0.4"), WAYS("10.77.0.4", LOWER));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.2.0.2 dev n2\n");
	assert_string_equal(at("n2"), "10.0.1.1>10.77.0.4 via 10.4.0.2 dev n3\n"
				      "10.77.0.4>10.0.1.1 via 10.2.0.1 dev n0\n");
	assert_string_equal(at("n1"), "");
	assert_string_equal(at("n3"), "10.77.0.4>10.0.1.1 via 10.4.0.1 dev n2\n");
	assert_string_equal(trouble("train"), "");
	take("ways/train", WAYS("10.77.0.4", UPPER));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.1.0.2 dev n1\n");
	assert_string_equal(at("n2"), "");
	take("ways/train", NULL);
	assert_string_equal(at("n0"), "");
	assert_string_equal(trouble("train"), "no ways");
}

static void ipv6_goes_by_the_addresses_of_links(void **state)
{
	job("train", JOB("train"), PLACE("fd77::4"),
	    WAYS("fd77::4", WAY("fd00::1", "\"n0\", \"n2\", \"n3\"")));
	assert_string_equal(at("n0"), "fd00::1>fd77::4 via fe80::2:2 dev n2\n");
	assert_string_equal(at("n3"), "fd77::4>fd00::1 via fe80::4:1 dev n2\n");
	host(n0, "n2", "fe80::2:2", "02:00:00:00:02:02"); /* as its next hop it gets known */
	host(n0, "n2", "169.254.0.9", "02:00:00:00:02:02");
	assert_string_equal(trouble("train"), "");
}

static void what_does_not_hold_says_why(void **state)
{
	job("train", JOB("train"), PLACE("10.77.0.4"), WAYS("10.77.0.4", LOWER));
	n3->steers = false;
	assert_string_equal(trouble("train"), "n3 does not steer");
	n3->steers = true;
	n2->near[0].port[1] = '7';
	assert_string_equal(trouble("train"), "n2 does not hear n0");
	n2->near[0].port[1] = '0';
	n2->near[0].at[1] = '7'; /* another port of n0's */
	assert_string_equal(trouble("train"), "n2 does not hear n0");
	n2->near[0].at[1] = '2';
	n2->port[1].up = false;
	assert_string_equal(trouble("train"), "n2 does not hear n3");
	n2->port[1].up = true;
	near(n0, "n1", "n2", "n1"); /* forged at two ports, */
	near(n2, "n1", "n0", "n1");
	port(n2, "n1", 100);
	assert_string_equal(trouble("train"), "n0 and n2 hear each other at several links");
	n0->nears--;
	n2->nears--;
	n2->ports--;
	host(n2, "n0", "10.77.0.1", ""); /* n0 itself, as the kernel knows it */
	assert_string_equal(trouble("train"), "");
	host(n2, "n0", "10.0.9.9", "");
	assert_string_equal(trouble("train"), "there are other machines at the link from n0 to n2");
	n2->hosts = 0;
	near(n2, "n0", "n1", "n0"); /* a third one at a switch */
	assert_string_equal(trouble("train"), "there are other machines at the link from n0 to n2");
	n2->nears--;
	*n3->port[1].ip4 = '\0';
	assert_string_equal(trouble("train"), "n3 has no IPv4 address at n2");
	snprintf(n3->port[1].ip4, sizeof(n3->port[1].ip4), "10.4.0.2");
	*n0->port[1].ip4 = '\0'; /* on the way back */
	assert_string_equal(trouble("train"), "n0 has no IPv4 address at n2");
	snprintf(n0->port[1].ip4, sizeof(n0->port[1].ip4), "10.2.0.1");
	assert_string_equal(trouble("train"), "");
	take("ways/train", WAYS("10.77.0.4", WAY("10.0.1.1", "\"n0\", \"n3\"")));
	assert_string_equal(trouble("train"), "n0 does not hear n3");
	take("ways/train", WAYS("10.77.0.4", LOWER));
	picture_drop(&picture, "n2");
	assert_string_equal(trouble("train"), "n2 reports nothing");
}

static void who_sums_must_take_parts(void **state)
{
	job("train", JOB("train"), PLACE("10.77.0.4"),
	    "{\"birth\": \"" BIRTH "\", \"root\": \"n3\", \"address\": \"10.77.0.4\", "
	    "\"sums\": [\"n2\"], \"ways\": [" LOWER "]}");
	assert_string_equal(trouble("train"), "n2 takes no parts: it has no peers.secret");
	n2->inner = true;
	assert_string_equal(trouble("train"), "");
}

#define SUMS(root, address, sums, ways)                                              \
	"{\"birth\": \"" BIRTH "\", \"root\": \"" root "\", \"address\": \"" address \
	"\", \"sums\": [" sums "], \"ways\": [" ways "]}"

/* Two workers at n0 whose sum n1 adds to one of its own, and one right below the root. */
static void results_go_back_to_workers_and_to_who_sums(void **state)
{
	n0->inner = n1->inner = true;
	job("train", JOB("train"), PLACE("10.77.0.4"),
	    SUMS("n3", "10.77.0.4", "\"n0\", \"n1\"",
		 UPPER ", " WAY("10.0.1.2", "\"n0\", \"n1\", \"n3\"") ", " WAY(
			 "10.0.2.1", "\"n1\", \"n3\"") ", " WAY("10.0.3.1", "\"n3\"")));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.1.0.2 dev n1\n"
				      "10.0.1.2>10.77.0.4 via 10.1.0.2 dev n1\n"
				      "10.77.0.1>10.77.0.4 via 10.1.0.2 dev n1 sums\n");
	assert_string_equal(at("n1"), "10.0.1.1>10.77.0.4 via 10.3.0.2 dev n3\n"
				      "10.77.0.4>10.0.1.1 via 10.1.0.1 dev n0\n"
				      "10.0.1.2>10.77.0.4 via 10.3.0.2 dev n3\n"
				      "10.77.0.4>10.0.1.2 via 10.1.0.1 dev n0\n"
				      "10.0.2.1>10.77.0.4 via 10.3.0.2 dev n3\n"
				      "10.77.0.4>10.77.0.1 via 10.1.0.1 dev n0\n"
				      "10.77.0.2>10.77.0.4 via 10.3.0.2 dev n3 sums\n");
	assert_string_equal(at("n3"), "10.77.0.4>10.0.1.1 via 10.3.0.1 dev n1\n"
				      "10.77.0.4>10.0.1.2 via 10.3.0.1 dev n1\n"
				      "10.77.0.4>10.0.2.1 via 10.3.0.1 dev n1\n"
				      "10.77.0.4>10.77.0.1 via 10.3.0.1 dev n1\n"
				      "10.77.0.4>10.77.0.2 via 10.3.0.1 dev n1\n");
	assert_string_equal(at("n2"), "");
}

/* A node that sums has workers before it, whose results come over it. */
static void a_way_of_a_sum_begins_where_it_is_made(void **state)
{
	n1->inner = true;
	job("train", JOB("train"), PLACE("10.77.0.4"), SUMS("n3", "10.77.0.4", "\"n1\"", UPPER));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.1.0.2 dev n1\n");
}

/* Where the first node would send results on by routing, they might come back to the way. */
static void a_way_begins_next_to_its_worker(void **state)
{
	job("train", JOB("train"), PLACE("10.77.0.4"), WAYS("10.77.0.4", LOWER));
	host(n1, "h", "10.0.1.1", "02:00:00:00:00:01");
	assert_string_equal(trouble("train"), "10.0.1.1 is next to n1, and not to n0");
	host(n0, "h", "10.0.1.1", "02:00:00:00:00:01");
	assert_string_equal(trouble("train"), "");
}

static void results_have_one_way_too(void **state)
{
	n0->inner = true;
	job("a", JOB("a"), PLACE("10.77.0.4"), SUMS("n3", "10.77.0.4", "\"n0\"", UPPER));
	job("b", JOB("b"), PLACE("10.77.0.4"),
	    SUMS("n3", "10.77.0.4", "\"n0\"", WAY("10.0.1.2", "\"n0\", \"n2\", \"n3\"")));
	assert_string_equal(trouble("a"), "");
	assert_string_equal(at("n2"), ""); /* nothing of what was added before that was seen */
	assert_string_equal(
		steer_job_find(&steer, "b")->why.text,
		"job a has another way from the same root to one of its nodes that sum");
	assert_string_equal(at("n3"), "10.77.0.4>10.0.1.1 via 10.3.0.1 dev n1\n"
				      "10.77.0.4>10.77.0.1 via 10.3.0.1 dev n1\n");
}

#define PLACE_N1 "{\"birth\": \"" BIRTH "\", \"root\": \"n1\", \"address\": \"10.77.0.2\"}"

/* Each is the root of what the other one sums: results go by ways of their own. */
static void roots_sum_for_one_another(void **state)
{
	n1->inner = n3->inner = true;
	job("a", JOB("a"), PLACE("10.77.0.4"),
	    SUMS("n3", "10.77.0.4", "\"n1\"", WAY("10.0.2.1", "\"n1\", \"n3\"")));
	job("b", JOB("b"), PLACE_N1,
	    SUMS("n1", "10.77.0.2", "\"n3\"", WAY("10.0.3.1", "\"n3\", \"n2\", \"n0\", \"n1\"")));
	assert_string_equal(trouble("b"), "");
	assert_string_equal(at("n2"), "10.0.3.1>10.77.0.2 via 10.2.0.1 dev n0\n"
				      "10.77.0.2>10.0.3.1 via 10.4.0.2 dev n3\n"
				      "10.77.0.2>10.77.0.4 via 10.4.0.2 dev n3\n");
	/* A "worker" that has the other root's address would meet these. */
	take("ways/a", SUMS("n3", "10.77.0.4", "", WAY("10.77.0.2", "\"n1\", \"n3\"")));
	assert_string_equal(trouble("a"), "");
	assert_string_equal(
		trouble("b"),
		"job a has another way from the same root to one of its nodes that sum");
}

static void a_route_is_found_by_its_machines(void **state)
{
	struct sockaddr_storage from = address("10.77.0.4"), to = address("10.0.1.1");

	job("train", JOB("train"), PLACE("10.77.0.4"), WAYS("10.77.0.4", LOWER));
	at("n3");
	endpoint_port_set(&to, 5000);
	assert_string_equal(steer_route_find(&steer, &from, &to)->port, "n2");
	assert_null(steer_route_find(&steer, &to, &from));
	to = address("10.0.1.2");
	assert_null(steer_route_find(&steer, &from, &to));
}

/* All ways of a job, or none. */
static void a_job_is_steered_whole_or_not_at_all(void **state)
{
	job("train", JOB("train"), PLACE("10.77.0.4"),
	    WAYS("10.77.0.4", WAY("10.0.2.1", "\"n1\", \"n3\"") ", " LOWER));
	assert_string_equal(at("n1"), "10.0.2.1>10.77.0.4 via 10.3.0.2 dev n3\n");
	assert_string_equal(at("n3"), "10.77.0.4>10.0.2.1 via 10.3.0.1 dev n1\n"
				      "10.77.0.4>10.0.1.1 via 10.4.0.1 dev n2\n");
	n2->steers = false;
	assert_string_equal(at("n1"), "");
	assert_string_equal(at("n3"), "");
}

/* Rules know no jobs: two ways of the same packets might be a circle. */
static void the_same_packets_have_one_way(void **state)
{
	job("a", JOB("a"), PLACE("10.77.0.4"), WAYS("10.77.0.4", UPPER));
	job("b", JOB("b"), PLACE("10.77.0.4"), WAYS("10.77.0.4", LOWER));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.1.0.2 dev n1\n");
	assert_string_equal(steer_job_find(&steer, "b")->why.text,
			    "job a has another way from one of its workers to the same root");
	take("ways/b", WAYS("10.77.0.4", UPPER));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.1.0.2 dev n1\n");
	assert_string_equal(trouble("b"), "");
	/* Where the first one's do not hold, they stand in nobody's way. */
	n1->steers = false;
	take("ways/b", WAYS("10.77.0.4", LOWER));
	assert_string_equal(at("n0"), "10.0.1.1>10.77.0.4 via 10.2.0.2 dev n2\n");
}

/* As many ways as a job can have, of workers in a network of its own. */
static void large_job(const char *name, unsigned int net)
{
	char *list = calloc(1, 8192), *ways = calloc(1, 8192), text[256];
	size_t used = 0;

	assert_true(list && ways);
	for (unsigned int i = 0; i < WANTED_WAYS_MAX; i++)
		used += (size_t)snprintf(
			list + used, 8192 - used,
			"%s{\"worker\": \"10.1.%u.%u\", \"nodes\": [\"n0\", \"n1\", \"n3\"]}",
			i ? ", " : "", net, i);
	snprintf(ways, 8192, WAYS("10.77.0.4", "%s"), list);
	snprintf(text, sizeof(text), JOB("%s"), name);
	job(name, text, PLACE("10.77.0.4"), ways);
	free(list);
	free(ways);
}

static void there_is_room_for_so_many_ways(void **state)
{
	char name[16];

	for (unsigned int i = 0; i <= STEER_WAYS_MAX / 2 / WANTED_WAYS_MAX; i++) {
		snprintf(name, sizeof(name), "j%u", i);
		large_job(name, i);
	}
	assert_int_equal(steer_make(&shared, &picture, "n0", &steer), 0);
	assert_int_equal(steer.routes, STEER_WAYS_MAX / 2);
	assert_string_equal(steer_job_find(&steer, "j7")->why.text, "");
	assert_string_equal(steer_job_find(&steer, "j8")->why.text,
			    "jobs before it have 1024 ways up and down, and there can be 1024");
	steer_close(&steer);
	assert_int_equal(steer_make(&shared, &picture, "n1", &steer), 0);
	assert_int_equal(steer.routes, STEER_WAYS_MAX);
}

static void what_changes_is_not_equal(void **state)
{
	struct steer other = { 0 };

	job("train", JOB("train"), PLACE("10.77.0.4"), WAYS("10.77.0.4", LOWER));
	at("n0");
	assert_int_equal(steer_make(&shared, &picture, "n0", &other), 0);
	assert_true(steer_is_equal(&steer, &other));
	steer_close(&other);
	take("ways/train", WAYS("10.77.0.4", UPPER));
	assert_int_equal(steer_make(&shared, &picture, "n0", &other), 0);
	assert_false(steer_is_equal(&steer, &other));
	steer_close(&other);
}

#define fact(f) cmocka_unit_test_setup_teardown(f, diamond, over)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(each_node_sends_to_the_next),
		fact(ipv6_goes_by_the_addresses_of_links),
		fact(what_does_not_hold_says_why),
		fact(who_sums_must_take_parts),
		fact(results_go_back_to_workers_and_to_who_sums),
		fact(a_way_of_a_sum_begins_where_it_is_made),
		fact(a_way_begins_next_to_its_worker),
		fact(results_have_one_way_too),
		fact(roots_sum_for_one_another),
		fact(a_route_is_found_by_its_machines),
		fact(a_job_is_steered_whole_or_not_at_all),
		fact(the_same_packets_have_one_way),
		fact(there_is_room_for_so_many_ways),
		fact(what_changes_is_not_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
