// SPDX-License-Identifier: GPL-2.0-only
/*
 * The spill's sums against a node over memory without limits (memory_node.h), which follows the
 * same rules: the same messages must have the same outcomes and replies, whatever comes. Then what
 * only the spill has: a limit of memory, several jobs, replies that wait to be sent.
 */
#include <errno.h>
#include <tally/maps.h>

#include "tests/unit/random.h"
#include "tests/unit/sums_world.h"

/* --- as the rules say */

/* Any message that a worker, or somebody who is out of step, may send. */
static struct message any_message(uint64_t *random)
{
	struct message m = contribution(random_below(random, 4 * WINDOW),
					random_below(random, WORKERS),
					random_below(random, BLOCKS + 1));
	struct tally_header *h = &m.header;

	if (chance(random, 100))
		h->kind = 1 + random_below(random, 6);
	if (chance(random, 100))
		h->set = tally_le64(random_below(random, 16));
	if (h->kind == TALLY_REPAIR && chance(random, 900))
		h->set = tally_le64((1 << WORKERS) - 1);
	if (chance(random, 200))
		h->flags |= TALLY_FLUSH | (chance(random, 300) ? TALLY_REJECT : 0);
	if (chance(random, 100))
		h->flags |= 1 << random_below(random, 8);
	if (chance(random, 200))
		h->about = tally_le16(1 + random_below(random, WINDOW));
	if (chance(random, 200))
		h->recipient = tally_le16(random_below(random, WORKERS));
	if (chance(random, 50))
		h->call = tally_le64(2);
	if (chance(random, 50))
		h->edition = random_below(random, 3);
	if (chance(random, 20))
		h->epoch = tally_le16(EPOCH + 1);
	tag(&m);
	if (chance(random, 20))
		h->tag ^= 1;
	return m;
}

static const char *compare(const struct spill_reply *r, const struct message *m)
{
	struct message got = { 0 };

	memcpy(&got.header, r->header, r->header_bytes);
	if (r->header_bytes != message_header_bytes(m))
		return "another length of header";
	if (!(got.header.flags & TALLY_SPILLED))
		return "a reply that does not say that it was made in software";
	got.header.flags &= ~TALLY_SPILLED;
	tag(&got);
	if (memcmp(&got.header, &m->header, sizeof(got.header)) != 0)
		return "another header";
	if (r->payload_bytes != m->header.blocks * (size_t)TALLY_BLOCK_BYTES)
		return "another length of payload";
	if (r->payload_bytes &&
	    memcmp(r->word, message_words((struct message *)m), r->payload_bytes) != 0)
		return "another payload";
	return NULL;
}

static const char *one_message(struct world *w, uint64_t *random)
{
	struct message m = any_message(random);
	struct spill_reply reply;
	struct visit visit;
	enum tally_outcome out;

	if (m.header.flags & TALLY_LARGE)
		return NULL; /* another length */
	visit_begin(&w->node, &m, &visit);
	out = visit_end(&w->node, &visit);
	if (give(w, &m, &reply) != out)
		return "another outcome";
	if (reply.to != tally_outcome_to(out))
		return "another recipient";
	if (w->changed)
		return "a payload that changed before it was sent";
	if (reply.word) {
		memcpy(w->copy[w->count], reply.word, reply.payload_bytes);
		w->unsent[w->count++] = reply;
	}
	if (w->count == 2 * WINDOW)
		settle(w);
	return visit.reply.kind ? compare(&reply, &visit.message) : NULL;
}

static const char *world_runs(uint64_t seed)
{
	const char *wrong = NULL;
	uint64_t random = seed;
	struct world w;

	world_make(&w, 2 * WINDOW);
	for (int i = 0; i < MESSAGES && !wrong; i++)
		wrong = one_message(&w, &random);
	spill_free(w.spill);
	return wrong;
}

static void it_does_what_the_rules_say(void **state) { run_seeds(1000, world_runs); }

/* --- sums that come up: of child nodes, and of the pool on this machine */

static struct message sum_of(uint32_t seq, unsigned int first, unsigned int second)
{
	struct message m = contribution(seq, first, BLOCKS), other;

