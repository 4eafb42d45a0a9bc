// SPDX-License-Identifier: GPL-2.0-only
/* The books on disk: what was written is read; what was not is refused with words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "agent/edge/books_file.h"
#include "common/address.h"
#include "common/joining.h"
#include "common/name.h"

enum {
	SLOTS = 4096,
};

static struct why why;
static char directory[64], path[128];

static int directory_make(void **state)
{
	snprintf(directory, sizeof(directory), "/tmp/tally-books-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/state.json", directory);
	return 0;
}

static int directory_remove(void **state)
{
	char fresh[sizeof(path) + 8];

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	unlink(fresh);
	unlink(path);
	rmdir(path);
	return rmdir(directory);
}

/* --- books to write -------------------------------------------------------------------------- */

static void configure(struct books *b)
{
	struct tenant tenants[] = { { .name = "gold", .slots = 64 } };

	books_init(b, SLOTS);
	assert_int_equal(books_configure(b, tenants, 1, true, &why), 0);
}

static void tenant_enter(struct books *b, const char *name, uint32_t slots, const char *point)
{
	struct tenant t = {
		.slots = slots,
		.packets_per_second = slots % 3 ? TENANT_RATE_MAX : 0,
		.bytes_per_second = slots,
		.priority = slots % 256,
	};

	snprintf(t.name, sizeof(t.name), "%s", name);
	for (; point && t.points < 2; t.points++)
		assert_int_equal(tenant_point_parse(t.points ? "eth9 vlan 0" : point,
						    &t.point[t.points], &why),
				 0);
	assert_in_range(books_tenant_add(b, &t, &why), 1, TALLY_TENANTS_MAX - 1);
}

static struct job *job_enter(struct books *b, const char *name, const char *tenant,
			     uint16_t workers, uint16_t window, bool ip6)
{
	struct job facts = {
		.id = (b->jobs + 1) * 16777619u,
		.tenant = books_tenant_find(b, tenant, &why),
		.workers = workers,
		.window = window,
		.payload_bytes = ip6 ? 1344 : 64,
		.fits = ip6,
		.epoch = 65535 - workers,
		.sealed = workers % 2,
		.birth = workers % 3 ? 0x8000000000000000 + workers : 0,
	};
	struct job *j;

	snprintf(facts.name, sizeof(facts.name), "%s", name);
	snprintf(facts.token, sizeof(facts.token), "5b1f_-Z%s", workers % 2 ? "" : "longer");
	assert_int_equal(
		address_parse(ip6 ? "fd77::1" : "10.77.0.1", TALLY_UDP_PORT, &facts.service), 0);
	j = job_new(&facts);
	assert_non_null(j);
	assert_int_equal(books_job_restore(b, j, &why), 0);
	return j;
}

static void run(struct job *j, uint16_t window)
{
	char text[ADDRESS_BYTES];
	struct sockaddr_storage address;
	uint16_t rank;

	for (unsigned int i = 0; i < j->workers; i++) {
		snprintf(text, sizeof(text),
			 j->service.ss_family == AF_INET ? "10.77.1.%u:%u" : "[fd77:1::%x]:%u",
			 i % 250 + 1, 1000 + i);
		assert_int_equal(address_parse(text, 0, &address), 0);
		assert_int_equal(job_join(j, -1, &address, &rank, &why), 0);
	}
	j->begin_draw = (struct job_draw){ 0x9c41d00f3ae7b552, { 1, 2, 3 } };
	job_begin(j, window, false);
}

static struct sockaddr_storage address_of(const char *text, uint16_t udp_port)
{
	struct sockaddr_storage address;

	assert_int_equal(address_parse(text, udp_port, &address), 0);
	return address;
}

