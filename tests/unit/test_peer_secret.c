// SPDX-License-Identifier: GPL-2.0-only
/* A file has one secret, or two while it is changed; what else it has is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/edge/peer_secret.h"

#define OLD "000102030405060708090a0b0c0d0e0f"
#define NEW "f0e0d0c0b0a090807060504030201000"

static char directory[64], path[96];
static uint8_t key[PEER_SECRETS][SECRET_KEY_BYTES];

static int directory_make(void **state)
{
	snprintf(directory, sizeof(directory), "/tmp/tally-secret-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/file", directory);
	return 0;
}

static int directory_remove(void **state)
{
	unlink(path);
	return rmdir(directory);
}

static void file_has(const char *text, mode_t mode)
{
	FILE *f = fopen(path, "we");

	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, mode) == 0);
}

static void reads(const char *text, const char *first, const char *second)
{
	uint8_t wanted[PEER_SECRETS][SECRET_KEY_BYTES];
	struct why why;

	file_has(text, 0640);
	assert_int_equal(peer_secret_read(path, key, &why), 0);
	secret_token_key(first, wanted[0]);
	secret_token_key(second, wanted[1]);
	assert_memory_equal(key, wanted, sizeof(key));
}

static void refuses(const char *text, mode_t mode, int error, const char *words)
{
	const uint8_t before = key[1][3];
	struct why why = { "" };

	file_has(text, mode);
	assert_int_equal(peer_secret_read(path, key, &why), error);
	assert_non_null(strstr(why.text, path));
	assert_non_null(strstr(why.text, words));
	assert_int_equal(key[1][3], before);
}

static void a_file_has_one_secret_or_two(void **state)
{
	reads(OLD, OLD, OLD);
	reads(OLD "\n", OLD, OLD);
	reads(OLD "\n" NEW "\n", OLD, NEW);
	reads(NEW "\r\n" OLD, NEW, OLD);
	reads(OLD "\n\n", OLD, OLD);
}

static void what_is_wrong_is_named(void **state)
{
	struct why why = { "" };

	refuses(OLD, 0644, -EPERM,
		"every user of this machine may read or write the agents' "
		"secret: chmod o= /");
	refuses(OLD, 0602, -EPERM, "every user of this machine may read or write");
	refuses("", 0600, -EINVAL, "no secret of agents: 32 to 128 of");
	refuses("short\n", 0600, -EINVAL, "no secret of agents: 32 to 128 of");
	refuses(OLD "\nshort\n", 0600, -EINVAL, "no secret of agents: 32 to 128 of");
	refuses(OLD "!\n", 0600, -EINVAL, "no secret of agents: 32 to 128 of");
	refuses(OLD "\n" NEW "\n" OLD "\n", 0600, -EINVAL, "more than two lines");
	assert_int_equal(peer_secret_read("/", key, &why), -EISDIR); /* no advice to change that */
	assert_string_equal(why.text, "the agents' secret, /: Is a directory");
	unlink(path);
	assert_int_equal(peer_secret_read(path, key, &why), -ENOENT);
	assert_non_null(strstr(why.text, "No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_has_one_secret_or_two),
		cmocka_unit_test(what_is_wrong_is_named),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}