	other = contribution(seq, second, BLOCKS);
	for (unsigned int i = 0; i < BLOCKS * TALLY_BLOCK_WORDS; i++)
		m.word[i] += other.word[i];
	m.header.set |= other.header.set;
	tag(&m);
	return m;
}

static void assert_sum(const struct spill_reply *r, uint32_t seq)
{
	for (unsigned int i = 0; i < BLOCKS * TALLY_BLOCK_WORDS; i++)
		assert_int_equal(r->word[i],
				 WORKERS * (1000 * seq + i) + WORKERS * (WORKERS - 1) / 2);
}

/* Whichever of its ranks is in `sender`: the answer goes where the packet came from. */
static void a_sum_of_several_ranks_is_one_contribution(void **state)
{
	struct message both = sum_of(1, 0, 2), alone = contribution(1, 0, BLOCKS);
	struct spill_reply reply;
	struct world w;

	world_make(&w, 2);
	assert_int_equal(give(&w, &both, &reply), TALLY_ABSORBED);
	assert_int_equal(give(&w, &both, &reply), TALLY_DUPLICATE);
	assert_int_equal(give(&w, &alone, &reply), TALLY_DUPLICATE);
	assert_int_equal(contribute(&w, 1, 1), TALLY_COMPLETED);
	assert_int_equal(give(&w, &both, &reply), TALLY_ANSWERED_ALL);
	assert_int_equal(reply.to, TALLY_TO_GROUP);
	assert_sum(&reply, 1);
	assert_int_equal(give(&w, &alone, &reply), TALLY_ANSWERED);
	assert_int_equal(reply.to, TALLY_TO_SENDER);
	assert_sum(&reply, 1);
	spill_free(w.spill);
}

static void what_two_sums_have_in_common_is_added_once(void **state)
{
	struct message first = sum_of(1, 0, 1), second = sum_of(1, 1, 2);
	struct message left = contribution(1, 2, BLOCKS);
	struct spill_reply reply;
	struct world w;

	world_make(&w, 2);
	assert_int_equal(give(&w, &first, &reply), TALLY_ABSORBED);
	assert_int_equal(give(&w, &second, &reply), TALLY_OVERLAP);
	assert_int_equal(give(&w, &left, &reply), TALLY_COMPLETED);
	assert_sum(&reply, 1);
	spill_free(w.spill);
}

/* --- the limit of memory */

static void finish(struct world *w, uint32_t seq)
{
	for (unsigned int rank = 0; rank + 1 < WORKERS; rank++)
		assert_int_equal(contribute(w, seq, rank), TALLY_ABSORBED);
	assert_int_equal(contribute(w, seq, WORKERS - 1), TALLY_COMPLETED);
}

static void the_sum_goes_that_was_finished_first(void **state)
{
	struct world w;

	world_make(&w, 2);
	finish(&w, 1);
	finish(&w, 0);
	assert_int_equal(contribute(&w, 2, 0), TALLY_ABSORBED);
	assert_int_equal(spill_memory(w.spill).evicted, 1);
	assert_int_equal(spill_memory(w.spill).bytes, 2 * SUM_BYTES);
	assert_int_equal(contribute(&w, 0, 1), TALLY_ANSWERED);
	/* As a root that has lost it: the workers are asked, and bring it back. */
	assert_int_equal(contribute(&w, 1, 1), TALLY_ABSORBED);
	assert_int_equal(spill_memory(w.spill).evicted, 2);
	spill_free(w.spill);
}

static void where_no_sum_is_finished_a_message_is_refused(void **state)
{
	struct message none = contribution(1, 0, 0);
	struct spill_reply reply;
	struct world w;

	world_make(&w, 1);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 1, 0), TALLY_NO_MEMORY);
	assert_int_equal(spill_memory(w.spill).full, 1);
	assert_int_equal(give(&w, &none, &reply), TALLY_ABSORBED); /* it needs none */
	assert_int_equal(contribute(&w, 0, 1), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 0, 2), TALLY_COMPLETED);
	assert_int_equal(contribute(&w, 1, 1), TALLY_ABSORBED); /* now there is room */
	spill_free(w.spill);
}

