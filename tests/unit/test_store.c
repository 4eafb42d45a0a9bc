// SPDX-License-Identifier: GPL-2.0-only
/*
 * What stores are made of: a mirror of keys, and the words of etcd's gateway, as etcd 3.4.23 says
 * them. Stores themselves: tests/e2e/store.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/etcd_text.h"
#include "agent/store/mirror.h"
#include "common/base64.h"
#include "common/owned.h"

#define HEADER                                                                     \
	"\"header\":{\"cluster_id\":\"1\",\"member_id\":\"2\",\"revision\":\"7\"," \
	"\"raft_term\":\"2\"}"

/* --- base64 ---------------------------------------------------------------------------------- */

/* RFC 4648, section 10. */
static void base64_is_as_the_rfc_says(void **state)
{
	static const char *const vector[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	for (size_t i = 0; i < sizeof(vector) / sizeof(*vector); i++) {
		_cleanup_(freep) char *text = base64_print(vector[i][0], strlen(vector[i][0]));
		_cleanup_(freep) char *bytes = NULL;
		size_t length;

		assert_string_equal(text, vector[i][1]);
		assert_int_equal(base64_parse(text, strlen(text), &bytes, &length), 0);
		assert_int_equal(length, strlen(vector[i][0]));
		assert_string_equal(bytes, vector[i][0]);
	}
}

static void all_bytes_come_back(void **state)
{
	_cleanup_(freep) char *text = NULL, *bytes = NULL;
	unsigned char all[256];
	size_t length;

	for (unsigned int i = 0; i < 256; i++)
		all[i] = (unsigned char)i;
	text = base64_print(all, sizeof(all));
	assert_int_equal(base64_parse(text, strlen(text), &bytes, &length), 0);
	assert_int_equal(length, sizeof(all));
	assert_memory_equal(bytes, all, sizeof(all));
}

static void what_is_no_base64_is_refused(void **state)
{
	static const char *const wrong[] = { "Z",    "Zg",   "Zg=",	 "Zm9 ",
					     "Z===", "=Zg=", "Zg==Zg==", "Zm9\n" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char *bytes = NULL;
		size_t length;

		assert_int_equal(base64_parse(wrong[i], strlen(wrong[i]), &bytes, &length),
				 -EINVAL);
		assert_null(bytes);
	}
}

/* --- the mirror ------------------------------------------------------------------------------ */

struct heard {
	unsigned int changes;
	char last[64]; /* KEY=VALUE, or KEY- */
};

static void on_changed(void *context, const struct store_item *item)
{
	struct heard *h = context;

	h->changes++;
	snprintf(h->last, sizeof(h->last), "%s%s%s", item->key, item->value ? "=" : "-",
		 item->value ? item->value : "");
}

static void on_current(void *context, uint64_t revision) {}

static void put(struct mirror *m, const char *key, const char *value, uint64_t revision,
		const struct store_follower *f)
{
	assert_int_equal(mirror_put(m, &(struct store_item){ key, value, revision }, f), 0);
}

static void a_mirror_tells_each_difference_once(void **state)
{
	struct heard heard = { 0 };
	const struct store_follower f = { on_changed, on_current, &heard, NULL };
	_cleanup_(mirror_close) struct mirror m = { 0 };

	put(&m, "b", "1", 3, &f);
	put(&m, "a", "1", 4, &f);
	assert_string_equal(heard.last, "a=1");
	assert_int_equal(heard.changes, 2);
	put(&m, "a", "1", 4, &f); /* known */
	put(&m, "a", "0", 2, &f); /* older */
	assert_int_equal(heard.changes, 2);
	assert_string_equal(mirror_find(&m, "a")->value, "1");
	put(&m, "a", "2", 5, &f);
	assert_string_equal(heard.last, "a=2");
	mirror_drop(&m, "b", &f);
	assert_string_equal(heard.last, "b-");
	mirror_drop(&m, "b", &f);
	assert_int_equal(heard.changes, 4);
	assert_null(mirror_find(&m, "b"));
}

/* After a break: what has gone meanwhile, what has come, what has changed, and what has not. */
static void a_mirror_that_is_read_anew_tells_what_differs(void **state)
{
	struct heard heard = { 0 };
	const struct store_follower f = { on_changed, on_current, &heard, NULL };
	_cleanup_(mirror_close) struct mirror m = { 0 };

	put(&m, "goes", "1", 1, NULL);
	put(&m, "stays", "1", 2, NULL);
	put(&m, "changes", "1", 3, NULL);
	mirror_reread(&m);
	put(&m, "stays", "1", 2, &f);
	assert_int_equal(heard.changes, 0);
	put(&m, "changes", "2", 5, &f);
	put(&m, "comes", "1", 6, &f);
	assert_int_equal(heard.changes, 2);
	mirror_reread_end(&m, &f);
	assert_int_equal(heard.changes, 3);
	assert_string_equal(heard.last, "goes-");
	assert_int_equal(m.items, 3);
}

/* Whatever the revisions of another store are, its keys are what is there. */
static void a_mirror_of_another_store_tells_all_that_is_there(void **state)
{
	struct heard heard = { 0 };
	const struct store_follower f = { on_changed, on_current, &heard, NULL };
	_cleanup_(mirror_close) struct mirror m = { 0 };

	put(&m, "goes", "1", 7, NULL);
	put(&m, "stays", "1", 8, NULL);
	mirror_reset(&m);
	mirror_reread(&m);
	put(&m, "stays", "0", 2, &f);
	assert_string_equal(heard.last, "stays=0");
	assert_int_equal(mirror_find(&m, "stays")->revision, 2);
	mirror_reread_end(&m, &f);
	assert_string_equal(heard.last, "goes-");
	assert_int_equal(heard.changes, 2);
}

/* A thousand keys in any order are found, and in their order. */
static void a_mirror_is_sorted(void **state)
{
	_cleanup_(mirror_close) struct mirror m = { 0 };
	char key[16];

	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "k%03u", i * 387 % 1000);
		put(&m, key, key, i + 1, NULL);
	}
	assert_int_equal(m.items, 1000);
	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "k%03u", i);
		assert_string_equal(m.item[i].key, key);
		assert_ptr_equal(mirror_find(&m, key), &m.item[i]);
	}
}

