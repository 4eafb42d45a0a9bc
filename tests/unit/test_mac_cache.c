// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/mac_cache.h"

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 }, other_mac[6] = { 2, 0, 0, 0, 0, 2 };
static struct mac_cache cache;

static int begin(void **state)
{
	memset(&cache, 0, sizeof(cache));
	return 0;
}

static struct sockaddr_storage address4(uint32_t number)
{
	struct sockaddr_storage a = { 0 };

	*(struct sockaddr_in *)&a = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x0a000000 + number),
	};
	return a;
}

static struct sockaddr_storage address6(uint8_t number)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in6 *ip6 = (void *)&a;

	ip6->sin6_family = AF_INET6;
	ip6->sin6_addr.s6_addr[0] = 0xfd;
	ip6->sin6_addr.s6_addr[15] = number;
	return a;
}

static void a_neighbour_is_news_once(void **state)
{
	const struct sockaddr_storage ip4 = address4(1), ip6 = address6(1);

	assert_true(mac_cache_learn(&cache, 7, &ip4, mac));
	assert_false(mac_cache_learn(&cache, 7, &ip4, mac));
	assert_true(mac_cache_learn(&cache, 7, &ip6, mac));
	assert_false(mac_cache_learn(&cache, 7, &ip6, mac));
}

static void another_mac_is_news(void **state)
{
	const struct sockaddr_storage address = address4(1);

	mac_cache_learn(&cache, 7, &address, mac);
	assert_true(mac_cache_learn(&cache, 7, &address, other_mac));
	assert_false(mac_cache_learn(&cache, 7, &address, other_mac));
	assert_true(mac_cache_learn(&cache, 7, &address, mac));
}

/* The same address behind another interface, and all of an IPv6 address's bytes. */
static void neighbours_are_not_mixed_up(void **state)
{
	const struct sockaddr_storage ip4 = address4(1);

	mac_cache_learn(&cache, 7, &ip4, mac);
	assert_true(mac_cache_learn(&cache, 8, &ip4, mac));
	for (int byte = 1; byte < 16; byte++) {
		struct sockaddr_storage ip6 = address6(0);

		((struct sockaddr_in6 *)&ip6)->sin6_addr.s6_addr[byte] ^= 0x80;
		assert_true(mac_cache_learn(&cache, 7, &ip6, mac));
	}
}

static void a_thousand_neighbours_are_remembered(void **state)
{
	for (int round = 0; round < 2; round++)
		for (uint32_t who = 0; who < 1000; who++) {
			const struct sockaddr_storage address = address4(who * 2654435761u >> 8);

			assert_int_equal(mac_cache_learn(&cache, 7, &address, mac), round == 0);
		}
}

/* Against a list that forgets nothing: what has changed is news always. */
static void no_change_is_missed(void **state)
{
	enum {
		NEIGHBOURS = 4 * MAC_CACHE_PLACES,
		STEPS = 100000
	};
	static uint8_t last[NEIGHBOURS]; /* of its MAC; 0: never heard of */
	unsigned int known = 0;

	srand(1);
	for (int step = 0; step < STEPS; step++) {
		unsigned int who = rand() % (step % 2 ? NEIGHBOURS : 100);
		uint8_t now[6] = { 2, 0, 0, 0, 0, 1 + rand() % 2 };
		const struct sockaddr_storage address = address4(who);
		bool news = mac_cache_learn(&cache, 7, &address, now);

		if (now[5] != last[who])
			assert_true(news);
		known += !news;
		last[who] = now[5];
	}
	assert_in_range(known, STEPS / 100, STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_neighbour_is_news_once, begin),
		cmocka_unit_test_setup(another_mac_is_news, begin),
		cmocka_unit_test_setup(neighbours_are_not_mixed_up, begin),
		cmocka_unit_test_setup(a_thousand_neighbours_are_remembered, begin),
		cmocka_unit_test_setup(no_change_is_missed, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
