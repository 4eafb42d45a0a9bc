// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses a store (agent/store/store.h) as agents do, for tests/e2e/store.sh.
 *
 *	store facts STORE
 *		what holds of every store, as TAP; the store is empty
 *	store watch PREFIX STORE
 *		prints each change, until it is ended: REVISION KEY VALUE, where the value of a
 *		key that has gone is "-"; "current REVISION"; "reset"
 *	store put KEY VALUE STORE
 *		prints what came of it, as an error's name or "0"
 *	store lease KEY VALUE STORE
 *		the same, leased: stays until it is ended, and writes it again, and says "lost",
 *		when it has gone
 *	store count NAME STORE
 *		adds 1 to key "count", and to its own key NAME in the same write, over and over
 *		until SIGTERM; says how often that was done, perhaps done, came too late, and
 *		was not possible
 *	store lead NAME STORE
 *		wants to lead, by the key "leader"; while it does, it writes its name to key
 *		"by", over and over until SIGTERM; prints who leads, and says how often that was
 *		done, and how often not
 *	store crowd COUNT SECONDS STORE
 *		so many agents at once, each with a lease and connections of its own: each writes
 *		a report of 1 KB every ten seconds, and follows what is wanted of all; says how
 *		long until all were there, and how long a change of what is wanted took to come to
 *		all, in ms: median and slowest
 *
 * STORE is: local FILE; or etcd ENDPOINTS PREFIX [USER PASSWORD] [CA].
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-event.h>

#include "agent/store/leader.h"
#include "agent/store/store.h"
#include "common/clock.h"
#include "common/owned.h"

enum {
	WAIT_S = 30, /* for what must come */
};

static sd_event *loop;
static struct store *store;
static bool is_over, is_counting;

static void open_store(char **word)
{
	struct why why = { "" };
	int r;

	if (word[0] && !strcmp(word[0], "local") && word[1]) {
		r = store_open_local(loop, word[1], &store, &why);
	} else if (word[0] && !strcmp(word[0], "etcd") && word[1] && word[2]) {
		struct store_etcd_options o = { .endpoints = word[1], .prefix = word[2] };

		if (word[3] && word[4]) {
			o.user = word[3];
			o.password = word[4];
			o.ca = word[5];
		}
		r = store_open_etcd(loop, &o, &store, &why);
	} else {
		errx(2, "STORE is: local FILE, or etcd ENDPOINTS PREFIX [USER PASSWORD] [CA]");
	}
	if (r < 0)
		errx(1, "%s", *why.text ? why.text : strerror(-r));
}

static const char *name_of(int error) { return error ? strerrorname_np(-error) : "0"; }

/* --- one write at a time --------------------------------------------------------------------- */

static struct {
	bool waits;
	int error;
	uint64_t revision;
	char why[256];
} last;

static void on_done(void *context, int error, uint64_t revision, const char *why)
{
	if (!last.waits)
		errx(1, "a write is told of twice");
	last.waits = false;
	last.error = error;
	last.revision = revision;
	snprintf(last.why, sizeof(last.why), "%s", why);
}

static void turn(void)
{
	int r = sd_event_run(loop, UINT64_MAX);

	if (r < 0)
		errx(1, "the loop: %s", strerror(-r));
}

static int write_and_wait(const struct store_write *w)
{
	int r;

	last.waits = true;
	r = store_write(store, w, on_done, NULL);
	if (r < 0)
		return r;
	while (last.waits)
		turn();
	return last.error;
}

static int put(const char *key, const char *value, const struct store_seen *seen, bool leased)
{
	const struct store_change change = { key, value, leased };

	return write_and_wait(&(struct store_write){ seen, !!seen, &change, 1 });
}

/* --- what is followed ------------------------------------------------------------------------ */

struct copy {
	char key[64], value[64];
	uint64_t revision; /* 0: it is not there */
};

struct view {
	struct copy copy[300];
	unsigned int copies, changes;
	uint64_t current;
};

static struct copy *copy_of(struct view *v, const char *key)
{
	unsigned int i = 0;

	while (i < v->copies && strcmp(v->copy[i].key, key) != 0)
		i++;
	if (i == sizeof(v->copy) / sizeof(*v->copy))
		errx(1, "more keys than there is room for");
	if (i == v->copies)
		snprintf(v->copy[v->copies++].key, sizeof(v->copy[i].key), "%s", key);
	return &v->copy[i];
}

