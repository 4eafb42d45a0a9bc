// SPDX-License-Identifier: GPL-2.0-only
/* Where a tenant's messages may come in, in software: the rule, and what the spill does by it. */
#include "spill/points.h"
#include "tests/unit/sums_world.h"

enum {
	ETH1 = 11,
	ETH2 = 12,
};

static struct spill_way way(uint32_t interface, const char *from)
{
	struct spill_way w = { .interface = interface };

	assert_int_equal(address_parse(from, 7000, &w.from), 0);
	return w;
}

static struct spill_point at(uint32_t port, const char *source, uint8_t bits)
{
	struct spill_point p = { .port = port, .bits = bits };

	if (source)
		assert_int_equal(address_parse(source, 1, &p.source), 0);
	return p;
}

static enum tally_outcome ask(struct spill_point point, struct spill_way w)
{
	return spill_points_ask(&(struct spill_points){ .count = 1, .point = { point } }, &w);
}

static const char *const worker = "10.77.1.9";

static void a_point_has_its_port_and_no_other(void **state)
{
	const struct spill_point eth1 = at(ETH1, NULL, 0);

	assert_int_equal(ask(eth1, way(ETH1, worker)), TALLY_GO_ON);
	assert_int_equal(ask(eth1, way(ETH2, worker)), TALLY_OTHER_PORT);
	assert_int_equal(ask(eth1, way(0, worker)), TALLY_OTHER_PORT);
}

static void nothing_comes_in_by_a_point_with_a_vlan(void **state)
{
	struct spill_point eth1 = at(ETH1, NULL, 0);

	eth1.tagged = true;
	assert_int_equal(ask(eth1, way(ETH1, worker)), TALLY_OTHER_SOURCE);
	assert_int_equal(ask(eth1, way(ETH2, worker)), TALLY_OTHER_PORT);
}

/* The address of the prefix with one bit of the sender's flipped: that counts if it is within. */
static void every_length_of_a_prefix(const char *from, unsigned int bits_all)
{
	for (unsigned int bits = 0; bits <= bits_all; bits++)
		for (unsigned int bit = 0; bit < bits_all; bit++) {
			struct spill_point p = at(ETH1, from, bits);
			struct spill_way w = way(ETH1, from);
			size_t bytes;
			uint8_t *address = address_raw(&w.from, &bytes);

			assert_int_equal(ask(p, w), TALLY_GO_ON);
			address[bit / 8] ^= 0x80 >> bit % 8;
			assert_int_equal(ask(p, w), bit < bits ? TALLY_OTHER_SOURCE : TALLY_GO_ON);
		}
}

static void a_point_has_its_source_and_no_other(void **state)
{
	every_length_of_a_prefix("10.77.1.9", 32);
	every_length_of_a_prefix("fd77:1::9", 128);
	assert_int_equal(ask(at(ETH1, "fd77::1", 0), way(ETH1, worker)), TALLY_OTHER_SOURCE);
}

static void one_of_several_points_is_enough(void **state)
{
	const struct spill_points p = { .count = 3,
					.point = { at(ETH1, "10.76.0.0", 16),
						   at(ETH1, "10.77.0.0", 16), at(ETH2, NULL, 0) } };
	const struct {
		struct spill_way way;
		enum tally_outcome is;
	} ways[] = {
		{ way(ETH1, worker), TALLY_GO_ON },
		{ way(ETH1, "10.78.1.9"), TALLY_OTHER_SOURCE },
		{ way(ETH2, "10.78.1.9"), TALLY_GO_ON },
		{ way(13, worker), TALLY_OTHER_PORT },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		assert_int_equal(spill_points_ask(&p, &ways[i].way), ways[i].is);
}

static enum tally_outcome give_by(struct world *w, const struct message *m, uint32_t interface,
				  struct spill_reply *ret)
{
	struct spill_way by = way(interface, worker);

	return spill_message(w->spill, &m->header, message_bytes(m), &w->service, &by, NOW_NS, ret);
}

/* It touches no sum, nobody hears of it, and it is none of the job's. */
static void what_comes_in_elsewhere_is_refused(void **state)
{
	struct message m = contribution(0, 0, BLOCKS), old = m;
	struct spill_points points = { .count = 1, .point = { at(ETH1, NULL, 0) } };
	const uint32_t id = JOB;
	struct spill_reply reply;
	struct world w;

	world_make(&w, 2 * WINDOW);
	w.points = &points;
	assert_int_equal(put(&w, JOB, EPOCH + 1, WORKERS), 0);
	m.header.epoch = tally_le16(EPOCH + 1);
	tag(&m);
	old.header.version++;
	assert_int_equal(give_by(&w, &m, ETH2, &reply), TALLY_OTHER_PORT);
	assert_int_equal(reply.to, TALLY_TO_NOBODY);
	assert_int_equal(give_by(&w, &old, ETH2, &reply), TALLY_OTHER_VERSION);
	assert_int_equal(reply.to, TALLY_TO_NOBODY);
	points.point[0].tagged = true;
	assert_int_equal(give_by(&w, &m, ETH1, &reply), TALLY_OTHER_SOURCE);
	assert_int_equal(spill_memory(w.spill).bytes, 0);
	assert_int_equal(spill_counters(w.spill, NULL)[TALLY_OTHER_PORT].packet, 1);
	assert_int_equal(spill_counters(w.spill, NULL)[TALLY_OTHER_SOURCE].packet, 1);
	assert_int_equal(spill_counters(w.spill, &id)[TALLY_OTHER_PORT].packet, 0);
	points.point[0].tagged = false;
	assert_int_equal(give_by(&w, &m, ETH1, &reply), TALLY_ABSORBED);
	assert_int_equal(give_by(&w, &old, ETH1, &reply), TALLY_OLD_VERSION);
	points.count = 0;
	assert_int_equal(give_by(&w, &m, ETH1, &reply), TALLY_OTHER_PORT);
	points.anywhere = true;
	assert_int_equal(give_by(&w, &m, ETH2, &reply), TALLY_DUPLICATE);
	spill_free(w.spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_has_its_port_and_no_other),
		cmocka_unit_test(nothing_comes_in_by_a_point_with_a_vlan),
		cmocka_unit_test(a_point_has_its_source_and_no_other),
		cmocka_unit_test(one_of_several_points_is_enough),
		cmocka_unit_test(what_comes_in_elsewhere_is_refused),
	};

	return cmocka_run_group_tests_name("points", tests, NULL, NULL);
}