/* Rank 2 awaits chunk 0, whose result it has lost, and so does not send chunk 2. */
static void an_older_chunk_takes_the_memory_of_a_later_one(void **state)
{
	struct world w;

	world_make(&w, 1);
	finish(&w, 0);
	assert_int_equal(contribute(&w, 2, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 3, 0), TALLY_NO_MEMORY);
	finish(&w, 0);
	finish(&w, 2);
	spill_free(w.spill);
}

static void a_sum_that_does_not_grow_makes_room_after_a_second(void **state)
{
	struct message m = contribution(1, 0, BLOCKS);
	struct spill_reply reply;
	struct world w;

	world_make(&w, 1);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	for (uint32_t ms = 0; ms <= 1000; ms++)
		assert_int_equal(spill_message(w.spill, &m.header, message_bytes(&m), &w.service,
					       NULL, (NOW_MS + ms) * 1000000ull, &reply),
				 ms < 1000 ? TALLY_NO_MEMORY : TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 0, 1), TALLY_ABSORBED);
	spill_free(w.spill);
}

/* Its repetition takes memory and leaves it as it is. */
static void memory_for_what_comes_too_late_makes_room_too(void **state)
{
	struct message m = contribution(1, 0, BLOCKS);
	struct spill_reply reply;
	struct world w;

	world_make(&w, 1);
	finish(&w, 2 * WINDOW);
	finish(&w, 3);
	assert_int_equal(contribute(&w, 0, 1), TALLY_BEHIND);
	assert_int_equal(spill_message(w.spill, &m.header, message_bytes(&m), &w.service, NULL,
				       NOW_NS + 1000000000, &reply),
			 TALLY_ABSORBED);
	spill_free(w.spill);
}

static void a_reply_leaves_before_its_memory_is_another_chunks(void **state)
{
	struct world w;

	world_make(&w, 1);
	finish(&w, 0);
	w.settles = 0;
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED);
	assert_int_equal(w.settles, 1);
	spill_free(w.spill);
}

/* --- jobs */

static void a_job_keeps_its_sums_but_not_over_epochs(void **state)
{
	struct message m = contribution(0, 1, BLOCKS);
	struct spill_reply reply;
	struct world w;

	world_make(&w, 2);
	finish(&w, 0);
	assert_int_equal(put(&w, JOB, EPOCH, WORKERS), 0);
	assert_int_equal(contribute(&w, 0, 1), TALLY_ANSWERED);
	assert_int_equal(put(&w, JOB, EPOCH + 1, WORKERS), 0);
	assert_int_equal(spill_memory(w.spill).bytes, 0);
	assert_int_equal(spill_jobs(w.spill), 1);
	assert_int_equal(contribute(&w, 0, 1), TALLY_WRONG_EPOCH);
	m.header.epoch = tally_le16(EPOCH + 1);
	tag(&m);
	assert_int_equal(give(&w, &m, &reply), TALLY_ABSORBED);
	spill_free(w.spill);
}

static void many_jobs_come_and_go(void **state)
{
	struct world w;

	world_make(&w, 2);
	for (uint32_t id = 100; id < 5000; id++)
		assert_int_equal(put(&w, id, EPOCH, WORKERS), 0);
	assert_int_equal(spill_jobs(w.spill), 4901);
	for (uint32_t id = 100; id < 5000; id++)
		assert_int_equal(spill_job_remove(w.spill, id), 0);
	assert_int_equal(spill_job_remove(w.spill, 100), -ENOENT);
	finish(&w, 0);
	spill_free(w.spill);
}

struct said {
	unsigned int jobs;
	uint64_t absorbed;
	uint16_t tenant;
};

static void hear(void *context, uint32_t id, uint16_t tenant, const struct tally_counter *counter)
{
	struct said *said = context;

	said->jobs++;
	said->absorbed += counter[TALLY_ABSORBED].packet;
	if (id == JOB)
		said->tenant = tenant;
}

static void each_job_says_what_came(void **state)
{
	struct said said = { 0 };
	struct world w;

	world_make(&w, 2);
	assert_int_equal(put(&w, JOB + 1024, EPOCH, WORKERS), 0); /* perhaps in the same bucket */
	finish(&w, 0);
	spill_each(w.spill, hear, &said);
	assert_int_equal(said.jobs, 2);
	assert_int_equal(said.absorbed, WORKERS - 1);
	assert_int_equal(said.tenant, TENANT);
	spill_free(w.spill);
}