static void on_changed(void *context, const struct store_item *item)
{
	struct view *v = context;
	struct copy *c = copy_of(v, item->key);

	snprintf(c->value, sizeof(c->value), "%s", item->value ? item->value : "");
	c->revision = item->value ? item->revision : 0;
	v->changes++;
}

static void on_current(void *context, uint64_t revision)
{
	((struct view *)context)->current = revision;
}

static void follow(const char *prefix, struct view *v)
{
	const struct store_follower f = { on_changed, on_current, v, NULL };
	int r = store_follow(store, prefix, &f);

	if (r < 0)
		errx(1, "follow %s: %s", prefix, strerror(-r));
}

static bool becomes_current(const struct view *v, uint64_t revision)
{
	const uint64_t until_ns = clock_now_ns() + WAIT_S * 1000000000ull;

	while (v->current < revision && clock_now_ns() < until_ns)
		if (sd_event_run(loop, 100000) < 0)
			return false;
	return v->current >= revision;
}

/* --- facts ----------------------------------------------------------------------------------- */

static unsigned int facts, failed;

static void fact(bool holds, const char *name)
{
	facts++;
	failed += !holds;
	printf("%sok %u - %s\n", holds ? "" : "not ", facts, name);
	fflush(stdout);
}

/* Room for the largest value. */
static char large[STORE_VALUE_BYTES];

static void writes(void)
{
	struct store_seen none = { "a", 0 }, first, old;
	struct store_change twice[] = { { "x", "1", false }, { "x", "2", false } };

	fact(put("a", "1", &none, false) == 0 && last.revision > 0, "a_new_key_is_written");
	first = (struct store_seen){ "a", last.revision };
	fact(put("a", "2", &none, false) == -ESTALE && *last.why,
	     "who_saw_no_key_does_not_overwrite_one");
	fact(put("a", "2", &first, false) == 0 && last.revision > first.revision,
	     "who_saw_the_last_change_makes_the_next_one");
	old = first;
	first.revision = last.revision;
	fact(put("a", "3", &old, false) == -ESTALE, "who_saw_an_older_one_does_not");
	fact(put("a", NULL, &first, false) == 0, "a_key_goes");
	fact(put("a", "4", &none, false) == 0, "then_it_is_new_again");
	fact(put("b", NULL, NULL, false) == 0, "a_key_that_is_not_there_may_go");
	fact(store_write(store, &(struct store_write){ NULL, 0, twice, 2 }, on_done, NULL) ==
			     -EINVAL &&
		     put("", "1", NULL, false) == -EINVAL &&
		     put("a b", "1", NULL, false) == -EINVAL,
	     "keys_that_are_none_and_keys_twice_are_refused");
}

static void all_or_nothing(struct view *v)
{
	const struct store_seen seen[] = { { "t1", 0 }, { "t2", 77 } };
	const struct store_change change[] = { { "t1", "1", false },
					       { "t2", "2", false },
					       { "t3", "3", false } };

	fact(write_and_wait(&(struct store_write){ seen, 2, change, 3 }) == -ESTALE,
	     "a_write_that_saw_one_thing_wrong_fails");
	fact(put("mark", "1", NULL, false) == 0 && becomes_current(v, last.revision) &&
		     !copy_of(v, "t1")->revision && !copy_of(v, "t3")->revision,
	     "and_nothing_of_it_is_there");
	fact(write_and_wait(&(struct store_write){ seen, 1, change, 3 }) == 0 &&
		     becomes_current(v, last.revision) &&
		     copy_of(v, "t1")->revision == last.revision &&
		     copy_of(v, "t3")->revision == last.revision,
	     "one_that_is_done_is_done_at_one_revision");
}

static void values(struct view *v)
{
	memset(large, 'x', sizeof(large) - 1);
	fact(put("large", large, NULL, false) == 0, "the_largest_value_is_taken");
	fact(put("empty", "", NULL, false) == 0 && becomes_current(v, last.revision) &&
		     copy_of(v, "empty")->revision == last.revision && !*copy_of(v, "empty")->value,
	     "an_empty_value_is_a_value");
	fact(put("utf8", "Zürich\n\"\\", NULL, false) == 0 && becomes_current(v, last.revision) &&
		     !strcmp(copy_of(v, "utf8")->value, "Zürich\n\"\\"),
	     "whatever_is_in_a_value_comes_back");
}