/* --- what is said to etcd -------------------------------------------------------------------- */

static void requests_are_what_etcd_takes(void **state)
{
	const struct store_seen seen = { "a", 0 };
	const struct store_change change[] = { { "a", "x", true }, { "b", NULL, false } };
	const struct store_write w = { &seen, 1, change, 2 };
	_cleanup_(freep) char *write = etcd_write("/t/", &w, 77);
	_cleanup_(freep) char *first = etcd_range("/t/", "j/", NULL, 0, 5);
	_cleanup_(freep) char *next = etcd_range("/t/", "j/", "j/x", 9, 5);
	_cleanup_(freep) char *watch = etcd_watch("/t/", "j/", 10);
	_cleanup_(freep) char *login = etcd_login("me", "a \"word\"");

	/* L3QvYQ== is /t/a, L3QvYg== /t/b, L3Qvai8= /t/j/, L3QvajA= /t/j0, L3Qvai94AA== /t/j/x\0 */
	assert_string_equal(write,
			    "{\"compare\":[{\"key\":\"L3QvYQ==\",\"target\":\"MOD\",\"result\":"
			    "\"EQUAL\",\"mod_revision\":\"0\"}],\"success\":[{\"request_put\":"
			    "{\"key\":\"L3QvYQ==\",\"value\":\"eA==\",\"lease\":\"77\"}},"
			    "{\"request_delete_range\":{\"key\":\"L3QvYg==\"}}]}");
	assert_string_equal(first, "{\"key\":\"L3Qvai8=\",\"range_end\":\"L3QvajA=\","
				   "\"revision\":\"0\",\"limit\":\"5\"}");
	assert_string_equal(next, "{\"key\":\"L3Qvai94AA==\",\"range_end\":\"L3QvajA=\","
				  "\"revision\":\"9\",\"limit\":\"5\"}");
	assert_string_equal(watch, "{\"create_request\":{\"key\":\"L3Qvai8=\",\"range_end\":"
				   "\"L3QvajA=\",\"start_revision\":\"10\",\"progress_notify\":"
				   "true}}");
	assert_string_equal(login, "{\"name\":\"me\",\"password\":\"a \\\"word\\\"\"}");
}

/* --- what etcd answers ----------------------------------------------------------------------- */

