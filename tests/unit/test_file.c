// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Small files are read as a whole, up to a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/util.h"

static char directory[64], path[96];

static int directory_make(void **state)
{
	snprintf(directory, sizeof(directory), "/tmp/tally-file-XXXXXX");
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

static void file_make(size_t length)
{
	FILE *f = fopen(path, "we");

	for (size_t i = 0; f && i < length; i++)
		fputc((int)(i % 251), f); /* NULs too */
	assert_true(f && fclose(f) == 0);
}

/* Around each size that the buffer grows to. */
static void files_of_any_length_are_read_with_a_nul_behind_them(void **state)
{
	static const size_t lengths[] = { 0,	1,    4094, 4095, 4096,	 4097,
					  8191, 8192, 8193, 9999, 65535, 65536 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		_cleanup_(freep) char *text = NULL;
		size_t length = 77;

		file_make(lengths[i]);
		assert_int_equal(file_read(path, 65536, &text, &length), 0);
		assert_int_equal(length, lengths[i]);
		for (size_t k = 0; k < length; k++)
			assert_int_equal((unsigned char)text[k], k % 251);
		assert_int_equal(text[length], '\0');
	}
}

static void a_limit_is_held_to_the_byte(void **state)
{
	static const size_t limits[] = { 0, 1, 100, 4095, 4096, 5000 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		_cleanup_(freep) char *text = NULL;
		char *untouched = (char *)0x77;
		size_t length;

		file_make(limits[i]);
		assert_int_equal(file_read(path, limits[i], &text, &length), 0);
		assert_int_equal(length, limits[i]);
		file_make(limits[i] + 1);
		assert_int_equal(file_read(path, limits[i], &untouched, &length), -EFBIG);
		assert_ptr_equal(untouched, (char *)0x77);
		assert_int_equal(length, limits[i]);
	}
}

static void what_cannot_be_read_says_why(void **state)
{
	char *text = NULL;
	size_t length;

	assert_int_equal(file_read(path, 10, &text, &length), -ENOENT);
	assert_int_equal(file_read(directory, 10, &text, &length), -EISDIR);
	assert_null(text);
}

static void *pieces_write(void *to)
{
	for (int i = 0; i < 1000; i++)
		if (write(*(int *)to, "0123456789", 10) != 10)
			break;
	close(*(int *)to);
	return NULL;
}

/* A pipe gives less than is asked for. */
static void a_file_that_comes_in_pieces_is_read_whole(void **state)
{
	_cleanup_(freep) char *text = NULL;
	char name[32];
	pthread_t writer;
	size_t length;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&writer, NULL, pieces_write, &ends[1]), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[0]);
	assert_int_equal(file_read(name, 20000, &text, &length), 0);
	pthread_join(writer, NULL);
	close(ends[0]);
	assert_int_equal(length, 10000);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(text[i], '0' + i % 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, directory_make, directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_of_any_length_are_read_with_a_nul_behind_them),
		TEST(a_limit_is_held_to_the_byte),
		TEST(what_cannot_be_read_says_why),
		TEST(a_file_that_comes_in_pieces_is_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