/* A job of several nodes whose root is here, and one of which this is an inner node. */
static void trees_enter(struct books *b)
{
	static struct tree tree;
	static struct document d;
	struct job *j = job_enter(b, "tree", "gold", TALLY_WORKERS_MAX, 16, false);

	memset(&tree, 0, sizeof(tree));
	for (tree.nodes = 0; tree.nodes < 2; tree.nodes++) {
		struct tree_node *n = &tree.node[tree.nodes];

		snprintf(n->name, sizeof(n->name), "node%u", tree.nodes);
		n->address = address_of("10.77.0.2", TALLY_UDP_PORT);
		((struct sockaddr_in *)&n->address)->sin_addr.s_addr += htonl(tree.nodes);
		for (unsigned int i = 0; i < 4; i++)
			tally_set_add(&n->ranks, tree.nodes % 2 + 2 * (i + 4 * (tree.nodes / 2)));
	}
	assert_int_equal(job_tree_set(j, &tree), 0);
	memset(&d, 0, sizeof(d));
	snprintf(d.job, sizeof(d.job), "inner");
	snprintf(d.node, sizeof(d.node), "a0");
	d.address = address_of("fd77::2", TALLY_UDP_PORT);
	d.root = address_of("fd77::1", TALLY_UDP_PORT);
	d.id = 7;
	d.birth = UINT64_MAX - 7;
	d.epoch = 65535;
	d.window = 8;
	d.payload_bytes = 64;
	d.workers = 4;
	d.rank[d.ranks++] = (struct document_rank){ 3, address_of("[fd77::33]:5", 0) };
	d.below[d.nodes] =
		(struct tree_node){ "b0", address_of("fd77::9", TALLY_UDP_PORT), { { 3 } } };
	d.nodes++;
	for (; d.keys < 4; d.keys++)
		d.key[d.keys] = (struct tally_key){ { d.keys + 1, 7 } };
	j = job_new_inner(&d, books_tenant_find(b, "red", &why));
	assert_non_null(j);
	snprintf(j->name, sizeof(j->name), "inner-7");
	assert_int_equal(books_job_restore(b, j, &why), 0);
}

/* Something of everything. */
static void books_fill(struct books *b)
{
	struct tenant t = { .name = "default", .packets_per_second = 9 };
	const struct tenant shared = {
		.name = "shared", .slots = 5, .clustered = true, .gated = true
	};
	struct job *j;

	configure(b);
	assert_int_equal(books_tenant_set(b, BOOKS_DEFAULT, &t, &why), 0);
	tenant_enter(b, "red", 600, "eth1 vlan 4094 source 10.0.0.0/8");
	tenant_enter(b, "blue", 0, NULL);
	tenant_enter(b, "v6", 1, "eth1 source fd77::/64");
	assert_in_range(books_tenant_add(b, &shared, &why), 1, TALLY_TENANTS_MAX - 1);
	job_enter(b, "waits", "default", 1, 128, false);
	job_enter(b, "golden", "gold", TALLY_WORKERS_MAX, 1024, false);
	j = job_enter(b, "runs", "red", 3, 16, false);
	run(j, 8);
	job_token_goes(j);
	j = job_enter(b, "runs6", "v6", 2, 1, true);
	run(j, 1);
	assert_false(job_leave(j, 1, j->epoch));
	trees_enter(b);
}

static void tenants_are_equal(const struct books_tenant *a, const struct books_tenant *b)
{
	assert_string_equal(a->is.name, b->is.name);
	assert_int_equal(a->configured, b->configured);
	assert_int_equal(a->remainder, b->remainder);
	assert_int_equal(a->is.slots, b->is.slots);
	assert_int_equal(a->is.packets_per_second, b->is.packets_per_second);
	assert_int_equal(a->is.bytes_per_second, b->is.bytes_per_second);
	assert_int_equal(a->is.priority, b->is.priority);
	assert_int_equal(a->is.clustered, b->is.clustered);
	assert_int_equal(a->is.gated, b->is.gated);
	assert_int_equal(a->is.points, b->is.points);
	for (unsigned int i = 0; i < a->is.points; i++) {
		char first[TENANT_POINT_BYTES], second[TENANT_POINT_BYTES];

		tenant_point_print(&a->is.point[i], first, sizeof(first));
		tenant_point_print(&b->is.point[i], second, sizeof(second));
		assert_string_equal(first, second);
	}
}