/* Pages of a store are smaller than this. */
static void followers(struct view *v)
{
	static struct view late, some;
	char key[64];
	bool same = true;

	for (unsigned int i = 0; i < 250; i++) {
		snprintf(key, sizeof(key), "many/%u", i);
		put(key, key, NULL, false);
	}
	put("many/7", NULL, NULL, false);
	follow("many/", &some);
	follow("m", &late);
	fact(becomes_current(&some, last.revision) && some.changes == 249,
	     "who_follows_is_told_all_that_is_there");
	fact(becomes_current(v, last.revision) && becomes_current(&late, last.revision),
	     "and_so_are_others_of_other_prefixes");
	for (unsigned int i = 0; i < some.copies; i++)
		same = same && !strcmp(some.copy[i].key, some.copy[i].value) &&
		       copy_of(v, some.copy[i].key)->revision == some.copy[i].revision;
	fact(same, "with_the_same_values_and_revisions");
	put("many/7", "again", NULL, false);
	fact(becomes_current(&some, last.revision) && some.changes == 250 &&
		     !strcmp(copy_of(&some, "many/7")->value, "again"),
	     "then_one_change_is_told_once");
	put("many/8", NULL, NULL, false);
	fact(becomes_current(&some, last.revision) && some.changes == 251 &&
		     !copy_of(&some, "many/8")->revision,
	     "and_that_a_key_has_gone");
	put("other", "1", NULL, false);
	put("many/9", "9", NULL, false);
	fact(becomes_current(&some, last.revision) && some.changes == 252,
	     "what_others_follow_is_not_told");
}

static void check(void)
{
	static struct view all;
	uint64_t heard_ns;

	follow("a", &all);
	for (const char *p = "belmtuo"; *p; p++)
		follow((char[]){ *p, 0 }, &all);
	writes();
	all_or_nothing(&all);
	values(&all);
	followers(&all);
	fact(put("leased", "1", NULL, true) == 0 && becomes_current(&all, last.revision) &&
		     copy_of(&all, "leased")->revision == last.revision,
	     "what_is_leased_is_there");
	heard_ns = store_heard_ns(store);
	fact(heard_ns && clock_now_ns() - heard_ns < WAIT_S * 1000000000ull,
	     "when_the_store_was_heard_is_known");
	printf("1..%u\n", facts);
}

/* --- the other commands ---------------------------------------------------------------------- */

static void print_changed(void *context, const struct store_item *item)
{
	printf("%" PRIu64 " %s %.40s\n", item->revision, item->key,
	       item->value ? item->value : "-");
	fflush(stdout);
}

static void print_current(void *context, uint64_t revision)
{
	printf("current %" PRIu64 "\n", revision);
	fflush(stdout);
}

static void print_reset(void *context)
{
	puts("reset");
	fflush(stdout);
}

static void watch(const char *prefix)
{
	const struct store_follower f = { print_changed, print_current, NULL, print_reset };

	if (store_follow(store, prefix, &f) < 0)
		errx(1, "follow %s", prefix);
	sd_event_loop(loop);
}

static const char *lease_key, *lease_value;

static void lease_written(void *context, int error, uint64_t revision, const char *why)
{
	printf("%s %s\n", name_of(error), why);
	fflush(stdout);
}

static void lease_write(void)
{
	const struct store_change change = { lease_key, lease_value, true };

	store_write(store, &(struct store_write){ NULL, 0, &change, 1 }, lease_written, NULL);
}

static void lease_lost(void *context)
{
	puts("lost");
	lease_write();
}