static void a_write_was_done_or_not(void **state)
{
	static const char done[] = "{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_put\""
				   ":{\"header\":{\"revision\":\"7\"}}}]}";
	static const char not_done[] = "{" HEADER "}";
	struct etcd_written w;

	assert_int_equal(etcd_read_written(done, strlen(done), &w), 0);
	assert_true(w.done && w.revision == 7);
	assert_int_equal(etcd_read_written(not_done, strlen(not_done), &w), 0);
	assert_false(w.done);
	assert_int_equal(etcd_read_written("{}", 2, &w), -EINVAL);
	assert_int_equal(etcd_read_written("<html>", 6, &w), -EINVAL);
}

struct items {
	unsigned int count;
	char text[256];
};

static int take(void *context, const struct store_item *item)
{
	struct items *i = context;
	size_t used = strlen(i->text);

	i->count++;
	snprintf(i->text + used, sizeof(i->text) - used, "%s%s%s@%lu ", item->key,
		 item->value ? "=" : "-", item->value ? item->value : "",
		 (unsigned long)item->revision);
	return 0;
}

static void a_page_has_keys_without_the_prefix(void **state)
{
	static const char page[] =
		"{" HEADER ",\"kvs\":[{\"key\":\"L3QvYQ==\",\"create_revision\":\"2\","
		"\"mod_revision\":\"2\",\"version\":\"1\",\"value\":\"eA==\"},{\"key\":\"L3QvYg==\","
		"\"create_revision\":\"3\",\"mod_revision\":\"5\",\"version\":\"2\"}],\"more\":true,"
		"\"count\":\"9\"}";
	struct etcd_told told;
	struct items items = { 0 };

	assert_int_equal(etcd_read_range(page, strlen(page), "/t/", take, &items, &told), 0);
	assert_string_equal(items.text, "a=x@2 b=@5 ");
	assert_true(told.more && told.revision == 7 && told.cluster == 1);
	assert_int_equal(etcd_read_range(page, strlen(page), "/t/", NULL, NULL, &told), 0);
	assert_int_equal(etcd_read_range(page, strlen(page), "/other/", take, &items, &told),
			 -EINVAL);
}

/* As by `etcdctl put`, of anybody who may write: it is there, and hides nothing behind it. */
static void bytes_with_a_nul_are_no_value(void **state)
{
	/* L3QvYQBi is /t/a\0b, YQBi a\0b */
	static const char page[] =
		"{" HEADER
		",\"kvs\":[{\"key\":\"L3QvYQ==\",\"mod_revision\":\"2\",\"value\":\"YQBi\"},"
		"{\"key\":\"L3QvYQBi\",\"mod_revision\":\"3\",\"value\":\"eA==\"},"
		"{\"key\":\"L3QvYg==\",\"mod_revision\":\"4\",\"value\":\"eA==\"}]}";
	static const char events[] =
		"{\"result\":{" HEADER
		",\"events\":[{\"kv\":{\"key\":\"L3QvYQ==\",\"mod_revision\":\"5\","
		"\"value\":\"YQBi\"}},{\"kv\":{\"key\":\"L3QvYQBi\",\"mod_revision\":\"6\","
		"\"value\":\"eA==\"}},{\"type\":\"DELETE\",\"kv\":{\"key\":\"L3QvYg==\","
		"\"mod_revision\":\"7\"}}]}}";
	struct etcd_told told;
	struct items items = { 0 };

	assert_int_equal(etcd_read_range(page, strlen(page), "/t/", take, &items, &told), 0);
	assert_int_equal(etcd_read_watch(events, strlen(events), "/t/", take, &items, &told), 0);
	assert_string_equal(items.text, "a=@2 b=x@4 a=@5 b-@7 ");
}

