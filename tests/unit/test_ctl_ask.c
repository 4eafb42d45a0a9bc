// SPDX-License-Identifier: GPL-2.0-only
/* What people hear when tallyd does not answer: a socket where nobody reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/ctl.h"

static char directory[] = "/tmp/tally-ask-XXXXXX";
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int listener;

static int up(void **state)
{
	assert_non_null(mkdtemp(directory));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (void *)&address, sizeof(address)) < 0)
		return -1;
	return listen(listener, 16);
}

static int down(void **state)
{
	close(listener);
	unlink(address.sun_path);
	return rmdir(directory);
}

static void hears(const char *verb, const char *name, const char *words)
{
	const struct ctl ctl = { .socket = address.sun_path, .timeout_ms = 20 };
	json_t *request = json_pack("{s:s, s:s*}", "do", verb, "name", name), *result = NULL;
	struct why why = { "" };

	assert_int_equal(ctl_ask(&ctl, request, &result, &why), -ETIMEDOUT);
	assert_null(result);
	assert_string_equal(why.text, words);
}

static void who_gives_up_hears_where_to_look(void **state)
{
	hears("job-create", "y",
	      "tallyd did not answer in time, and may still do it: look with tallyctl job list; "
	      "the token: tallyctl job token y");
	hears("job-rotate", "y",
	      "tallyd did not answer in time, and may still do it: look with tallyctl job list; "
	      "the token: tallyctl job token y");
	hears("job-del", "y",
	      "tallyd did not answer in time, and may still do it: look with tallyctl job list");
	hears("tenant-add", "red",
	      "tallyd did not answer in time, and may still do it: look with tallyctl tenant list");
	hears("reload", NULL,
	      "tallyd did not answer in time, and may still do it: look with tallyctl status");
}

static void who_only_looks_has_changed_nothing(void **state)
{
	hears("status", NULL, "tallyd did not answer in time");
	hears("job-list", "y", "tallyd did not answer in time");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_gives_up_hears_where_to_look),
		cmocka_unit_test(who_only_looks_has_changed_nothing),
	};

	return cmocka_run_group_tests(tests, up, down);
}