/* `a` as another agent finds it in `b`. */
static void jobs_are_equal(const struct job *a, const struct job *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->token, b->token);
	assert_true(!a->tree == !b->tree && !a->document == !b->document);
	if (a->tree && b->tree)
		assert_memory_equal(a->tree, b->tree, sizeof(*a->tree));
	if (a->document && b->document)
		assert_memory_equal(a->document, b->document, sizeof(*a->document));
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->tenant, b->tenant);
	assert_string_equal(a->tenant_name, b->tenant_name);
	assert_int_equal(a->workers, b->workers);
	assert_int_equal(a->window, b->window);
	assert_int_equal(a->payload_bytes, b->payload_bytes);
	assert_int_equal(a->fits, b->fits);
	assert_true(endpoint_is_equal(&a->service, &b->service));
	assert_int_equal(a->epoch, b->epoch);
	assert_true(a->birth == b->birth);
	assert_int_equal(a->run_window, b->run_window);
	assert_true(!memcmp(&a->draw, &b->draw, sizeof(a->draw)) && a->tags == b->tags &&
		    !memcmp(a->run_token_key, b->run_token_key, sizeof(a->run_token_key)) &&
		    a->sealed == b->sealed && !a->draw.nonce == (!a->run_window || a->document));
	for (unsigned int i = 0; i < a->workers; i++) {
		enum job_presence presence = a->rank[i].presence;

		if (presence == JOB_RUNNING)
			presence = JOB_DETACHED;
		assert_int_equal(b->rank[i].presence, a->run_window ? presence : JOB_ABSENT);
		assert_false(b->rank[i].waiting);
		assert_null(b->rank[i].connection);
		if (a->run_window && !a->document)
			assert_true(endpoint_is_equal(&a->rank[i].address, &b->rank[i].address));
	}
}

static void books_are_equal(const struct books *a, const struct books *b)
{
	assert_int_equal(a->jobs, b->jobs);
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		tenants_are_equal(&a->tenant[i], &b->tenant[i]);
	for (unsigned int i = 0; i < a->jobs; i++)
		jobs_are_equal(a->job[i], b->job[i]);
}

/* --- text ------------------------------------------------------------------------------------ */

static void what_is_printed_is_parsed(void **state)
{
	_cleanup_(books_clear) struct books wrote, read;
	_cleanup_(freep) char *text = NULL, *again = NULL;

	books_fill(&wrote);
	text = books_print(&wrote);
	assert_non_null(text);
	configure(&read);
	assert_int_equal(books_parse(&read, text, strlen(text), "f", &why), 0);
	books_are_equal(&wrote, &read);
	for (unsigned int i = 0; i < wrote.jobs; i++)
		job_detach(wrote.job[i]);
	free(text);
	text = books_print(&wrote);
	again = books_print(&read);
	assert_string_equal(text, again);
}

static unsigned int allocation, fails; /* of jansson's */

static void *allocate(size_t bytes) { return ++allocation == fails ? NULL : malloc(bytes); }

/* jansson leaves out a byte of a token that it has no memory for. */
static void a_text_is_read_whole_or_not_at_all(void **state)
{
	_cleanup_(books_clear) struct books wrote;
	_cleanup_(freep) char *text = NULL;
	int r;

	books_fill(&wrote);
	text = books_print(&wrote);
	for (fails = 1, r = -ENOMEM; r < 0; fails++) {
		_cleanup_(books_clear) struct books read;

		configure(&read);
		allocation = 0;
		json_set_alloc_funcs(allocate, free);
		r = books_parse(&read, text, strlen(text), "f", &why);
		json_set_alloc_funcs(malloc, free);
		assert_int_equal(r, allocation < fails ? 0 : -ENOMEM);
	}
	assert_true(fails > 100);
}

static void as_much_as_a_node_can_have_is_printed_and_parsed(void **state)
{
	_cleanup_(books_clear) struct books wrote, read;
	_cleanup_(freep) char *text = NULL;
	char name[NAME_BYTES];

	configure(&wrote);
	for (unsigned int i = 3; i < TALLY_TENANTS_MAX; i++) {
		snprintf(name, sizeof(name), "tenant%057u", i);
		tenant_enter(&wrote, name, 1, "eth1 source fd77:1:2:3:4:5:6:7/128");
	}
	for (unsigned int i = 0; i < TALLY_JOBS_MAX; i++) {
		snprintf(name, sizeof(name), "job%060u", i);
		run(job_enter(&wrote, name, "default", i % 16 ? 1 : TALLY_WORKERS_MAX, 1, i % 2),
		    1);
	}
	text = books_print(&wrote);
	configure(&read);
	assert_int_equal(books_parse(&read, text, strlen(text), "f", &why), 0);
	books_are_equal(&wrote, &read);
}