static enum tally_outcome contribute_at(struct world *w, uint32_t seq, unsigned int rank,
					uint64_t now_ns, struct spill_reply *ret)
{
	struct message m = contribution(seq, rank, BLOCKS);

	return spill_message(w->spill, &m.header, message_bytes(&m), &w->service, NULL, now_ns,
			     ret);
}

static uint8_t flags_of_sum(struct world *w, uint32_t seq, unsigned int marked)
{
	struct spill_reply reply = { 0 };
	const struct tally_header *h = (const void *)reply.header;

	for (unsigned int rank = 0; rank < WORKERS; rank++) {
		const struct spill_way way = { .marked = rank == marked };
		struct message m = contribution(seq, rank, BLOCKS);

		spill_message(w->spill, &m.header, message_bytes(&m), &w->service, &way, NOW_NS,
			      &reply);
	}
	return h->flags;
}

static void a_sum_is_marked_if_a_contribution_met_congestion(void **state)
{
	struct world w;

	world_make(&w, 1);
	assert_int_equal(flags_of_sum(&w, 0, WORKERS), TALLY_SPILLED);
	for (unsigned int rank = 0; rank < WORKERS; rank++)
		assert_int_equal(flags_of_sum(&w, 1 + rank, rank), TALLY_SPILLED | TALLY_MARKED);
	spill_free(w.spill);
}

/* Charged as in the data plane: what comes in, and each copy that leaves. */
static void a_tenant_pays_for_what_comes_and_for_copies(void **state)
{
	const int64_t frame = 14 + 20 + 8 + sizeof(struct tally_header) + SUM_BYTES;
	struct spill_limits tenant = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.is = { .limited = 1,
			.packets = { .rate = 10, .burst = WORKERS + 1, .level = WORKERS + 1 },
			.bytes = { .rate = 1000, .burst = 100 * frame, .level = 100 * frame } },
	};
	struct spill_reply reply;
	struct world w;

	world_make(&w, 2 * WINDOW);
	w.limits = &tenant;
	assert_int_equal(put(&w, JOB, EPOCH, WORKERS), 0);
	for (unsigned int rank = 0; rank < WORKERS; rank++)
		assert_int_equal(contribute_at(&w, 0, rank, 1, &reply),
				 rank + 1 < WORKERS ? TALLY_ABSORBED : TALLY_COMPLETED);
	assert_int_equal(tenant.is.packets.level, 1 - WORKERS);
	assert_int_equal(tenant.is.bytes.level, (100 - 2 * WORKERS) * frame);
	assert_int_equal(contribute_at(&w, 1, 0, 1, &reply), TALLY_OVER_RATE);
	assert_int_equal(reply.to, TALLY_TO_NOBODY);
	assert_int_equal(contribute_at(&w, 1, 0, WORKERS * TALLY_SECOND_NS, &reply),
			 TALLY_ABSORBED);
	spill_free(w.spill);
}

static void a_job_that_is_not_sound_is_refused(void **state)
{
	struct world w;

	world_make(&w, 2);
	assert_int_equal(put(&w, JOB + 1, EPOCH, WORKERS - 1), -EINVAL); /* a rank without copy */
	assert_int_equal(spill_jobs(w.spill), 1);
	spill_free(w.spill);
}

static void what_is_not_for_it_is_counted(void **state)
{
	struct message m = contribution(0, 0, 1);
	struct sockaddr_storage other;
	struct spill_reply reply;
	uint32_t id = JOB;
	struct world w;

	world_make(&w, 2);
	assert_int_equal(address_parse("10.77.1.2", TALLY_UDP_PORT, &other), 0);
	assert_int_equal(
		spill_message(w.spill, &m.header, message_bytes(&m), &other, NULL, 0, &reply),
		TALLY_OTHER_ADDRESS);
	assert_int_equal(spill_message(w.spill, &m.header, 63, &w.service, NULL, 0, &reply),
			 TALLY_TRUNCATED);
	assert_int_equal(spill_message(w.spill, &m.header, 64, &w.service, NULL, 0, &reply),
			 TALLY_BAD_LENGTH);
	assert_int_equal(spill_message(w.spill, &m.header, 0, &w.service, NULL, 0, &reply),
			 TALLY_FOREIGN);
	m.header.job = tally_le32(JOB + 1);
	assert_int_equal(give(&w, &m, &reply), TALLY_UNKNOWN_JOB);
	assert_int_equal(spill_counters(w.spill, NULL)[TALLY_BAD_LENGTH].byte, 14 + 20 + 8 + 64);
	assert_int_equal(spill_counters(w.spill, &id)[TALLY_BAD_LENGTH].packet, 0);
	id++;
	assert_null(spill_counters(w.spill, &id));
	spill_free(w.spill);
}

