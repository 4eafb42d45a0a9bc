// SPDX-License-Identifier: GPL-2.0-only
/* What is known of drivers and sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "agent/core/port_check.h"

static struct netlink_port port(const char *driver, uint32_t channels, uint32_t most)
{
	struct netlink_port p = { .channels = channels, .channels_max = most };

	snprintf(p.driver, sizeof(p.driver), "%s", driver);
	return p;
}

/* The rule itself, as the driver has it: looped over all small numbers. */
static void virtio_net_is_unsafe_where_xdp_gets_no_queues_of_its_own(void **state)
{
	for (uint32_t cpus = 1; cpus < 9; cpus++)
		for (uint32_t channels = 0; channels < 17; channels++)
			for (uint32_t most = channels; most < 33; most++) {
				struct netlink_port p = port("virtio_net", channels, most);
				bool fits = channels <= cpus || most - channels >= cpus;

				assert_int_equal(port_panics_in_native(&p, cpus, false), !fits);
				assert_false(port_panics_in_native(&p, cpus, true));
				p = port("ice", channels, most);
				assert_false(port_panics_in_native(&p, cpus, false));
			}
}

static void the_biggest_payload_of_an_mtu_fits_and_the_next_does_not(void **state)
{
	assert_int_equal(port_payload_max(1500, false, 64), 1408);
	assert_int_equal(port_payload_max(1500, true, 64), 1344);
	assert_int_equal(port_mtu_needed(3392, false, 64), 3484);
	assert_int_equal(port_mtu_needed(3392, true, 64), 3504);
	assert_int_equal(port_mtu_needed(1344, false, 65), 1468);
	assert_int_equal(port_payload_max(9000, false, 1), 3392);
	for (uint32_t mtu = 0; mtu < 4000; mtu++)
		for (int ip6 = 0; ip6 < 2; ip6++) {
			uint32_t payload = port_payload_max(mtu, ip6, 1);

			assert_int_equal(payload % 64, 0);
			assert_true(!payload || port_mtu_needed(payload, ip6, 1) <= mtu);
			assert_true(payload == 3392 || port_mtu_needed(payload + 64, ip6, 1) > mtu);
		}
}

static void drivers_with_small_buffers_have_their_own_limit(void **state)
{
	assert_int_equal(port_mtu_max("gve"), 2032);
	assert_int_equal(port_mtu_max("veth"), 3500);
	assert_int_equal(port_mtu_max(""), 3500);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(virtio_net_is_unsafe_where_xdp_gets_no_queues_of_its_own),
		cmocka_unit_test(the_biggest_payload_of_an_mtu_fits_and_the_next_does_not),
		cmocka_unit_test(drivers_with_small_buffers_have_their_own_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