static void a_tenant_of_the_file_counts_before_one_of_the_configuration(void **state)
{
	_cleanup_(books_clear) struct books wrote, read;
	_cleanup_(freep) char *text = NULL;
	int index;

	books_init(&wrote, SLOTS);
	tenant_enter(&wrote, "gold", 700, NULL);
	text = books_print(&wrote);
	configure(&read);
	assert_int_equal(books_parse(&read, text, strlen(text), "f", &why), 0);
	index = books_tenant_find(&read, "gold", &why);
	assert_int_equal(books_quota(&read, index), 700);
	assert_false(read.tenant[index].configured);
}

/* Also on disk again, and it comes back with its tenant, from wherever. */
static void a_job_without_its_tenant_is_kept_and_suspended(void **state)
{
	const struct tenant gold = { .name = "gold", .slots = 64 };
	_cleanup_(books_clear) struct books wrote, other, read;
	_cleanup_(freep) char *text = NULL, *again = NULL;
	const struct job *j;

	books_fill(&wrote);
	run(books_job_find(&wrote, "golden"), 512);
	text = books_print(&wrote);
	books_init(&other, SLOTS);
	assert_int_equal(books_parse(&other, text, strlen(text), "f", &why), 0);
	j = books_job_find(&other, "golden");
	assert_true(job_is_suspended(j));
	assert_int_equal(job_slots(j), 0);
	assert_string_equal(j->tenant_name, "gold");
	assert_false(job_is_suspended(books_job_find(&other, "runs")));
	again = books_print(&other);
	configure(&read);
	assert_int_equal(books_parse(&read, again, strlen(again), "f", &why), 0);
	books_are_equal(&wrote, &read);
	assert_in_range(books_tenant_add(&other, &gold, &why), 1, TALLY_TENANTS_MAX - 1);
	assert_false(job_is_suspended(j));
	assert_int_equal(job_slots(j), 1024);
}

static void the_configurations_tenants_are_not_in_it(void **state)
{
	_cleanup_(books_clear) struct books b;
	_cleanup_(freep) char *text = NULL;

	configure(&b);
	text = books_print(&b);
	assert_null(strstr(text, "gold"));
	assert_non_null(strstr(text, "default"));
}

static void a_quota_of_the_default_tenant_is_kept(void **state)
{
	const uint32_t slots[] = { 1, 100, SLOTS - 64 };

	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
		_cleanup_(books_clear) struct books wrote, read;
		struct tenant t = { .name = "default", .slots = slots[i] };
		_cleanup_(freep) char *text = NULL;

		configure(&wrote);
		assert_int_equal(books_tenant_set(&wrote, BOOKS_DEFAULT, &t, &why), 0);
		text = books_print(&wrote);
		configure(&read);
		assert_int_equal(books_parse(&read, text, strlen(text), "f", &why), 0);
		books_are_equal(&wrote, &read);
		assert_false(read.tenant[BOOKS_DEFAULT].remainder);
	}
}

/* --- what is not right ----------------------------------------------------------------------- */

/* Whatever a text says: what it leaves is what other modules may rely on, or there are words. */
static void refused_or_sound(const char *text, size_t length)
{
	_cleanup_(books_clear) struct books b;
	int r;

	configure(&b);
	why = (struct why){ "" };
	r = books_parse(&b, text, length, "state", &why);
	if (r < 0) {
		assert_true(!strncmp(why.text, "state:", 6) && strlen(why.text) > 10);
		return;
	}
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const struct tenant *t = &b.tenant[i].is;

		assert_true(!*t->name || name_is_valid(t->name));
		assert_true(!b.tenant[i].remainder || i == BOOKS_DEFAULT);
		assert_true(t->packets_per_second <= TENANT_RATE_MAX);
		assert_true(t->bytes_per_second <= TENANT_RATE_MAX);
		assert_in_range(t->slots, 0, SLOTS);
	}
	for (unsigned int i = 0; i < b.jobs; i++) {
		const struct job *j = b.job[i];

		assert_true(name_is_valid(j->name) && (j->document || token_is_valid(j->token)));
		assert_in_range(j->id, 1, UINT32_MAX);
		assert_in_range(j->workers, 1, TALLY_WORKERS_MAX);
		assert_in_range(j->window, 1, TALLY_WINDOW_MAX);
		assert_true(!(j->window & (j->window - 1)));
		assert_true(!(j->run_window & (j->run_window - 1)) && j->run_window <= j->window);
		assert_true(name_is_valid(j->tenant_name));
		assert_string_equal(b.tenant[j->tenant].is.name,
				    job_is_suspended(j) ? "" : j->tenant_name);
		for (unsigned int k = 0; k < j->workers; k++)
			assert_true(!j->run_window || j->document ||
				    j->rank[k].address.ss_family == j->service.ss_family);
	}
}

