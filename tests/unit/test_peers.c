// SPDX-License-Identifier: GPL-2.0-only
/* Answers of agents fit in what the asking one has room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/edge/teller.h"
#include "agent/peers.h"
#include "common/address.h"

static struct paths_view view;

/* No address has a longer text. */
static struct sockaddr_storage address_of(unsigned int i)
{
	struct sockaddr_storage a;
	char text[ADDRESS_BYTES], again[ADDRESS_BYTES];

	snprintf(text, sizeof(text), "fd77:1111:2222:3333:4444:5555:6666:%x", 0x7000 + i);
	assert_int_equal(address_parse(text, 1, &a), 0);
	address_print(&a, again, sizeof(again));
	assert_string_equal(again, text);
	return a;
}

/* All addresses of its own, and workers by as many next addresses. */
static size_t answer_length(unsigned int hops)
{
	struct sockaddr_storage next;
	size_t length;
	char *line;

	memset(&view, 0, sizeof(view));
	for (unsigned int i = 0; i < PATHS_OWN_MAX; i++)
		view.own[view.owns++] = address_of(i);
	for (unsigned int i = 0; i < TALLY_WORKERS_MAX; i++) {
		next = address_of(i % hops);
		paths_hop_add(&view, i, &next);
	}
	assert_int_equal(view.hops, hops);
	line = peers_hops_line(&view);
	assert_non_null(line);
	length = strlen(line);
	free(line);
	return length;
}

static void the_longest_answer_has_room(void **state)
{
	for (unsigned int hops = 1; hops <= TALLY_WORKERS_MAX; hops++)
		assert_in_range(answer_length(hops), 1, TELLER_ANSWER_BYTES);
}

/* Otherwise the bound says nothing. */
static void the_bound_is_no_wider_than_addresses_may_be(void **state)
{
	const size_t addresses = PATHS_OWN_MAX + TALLY_WORKERS_MAX;

	assert_in_range(answer_length(TALLY_WORKERS_MAX),
			TELLER_ANSWER_BYTES - addresses * (INET6_ADDRSTRLEN - 39) - 500,
			TELLER_ANSWER_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_answer_has_room),
		cmocka_unit_test(the_bound_is_no_wider_than_addresses_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