static void a_watch_tells_changes_and_its_end(void **state)
{
	static const char created[] = "{\"result\":{" HEADER ",\"created\":true}}";
	static const char events[] =
		"{\"result\":{" HEADER
		",\"events\":[{\"kv\":{\"key\":\"L3QvYQ==\",\"mod_revision\":"
		"\"6\",\"value\":\"eA==\"}},{\"type\":\"DELETE\",\"kv\":{\"key\":\"L3QvYg==\","
		"\"mod_revision\":\"7\"}}]}}";
	static const char compacted[] =
		"{\"result\":{\"header\":{\"cluster_id\":\"1\",\"member_id\":\"2\",\"raft_term\":"
		"\"2\"},\"canceled\":true,\"compact_revision\":\"5\"}}";
	struct etcd_told told;
	struct items items = { 0 };

	assert_int_equal(etcd_read_watch(created, strlen(created), "/t/", take, &items, &told), 0);
	assert_true(told.revision == 7 && !told.ended && items.count == 0);
	assert_int_equal(etcd_read_watch(events, strlen(events), "/t/", take, &items, &told), 0);
	assert_string_equal(items.text, "a=x@6 b-@7 ");
	assert_int_equal(etcd_read_watch(compacted, strlen(compacted), "/t/", take, &items, &told),
			 0);
	assert_true(told.ended && told.compacted == 5);
}

static void a_lease_is_there_or_has_gone(void **state)
{
	static const char granted[] = "{" HEADER ",\"ID\":\"2324035636716709131\",\"TTL\":\"10\"}";
	static const char kept[] = "{\"result\":{" HEADER ",\"ID\":\"5\",\"TTL\":\"10\"}}";
	static const char gone[] = "{\"result\":{" HEADER ",\"ID\":\"5\"}}";
	uint64_t lease;

	assert_int_equal(etcd_read_lease(granted, strlen(granted), &lease), 0);
	assert_true(lease == 2324035636716709131u);
	assert_int_equal(etcd_read_lease(kept, strlen(kept), &lease), 0);
	assert_int_equal(lease, 5);
	assert_int_equal(etcd_read_lease(gone, strlen(gone), &lease), 0);
	assert_int_equal(lease, 0);
	assert_int_equal(etcd_read_lease("{}", 2, &lease), -EINVAL);
}

static void errors_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum etcd_fault fault;
	} said[] = {
		{ "{" HEADER "}", ETCD_NONE },
		{ "{\"error\":\"etcdserver: mvcc: required revision has been compacted\","
		  "\"message\":\"...\",\"code\":11}",
		  ETCD_COMPACTED },
		{ "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}", ETCD_LEASE },
		{ "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}", ETCD_LOGIN },
		{ "{\"error\":\"etcdserver: user name is empty\",\"code\":3}", ETCD_LOGIN },
		{ "{\"error\":\"etcdserver: permission denied\",\"code\":7}", ETCD_FORBIDDEN },
		{ "{\"error\":\"grpc: received message larger than max (2 vs. 1)\",\"code\":8}",
		  ETCD_TOO_LARGE },
		{ "{\"error\":\"etcdserver: request is too large\",\"code\":3}", ETCD_TOO_LARGE },
		{ "{\"error\":\"etcdserver: no leader\",\"code\":14}", ETCD_AWAY },
		{ "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"etcdserver: no "
		  "leader\",\"http_status\":\"Service Unavailable\"}}",
		  ETCD_AWAY },
		{ "{\"error\":\"something else\",\"code\":2}", ETCD_OTHER },
		{ "{\"error\":7}", ETCD_OTHER },
	};

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		struct why why = { "" };

		if (etcd_fault(said[i].text, strlen(said[i].text), &why) != said[i].fault)
			fail_msg("%s", said[i].text);
		assert_true(said[i].fault == ETCD_NONE || *why.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_is_as_the_rfc_says),
		cmocka_unit_test(all_bytes_come_back),
		cmocka_unit_test(what_is_no_base64_is_refused),
		cmocka_unit_test(a_mirror_tells_each_difference_once),
		cmocka_unit_test(a_mirror_that_is_read_anew_tells_what_differs),
		cmocka_unit_test(a_mirror_of_another_store_tells_all_that_is_there),
		cmocka_unit_test(a_mirror_is_sorted),
		cmocka_unit_test(requests_are_what_etcd_takes),
		cmocka_unit_test(a_write_was_done_or_not),
		cmocka_unit_test(a_page_has_keys_without_the_prefix),
		cmocka_unit_test(bytes_with_a_nul_are_no_value),
		cmocka_unit_test(a_watch_tells_changes_and_its_end),
		cmocka_unit_test(a_lease_is_there_or_has_gone),
		cmocka_unit_test(errors_are_told_apart),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