static char *filled_text(void)
{
	struct books b;
	char *text;

	books_fill(&b);
	text = books_print(&b);
	assert_non_null(text);
	books_clear(&b);
	return text;
}

static void every_truncation_is_refused_with_words(void **state)
{
	_cleanup_(freep) char *text = filled_text();
	size_t whole = strlen(text);

	for (size_t length = 0; length < whole; length++) {
		_cleanup_(books_clear) struct books b;
		/* of its own size, so that a byte too far is seen */
		_cleanup_(freep) char *cut = malloc(length + !length);

		memcpy(cut, text, length);
		configure(&b);
		assert_int_equal(books_parse(&b, cut, length, "state", &why), -EINVAL);
		assert_true(!strncmp(why.text, "state:", 6) && strlen(why.text) > 10);
	}
}

static void every_changed_byte_is_refused_or_leaves_sound_books(void **state)
{
	static const char others[] = "09-\"{[,x\\";
	_cleanup_(freep) char *text = filled_text();
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++) {
		char right = text[i];

		for (size_t k = 0; k < sizeof(others); k++) { /* NUL too */
			text[i] = others[k];
			refused_or_sound(text, length);
		}
		for (int bit = 0; bit < 8; bit++) {
			text[i] = (char)(right ^ 1 << bit);
			refused_or_sound(text, length);
		}
		text[i] = right;
	}
}

static void refused(const char *from, const char *to, const char *reason)
{
	_cleanup_(freep) char *text = filled_text(), *changed = NULL;
	_cleanup_(books_clear) struct books b;
	char *at = strstr(text, from);
	int r;

	assert_non_null(at);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) >
		    0);
	configure(&b);
	/* Never -ENOENT: that says that there is no file, and a new one is written. */
	r = books_parse(&b, changed, strlen(changed), "state", &why);
	assert_true(r == -EINVAL || r == -EEXIST || r == -ENOSPC);
	assert_string_equal(why.text, reason);
}

static void what_an_agent_wrote_before_runs_had_nonces_and_keys_is_read(void **state)
{
	static const char *const later[] = { "\"requires\"",	     "\"nonce\"",
					     "\"secret\"",	     "\"tags\"",
					     "\"sealed\"",	     "\"birth\"",
					     "\"name\": \"inner-7\"" };
	_cleanup_(freep) char *text = filled_text();
	_cleanup_(books_clear) struct books b;

	for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++)
		for (char *at = text; (at = strstr(at, later[i]));)
			at[1] = 'x'; /* an unknown key */
	configure(&b);
	assert_int_equal(books_parse(&b, text, strlen(text), "state", &why), 0);
	assert_true(books_job_find(&b, "runs")->draw.nonce == 0);
	assert_int_equal(books_job_find(&b, "runs")->draw.secret[0], 0); /* the run has no keys */
	assert_true(books_job_find(&b, "runs")->tags); /* and the next one has */
	assert_false(books_job_find(&b, "runs")->sealed);
	assert_true(books_job_find(&b, "runs")->birth == 0);
	assert_true(books_job_find(&b, "inner")->document->birth == 0);
	assert_int_equal(books_job_find(&b, "runs")->run_window, 8);
}