/* NAME's own key says how much of "count" it made, whatever it was told of each write. */
static void count(const char *name)
{
	static struct view v;
	unsigned int done = 0, perhaps = 0, late = 0, away = 0;

	is_counting = true; /* the loop goes on until what is under way has ended */
	follow("count", &v);
	follow(name, &v);
	while (!is_over) {
		const struct copy *all = copy_of(&v, "count"), *own = copy_of(&v, name);
		char sum[24], part[24];
		const struct store_seen seen[] = { { "count", all->revision },
						   { name, own->revision } };
		const struct store_change change[] = { { "count", sum, false },
						       { name, part, false } };
		int r;

		snprintf(sum, sizeof(sum), "%ld", strtol(all->value, NULL, 10) + 1);
		snprintf(part, sizeof(part), "%ld", strtol(own->value, NULL, 10) + 1);
		r = write_and_wait(&(struct store_write){ seen, 2, change, 2 });
		done += r == 0;
		perhaps += r == -ETIMEDOUT;
		late += r == -ESTALE;
		away += r == -ENOTCONN;
		if (r != 0 && r != -ETIMEDOUT && r != -ESTALE && r != -ENOTCONN)
			errx(1, "%s: %s", name_of(r), last.why);
		if (r == 0)
			becomes_current(&v, last.revision);
		else
			sd_event_run(loop, 5000); /* what there is now is told soon */
	}
	printf("%s done %u perhaps %u late %u away %u\n", name, done, perhaps, late, away);
}

static void print_leader(void *context, const char *name, bool is_us)
{
	printf("leader %s%s\n", name ? name : "-", is_us ? ", and that is us" : "");
	fflush(stdout);
}

/* As one who leads writes: with what must still be so. */
static void lead(const char *name)
{
	const struct store_change change = { "by", name, false };
	unsigned int done = 0, refused = 0, other = 0;
	struct leader *l;
	int r;

	is_counting = true;
	if (leader_campaign(loop, store, "leader", name, print_leader, NULL, &l) < 0)
		errx(1, "campaign");
	while (!is_over) {
		struct store_seen seen;

		if (leader_seen(l, &seen)) {
			r = write_and_wait(&(struct store_write){ &seen, 1, &change, 1 });
			done += r == 0;
			refused += r == -ESTALE;
			other += r != 0 && r != -ESTALE;
		}
		sd_event_run(loop, 5000);
	}
	printf("%s done %u refused %u other %u\n", name, done, refused, other);
	store_close(store);
	store = NULL;
	leader_close(l);
}

/* --- many at once ---------------------------------------------------------------------------- */

enum {
	REPORT_BYTES = 1024,
	REPORT_EVERY_MS = 10000,
	CHANGE_EVERY_MS = 500,
	CHANGES_MAX = 1000,
};

struct member {
	struct store *store;
	bool is_here; /* it knows what is wanted */
	sd_event_source *next; /* report */
	uint64_t seen; /* the number that is wanted, as it was told */
};

static struct {
	struct member *member;
	unsigned int members, current, reached, reports, failed;
	unsigned int changes; /* of what is wanted */
	uint64_t changed_ns;
	double took_ms[CHANGES_MAX];
	sd_event_source *change;
} crowd;

static void on_wanted(void *context, const struct store_item *item)
{
	struct member *m = context;

	m->seen = item->value ? strtoul(item->value, NULL, 10) : 0;
	if (m->seen != crowd.changes || !crowd.changed_ns)
		return;
	if (++crowd.reached < crowd.members)
		return;
	crowd.took_ms[crowd.changes - 1] = (double)(clock_now_ns() - crowd.changed_ns) / 1e6;
	crowd.changed_ns = 0;
	sd_event_source_set_time_relative(crowd.change, CHANGE_EVERY_MS * 1000);
	sd_event_source_set_enabled(crowd.change, SD_EVENT_ONESHOT);
}

static int on_change(sd_event_source *source, uint64_t usec, void *context)
{
	char value[24];
	const struct store_change change = { "wanted/all", value, false };

	if (crowd.changes == CHANGES_MAX)
		return sd_event_exit(loop, 0);
	snprintf(value, sizeof(value), "%u", ++crowd.changes);
	crowd.reached = 0;
	crowd.changed_ns = clock_now_ns();
	last.waits = true;
	return store_write(crowd.member[0].store, &(struct store_write){ NULL, 0, &change, 1 },
			   on_done, NULL);
}

static void on_member_current(void *context, uint64_t revision)
{
	struct member *m = context;

	if (m->is_here)
		return;
	m->is_here = true;
	if (++crowd.current == crowd.members)
		on_change(NULL, 0, NULL);
}

static void on_reported(void *context, int error, uint64_t revision, const char *why)
{
	crowd.reports += error == 0;
	crowd.failed += error != 0;
}

