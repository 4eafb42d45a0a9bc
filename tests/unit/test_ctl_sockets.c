// SPDX-License-Identifier: GPL-2.0-only
/* Who has a port, by the kernel's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "ctl/sockets.h"

#define HEAD                                                                                           \
	"   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout " \
	"inode ref pointer drops\n"

static const char udp[] = HEAD
	" 1219: 0100007F:7A11 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
	"18237 2 0000000000000000 0\n"
	" 1220: 00000000:0035 00000000:7A11 01 00000000:00000000 00:00000000 00000000   107        0 "
	"99 2 0000000000000000 0\n";

static const char tcp6[] = HEAD
	"   0: 00000000000000000000000000000000:7A11 00000000000000000000000000000000:0000 0A "
	"00000000:00000000 00:00000000 00000000     0        0 4242 1 0000000000000000 100 0 0 10 0\n";

static void the_socket_of_a_port_is_found(void **state)
{
	uint64_t inode = 1;

	assert_int_equal(sockets_find(udp, 31249, 0, &inode), 0);
	assert_int_equal(inode, 18237);
	assert_int_equal(sockets_find(udp, 53, 0, &inode), 0);
	assert_int_equal(inode, 99);
	assert_int_equal(sockets_find(tcp6, 31249, 0x0a, &inode), 0);
	assert_int_equal(inode, 4242);
}

static void other_ports_and_states_are_not(void **state)
{
	uint64_t inode = 1;

	assert_int_equal(sockets_find(udp, 31250, 0, &inode), -ENOENT);
	assert_int_equal(sockets_find(udp, 31249, 0x0a, &inode), -ENOENT);
	assert_int_equal(sockets_find("", 31249, 0, &inode), -ENOENT);
	assert_int_equal(sockets_find(HEAD, 31249, 0, &inode), -ENOENT);
	assert_int_equal(sockets_find("\n\n0: :7A11\nx", 31249, 0, &inode), -ENOENT);
	assert_int_equal(inode, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_socket_of_a_port_is_found),
		cmocka_unit_test(other_ports_and_states_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