/* So that a downgrade ends no promise, from the tallyd on that first looked. */
static void what_a_later_agent_requires_is_refused_unless_it_is_known(void **state)
{
	_cleanup_(freep) char *text = filled_text();
	_cleanup_(books_clear) struct books b;
	char *at = strstr(text, "\"sealed\",\n");

	configure(&b);
	assert_int_equal(books_parse(&b, text, strlen(text), "state", &why), 0);
	books_clear(&b);
	assert_non_null(strstr(text, "\"requires\": ["));
	assert_non_null(at);
	at[1] = 'x';
	configure(&b);
	assert_int_equal(books_parse(&b, text, strlen(text), "state", &why), -EOPNOTSUPP);
	assert_string_equal(
		why.text, "state: it requires 'xealed', which a later tallyd has promised to jobs "
			  "and this one does not know: start the tallyd that wrote it, or a later "
			  "one");
}

/* A tallyd that knows no trees would take the runs of inner nodes away, and one that knows no
 * tenants without a place to come in would let them come in anywhere. */
static void what_others_would_break_is_required(void **state)
{
	_cleanup_(freep) char *text = filled_text(), *flat = NULL;
	_cleanup_(books_clear) struct books b;

	assert_non_null(strstr(text, "\"sealed\",\n  \"trees\",\n  \"nowhere\"\n"));
	configure(&b);
	flat = books_print(&b);
	assert_null(strstr(flat, "requires"));
}

static void what_no_agent_wrote_is_refused(void **state)
{
	refused("\"format\": 1", "\"format\": 2", "state: format 2; this tallyd reads 1");
	refused("\"format\"", "\"fromat\"", "state: the key 'format' is needed");
	refused("\"name\": \"red\"", "\"name\": \"Red\"",
		"state: tenants[1].name: 'Red': 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with "
		"a letter or a digit");
	refused("\"name\": \"red\"", "\"name\": \"blue\"",
		"state: tenant blue: there is a tenant blue already");
	refused("\"slots\": 600", "\"slots\": 6000",
		"state: tenants keep 6065 slots, by quota or in running jobs (gold 64, red 6000, "
		"v6 1), and the node has 4096: raise slots: in tallyd.yaml to 6065, or give "
		"tenants fewer: there, or by tallyctl quota while tallyd runs");
	refused("\"slots\": 600", "\"slots\": 4294967296",
		"state: tenants[1].slots: '4294967296': a whole number from 0 to 262144");
	refused("1000000000000", "1000000000001",
		"state: tenants[3].packets_per_second: '1000000000001': a whole number from 0 to "
		"1000000000000");
	refused("\"eth9 vlan 0\"", "9",
		"state: tenants[1].ingress[1]: '9': an ingress point, such as eth1 vlan 5 source "
		"10.77.1.0/24");
	refused("\"workers\": 3", "\"workers\": 4294967299",
		"state: jobs[1].workers: '4294967299': a whole number from 1 to 256");
	refused("\"workers\": 3", "\"workers\": 2",
		"state: jobs[1]: job runs: 3 ranks, but its run has 2 workers");
	refused("\"run_window\": 8", "\"run_window\": 32",
		"state: jobs[1]: job runs: run_window 32 is more than window 16");
	refused("\"run_window\": 8", "\"run_window\": 7",
		"state: jobs[1].run_window: '7': a power of two from 0 to 1024");
	refused("\"token\": \"5", "\"token\": \" ",
		"state: jobs[0].token: 1 to 128 of A-Z, a-z, 0-9, '_' and '-'");
	refused("\"10.77.1.2:1001\"", "\"[fd77::2]:1001\"",
		"state: jobs[1]: job runs: rank 1 and service must be of one family");
	refused("\"running\"", "\"absent\"",
		"state: jobs[1].ranks[0].presence: 'absent': one of running, detached and left");
}

/* Also where the text breaks off right behind one. */
static void no_token_is_ever_in_a_reason(void **state)
{
	static const char secret[] = "5b1f_-Z";
	_cleanup_(freep) char *text = filled_text();
	char *at = strstr(text, secret);

	assert_non_null(at);
	for (const char *c = "\n\\{\x01\xff"; *c; c++) {
		for (size_t i = 0; i <= strlen(secret) + 1; i++) {
			_cleanup_(freep) char *broken = strdup(text);
			_cleanup_(books_clear) struct books b;

			broken[at - text + i] = *c;
			configure(&b);
			assert_true(books_parse(&b, broken, strlen(broken), "state", &why) < 0);
			assert_null(strstr(why.text, i ? "5b1" : "b1f"));
		}
	}
}