static int on_report(sd_event_source *source, uint64_t usec, void *context)
{
	struct member *m = context;
	char key[64], report[REPORT_BYTES];
	const struct store_change change = { key, report, true };

	snprintf(key, sizeof(key), "report/%u", (unsigned int)(m - crowd.member));
	memset(report, 'r', sizeof(report) - 1);
	report[sizeof(report) - 1] = '\0';
	store_write(m->store, &(struct store_write){ NULL, 0, &change, 1 }, on_reported, m);
	sd_event_source_set_time_relative(m->next, REPORT_EVERY_MS * 1000ull);
	return sd_event_source_set_enabled(m->next, SD_EVENT_ONESHOT);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int on_enough(sd_event_source *source, uint64_t usec, void *context)
{
	return sd_event_exit(loop, 0);
}

static void gather(unsigned int count, unsigned int seconds, char **word)
{
	uint64_t began_ns = clock_now_ns();
	unsigned int n;

	crowd.member = calloc(count, sizeof(*crowd.member));
	crowd.members = count;
	sd_event_add_time_relative(loop, &crowd.change, CLOCK_MONOTONIC, 0, 1000, on_change, NULL);
	sd_event_source_set_enabled(crowd.change, SD_EVENT_OFF);
	for (unsigned int i = 0; i < count; i++) {
		struct member *m = &crowd.member[i];
		const struct store_follower f = { on_wanted, on_member_current, m, NULL };

		open_store(word);
		m->store = TAKE_PTR(store);
		store_follow(m->store, "wanted/", &f);
		sd_event_add_time_relative(loop, &m->next, CLOCK_MONOTONIC,
					   1000ull * REPORT_EVERY_MS * (i + 1) / count, 1000,
					   on_report, m);
	}
	while (crowd.current < count)
		turn();
	printf("%u are there after %.1f s\n", count, (double)(clock_now_ns() - began_ns) / 1e9);
	sd_event_add_time_relative(loop, NULL, CLOCK_MONOTONIC, seconds * 1000000ull, 1000,
				   on_enough, NULL);
	sd_event_loop(loop);
	n = crowd.changes - !!crowd.changed_ns;
	qsort(crowd.took_ms, n, sizeof(*crowd.took_ms), by_size);
	printf("%u changes came to all after %.0f ms, %.0f at most; %u reports, %u failed\n", n,
	       n ? crowd.took_ms[n / 2] : 0, n ? crowd.took_ms[n - 1] : 0, crowd.reports,
	       crowd.failed);
	failed = !n || crowd.failed;
	for (unsigned int i = 0; i < count; i++) {
		sd_event_source_disable_unref(crowd.member[i].next);
		store_close(crowd.member[i].store);
	}
	sd_event_source_disable_unref(crowd.change);
	free(crowd.member);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	is_over = true;
	return is_counting ? 0 : sd_event_exit(loop, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	if (sd_event_new(&loop) < 0 ||
	    sd_event_add_signal(loop, NULL, SIGTERM, on_signal, NULL) < 0)
		errx(1, "no loop");
	if (!strcmp(what, "facts")) {
		open_store(argv + 2);
		check();
	} else if (!strcmp(what, "watch") && argc > 3) {
		open_store(argv + 3);
		watch(argv[2]);
	} else if (!strcmp(what, "count") && argc > 3) {
		open_store(argv + 3);
		count(argv[2]);
	} else if (!strcmp(what, "lead") && argc > 3) {
		open_store(argv + 3);
		lead(argv[2]);
	} else if (!strcmp(what, "crowd") && argc > 4) {
		gather(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), argv + 4);
	} else if (!strcmp(what, "put") && argc > 4) {
		open_store(argv + 4);
		printf("%s", name_of(put(argv[2], argv[3], NULL, false)));
		printf(" %s\n", last.why);
	} else if (!strcmp(what, "lease") && argc > 4) {
		open_store(argv + 4);
		lease_key = argv[2];
		lease_value = argv[3];
		store->lost = lease_lost;
		lease_write();
		sd_event_loop(loop);
	} else {
		errx(2, "see the first lines of tests/e2e/store.c");
	}
	store_close(store);
	sd_event_unref(loop);
	return failed > 0;
}