/* As the data plane answers: tests/bpf/test_ingress.c. */
static void another_version_hears_of_ours(void **state)
{
	struct message m = contribution(5, 0, 1);
	struct tally_header ask;
	struct spill_reply reply;
	unsigned int answered = 0;
	struct world w;

	world_make(&w, 2);
	spill_answers_share(w.spill, 4);
	m.header.version = 1;
	assert_int_equal(give(&w, &m, &reply), TALLY_OLD_VERSION);
	assert_int_equal(reply.to, TALLY_TO_SENDER);
	assert_int_equal(reply.header_bytes, sizeof(ask));
	assert_int_equal(reply.payload_bytes, 0);
	memcpy(&ask, reply.header, sizeof(ask));
	assert_int_equal(ask.version, TALLY_VERSION);
	assert_int_equal(ask.kind, TALLY_ASK);
	assert_int_equal(tally_le32_get(ask.seq), 5);
	assert_int_equal(tally_le64_get(ask.tag), tally_tag(&ask, &(struct tally_set){ { 0 } }));
	while (answered < 1000 && give(&w, &m, &reply) == TALLY_OLD_VERSION)
		answered++;
	assert_int_equal(answered, TALLY_ANSWERS_AT_ONCE / 4 - 1);
	assert_int_equal(reply.to, TALLY_TO_NOBODY);
	assert_int_equal(spill_message(w.spill, &m.header, message_bytes(&m), &w.service, NULL,
				       NOW_NS + 4000000, &reply),
			 TALLY_OLD_VERSION);
	m.header.kind = TALLY_RESULT;
	assert_int_equal(give(&w, &m, &reply), TALLY_OTHER_VERSION);
	m.header.kind = TALLY_CONTRIBUTION;
	m.header.job = tally_le32(JOB + 1);
	assert_int_equal(give(&w, &m, &reply), TALLY_OTHER_VERSION);
	assert_int_equal(spill_message(w.spill, &m.header, 63, &w.service, NULL, 0, &reply),
			 TALLY_OTHER_VERSION);
	spill_free(w.spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_does_what_the_rules_say),
		cmocka_unit_test(a_sum_of_several_ranks_is_one_contribution),
		cmocka_unit_test(what_two_sums_have_in_common_is_added_once),
		cmocka_unit_test(the_sum_goes_that_was_finished_first),
		cmocka_unit_test(where_no_sum_is_finished_a_message_is_refused),
		cmocka_unit_test(an_older_chunk_takes_the_memory_of_a_later_one),
		cmocka_unit_test(a_sum_that_does_not_grow_makes_room_after_a_second),
		cmocka_unit_test(memory_for_what_comes_too_late_makes_room_too),
		cmocka_unit_test(a_reply_leaves_before_its_memory_is_another_chunks),
		cmocka_unit_test(a_job_keeps_its_sums_but_not_over_epochs),
		cmocka_unit_test(many_jobs_come_and_go),
		cmocka_unit_test(each_job_says_what_came),
		cmocka_unit_test(a_sum_is_marked_if_a_contribution_met_congestion),
		cmocka_unit_test(a_tenant_pays_for_what_comes_and_for_copies),
		cmocka_unit_test(a_job_that_is_not_sound_is_refused),
		cmocka_unit_test(what_is_not_for_it_is_counted),
		cmocka_unit_test(another_version_hears_of_ours),
	};

	return cmocka_run_group_tests_name("sums", tests, NULL, NULL);
}