static void lists_must_be_lists(void **state)
{
	static const char *const texts[] = {
		"{\"format\": 1, \"tenants\": {}, \"jobs\": []}",
		"{\"format\": 1, \"tenants\": [], \"jobs\": null}",
		"{\"format\": 1, \"tenants\": [0], \"jobs\": []}",
		"{\"format\": 1, \"tenants\": [], \"jobs\": [[]]}",
		"[]",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		_cleanup_(books_clear) struct books b;

		configure(&b);
		assert_int_equal(books_parse(&b, texts[i], strlen(texts[i]), "s", &why), -EINVAL);
	}
}

/* --- files ----------------------------------------------------------------------------------- */

static void what_is_written_is_read(void **state)
{
	_cleanup_(books_clear) struct books wrote, read;
	struct stat s;

	books_fill(&wrote);
	assert_int_equal(books_write(&wrote, path, &why), 0);
	assert_int_equal(books_write(&wrote, path, &why), 0); /* in the place of the last one */
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0600);
	configure(&read);
	assert_int_equal(books_read(&read, path, &why), 0);
	books_are_equal(&wrote, &read);
}

static void there_may_be_no_file_yet(void **state)
{
	_cleanup_(books_clear) struct books b;

	configure(&b);
	assert_int_equal(books_read(&b, path, &why), -ENOENT);
	assert_non_null(strstr(why.text, path));
}

static void a_file_with_tokens_is_nobody_elses_to_read(void **state)
{
	_cleanup_(books_clear) struct books b;
	char fresh[sizeof(path) + 8];
	struct stat s;
	int fd;

	/* what a crash of an agent, or somebody, left there */
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT, 0666);
	assert(fd >= 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
	books_fill(&b);
	assert_int_equal(books_write(&b, path, &why), 0);
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0600);
}

/* Twice: the second start may find what the first one kept. */
static void the_former_file_is_kept(void **state)
{
	_cleanup_(books_clear) struct books wrote, empty, read;
	char kept[sizeof(path) + 8];

	snprintf(kept, sizeof(kept), "%s" BOOKS_KEPT, path);
	books_fill(&wrote);
	assert_int_equal(books_write(&wrote, path, &why), 0);
	assert_int_equal(books_keep(path, &why), 0);
	assert_int_equal(books_keep(path, &why), 0);
	books_init(&empty, SLOTS);
	assert_int_equal(books_write(&empty, path, &why), 0);
	configure(&read);
	assert_int_equal(books_read(&read, kept, &why), 0);
	books_are_equal(&wrote, &read);
	unlink(kept);
}

static unsigned int mode_of(const char *file)
{
	struct stat s;

	assert_int_equal(stat(file, &s), 0);
	return s.st_mode & 07777;
}

/* As by cp, when somebody puts a copy back. */
static void a_file_that_others_can_read_is_closed_before_it_is_kept(void **state)
{
	_cleanup_(books_clear) struct books b;
	char kept[sizeof(path) + 8];

	snprintf(kept, sizeof(kept), "%s" BOOKS_KEPT, path);
	books_fill(&b);
	assert_int_equal(books_write(&b, path, &why), 0);
	for (unsigned int mode = 0; mode < 0100; mode++) {
		assert_int_equal(chmod(path, 0600 | mode), 0);
		assert_int_equal(books_keep(path, &why), !!mode);
		assert_int_equal(mode_of(path), 0600);
		assert_int_equal(mode_of(kept), 0600);
	}
	unlink(kept);
}

static void a_state_file_that_is_a_link_is_what_the_link_leads_to(void **state)
{
	char name[sizeof(path)], real[sizeof(path)];
	int fd;

	memcpy(name, path, sizeof(name));
	snprintf(real, sizeof(real), "%s/real", directory);
	assert_int_equal(books_resolve(name, sizeof(name), &why), 0); /* there is none yet */
	assert_string_equal(name, path);
	assert_int_equal(symlink("real", path), 0);
	assert_int_equal(books_resolve(name, sizeof(name), &why), -ENOENT);
	assert_non_null(strstr(why.text, "is its disk mounted?"));
	fd = open(real, O_WRONLY | O_CREAT, 0600);
	assert(fd >= 0);
	close(fd);
	assert_int_equal(books_resolve(name, strlen(real), &why), -ENAMETOOLONG);
	assert_string_equal(name, path);
	for (unsigned int i = 0; i < 2; i++) { /* the second time it is no link any more */
		assert_int_equal(books_resolve(name, strlen(real) + 1, &why), 0);
		assert_string_equal(name, real);
	}
	unlink(real);
}

static void a_link_in_the_way_is_not_followed(void **state)
{
	_cleanup_(books_clear) struct books b;
	char fresh[sizeof(path) + 8], victim[sizeof(path)];
	struct stat s;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	snprintf(victim, sizeof(victim), "%s/victim", directory);
	assert_int_equal(symlink(victim, fresh), 0);
	books_fill(&b);
	assert_int_equal(books_write(&b, path, &why), 0);
	assert_int_equal(stat(victim, &s), -1);
}

/* A directory cannot be replaced by a file: renaming fails when all was written. */
static void a_write_that_fails_leaves_nothing_behind(void **state)
{
	_cleanup_(books_clear) struct books b;
	char fresh[sizeof(path) + 8];
	struct stat s;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	books_fill(&b);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(books_write(&b, path, &why), -EISDIR);
	assert_non_null(strstr(why.text, path));
	assert_int_equal(stat(fresh, &s), -1);
	assert_int_equal(rmdir(path), 0);
}

static void where_it_cannot_be_written_is_said(void **state)
{
	_cleanup_(books_clear) struct books b;
	char nowhere[sizeof(path) + 16];

	configure(&b);
	snprintf(nowhere, sizeof(nowhere), "%s/none/state", directory);
	assert_int_equal(books_write(&b, nowhere, &why), -ENOENT);
	assert_non_null(strstr(why.text, nowhere));
}

static void more_than_books_can_be_is_refused(void **state)
{
	_cleanup_(books_clear) struct books b;
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert(fd >= 0);
	assert_int_equal(ftruncate(fd, (64 << 20) + 1), 0);
	close(fd);
	configure(&b);
	assert_int_equal(books_read(&b, path, &why), -EFBIG);
}

#define ON_DISK(name) cmocka_unit_test_setup_teardown(name, directory_make, directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_parsed),
		cmocka_unit_test(a_text_is_read_whole_or_not_at_all),
		cmocka_unit_test(as_much_as_a_node_can_have_is_printed_and_parsed),
		cmocka_unit_test(a_tenant_of_the_file_counts_before_one_of_the_configuration),
		cmocka_unit_test(a_job_without_its_tenant_is_kept_and_suspended),
		cmocka_unit_test(the_configurations_tenants_are_not_in_it),
		cmocka_unit_test(a_quota_of_the_default_tenant_is_kept),
		cmocka_unit_test(every_truncation_is_refused_with_words),
		cmocka_unit_test(every_changed_byte_is_refused_or_leaves_sound_books),
		cmocka_unit_test(what_an_agent_wrote_before_runs_had_nonces_and_keys_is_read),
		cmocka_unit_test(what_a_later_agent_requires_is_refused_unless_it_is_known),
		cmocka_unit_test(what_others_would_break_is_required),
		cmocka_unit_test(what_no_agent_wrote_is_refused),
		cmocka_unit_test(no_token_is_ever_in_a_reason),
		cmocka_unit_test(lists_must_be_lists),
		ON_DISK(what_is_written_is_read),
		ON_DISK(there_may_be_no_file_yet),
		ON_DISK(a_file_with_tokens_is_nobody_elses_to_read),
		ON_DISK(the_former_file_is_kept),
		ON_DISK(a_file_that_others_can_read_is_closed_before_it_is_kept),
		ON_DISK(a_state_file_that_is_a_link_is_what_the_link_leads_to),
		ON_DISK(a_link_in_the_way_is_not_followed),
		ON_DISK(a_write_that_fails_leaves_nothing_behind),
		ON_DISK(where_it_cannot_be_written_is_said),
		ON_DISK(more_than_books_can_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
