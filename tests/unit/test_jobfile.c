// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The job file: what is taken, what is refused, and that the refusal says where and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/address.h"
#include "common/jobfile.h"

#define IP4 "job 7\nservice 10.77.0.1\nworker 10.77.1.1:40000\n"
#define IP6 "job 7\nservice fd77::1\nworker [fd77:1::1]:40000\n"

static struct run file;
static char why[400];

/* From an exact copy on the heap, so that a step past its end is seen. */
static int parse_bytes(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int r;

	memcpy(copy, text, length);
	memset(&file, 0xee, sizeof(file));
	r = jobfile_parse(copy, length, &file, why, sizeof(why));
	free(copy);
	return r;
}

static void taken(const char *text)
{
	assert_int_equal(parse_bytes(text, strlen(text)), 0);
	assert_string_equal(why, "");
}

static void refused(const char *text, const char *reason)
{
	struct run untouched;

	memset(&untouched, 0xee, sizeof(untouched));
	assert_int_equal(parse_bytes(text, strlen(text)), -EINVAL);
	assert_string_equal(why, reason);
	assert_memory_equal(&file, &untouched, sizeof(file));
}

static void a_full_file_is_read(void **state)
{
	const struct sockaddr_in *a;

	taken("# two workers\n\n  job 4294967295 # the largest\r\nepoch 65535\nwindow 1024\n"
	      "payload 3392\nservice 10.77.0.1\n\tworker 10.77.1.1:40000\nworker 10.77.1.1:40001");
	assert_true(file.job == UINT32_MAX);
	assert_int_equal(file.epoch, 65535);
	assert_int_equal(file.window, 1024);
	assert_int_equal(file.payload_bytes, 3392);
	assert_int_equal(file.workers, 2);
	a = (const void *)&file.service;
	assert_int_equal(a->sin_family, AF_INET);
	assert_int_equal(ntohs(a->sin_port), TALLY_UDP_PORT);
	assert_int_equal(ntohl(a->sin_addr.s_addr), 0x0a4d0001);
	a = (const void *)&file.worker[1];
	assert_int_equal(ntohs(a->sin_port), 40001);
	assert_int_equal(ntohl(a->sin_addr.s_addr), 0x0a4d0101);
}

static void what_is_not_said_has_a_default(void **state)
{
	taken(IP4);
	assert_int_equal(file.epoch, 1);
	assert_int_equal(file.window, 128);
	assert_int_equal(file.payload_bytes, 1408);
	taken(IP6);
	assert_int_equal(file.payload_bytes, 1344);
}

static void ipv6_workers_stand_in_brackets(void **state)
{
	const struct sockaddr_in6 *a = (const void *)&file.worker[0];
	char text[INET6_ADDRSTRLEN];

	taken(IP6);
	assert_int_equal(a->sin6_family, AF_INET6);
	assert_int_equal(ntohs(a->sin6_port), 40000);
	assert_string_equal(inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof(text)), "fd77:1::1");
}

static void what_is_needed_must_be_there(void **state)
{
	refused("", "no line 'job ...', which is needed");
	refused("# job 7", "no line 'job ...', which is needed");
	refused("job 7\nworker 10.77.1.1:1\n", "no line 'service ...', which is needed");
	refused("job 7\nservice 10.77.0.1\n", "no line 'worker ...', which is needed");
}

static void numbers_have_limits(void **state)
{
	refused("job 4294967296", "line 1: job 4294967296: a number from 0 to 4294967295");
	refused("\njob -1", "line 2: job -1: a number from 0 to 4294967295");
	refused("job 0x7", "line 1: job 0x7: a number from 0 to 4294967295");
	refused("job 18446744073709551616",
		"line 1: job 18446744073709551616: a number from 0 to 4294967295");
	refused("epoch 65536", "line 1: epoch 65536: a number from 0 to 65535");
	taken("job 0\nepoch 0\nwindow 1\npayload 64\nservice 10.77.0.1\nworker 10.77.1.1:1");
	assert_true(file.job == 0 && file.epoch == 0 && file.window == 1);
	assert_int_equal(file.payload_bytes, 64);
}

/* Every window and every payload that sixteen bits can say, and a few more. */
static void only_allowed_windows_and_payloads_are_taken(void **state)
{
	char text[200];

	for (unsigned int n = 0; n < 66000; n++) {
		bool window = n && n <= 1024 && !(n & (n - 1));
		bool payload = n && n <= 3392 && n % 64 == 0;

		snprintf(text, sizeof(text), IP4 "window %u", n);
		assert_int_equal(parse_bytes(text, strlen(text)), window ? 0 : -EINVAL);
		snprintf(text, sizeof(text), IP4 "payload %u", n);
		assert_int_equal(parse_bytes(text, strlen(text)), payload ? 0 : -EINVAL);
	}
	refused("window 100", "line 1: window 100: a power of two from 1 to 1024");
	refused("payload 100", "line 1: payload 100: a multiple of 64 from 64 to 3392 (bytes)");
}

static void lines_are_a_key_and_a_value(void **state)
{
	refused("colour red", "line 1: colour: no such key; there are job, epoch, window, payload, "
			      "service, worker, key and secret");
	refused("jobs 1", "line 1: jobs: no such key; there are job, epoch, window, payload, "
			  "service, worker, key and secret");
	refused("job", "line 1: job: a value is missing");
	refused("job # 7", "line 1: job: a value is missing");
	refused("job 7 8", "line 1: job 7: one value only; remarks begin with #");
	refused("job 7\njob 7", "line 2: job 7: given twice");
	refused("a-key-that-is-much-too-long 7",
		"line 1: a-key-that-is-~: no such key; there are job, epoch, window, payload, "
		"service, worker, key and secret");
}

#define KEY "000102030405060708090a0b0c0d0e0f"

static void each_worker_has_a_key_or_none_has(void **state)
{
	taken(IP4);
	assert_int_equal(file.keys, 0);
	taken(IP4 "worker 10.77.1.2:1\nkey " KEY "\nkey -\n");
	assert_int_equal(file.keys, 2);
	assert_memory_equal(&file.key[0], "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16);
	assert_true(file.key[1].word[0] == 0 && file.key[1].word[1] == 0);
	refused(IP4 "worker 10.77.1.2:1\nkey " KEY "\n",
		"1 lines 'key' and 2 lines 'worker': each worker needs a key ('key -' where this "
		"machine need not know it), or none has one");
}

/* And what is wrong with a secret does not show it. */
static void a_key_is_32_hex_digits_and_not_all_0(void **state)
{
	static const char *const wrong[] = { "0",
					     "00000000000000000000000000000000",
					     (KEY "0"),
					     "000102030405060708090a0b0c0d0e0",
					     "000102030405060708090A0B0C0D0E0F",
					     "--" };
	char text[100];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(text, sizeof(text), "key %s", wrong[i]);
		assert_int_equal(parse_bytes(text, strlen(text)), -EINVAL);
		assert_string_equal(why, "line 1: key: 32 digits of 0-9 and a-f, not all of them "
					 "0, or - for one that need not be known here");
	}
}

static void keys_are_printed_as_they_were_read(void **state)
{
	char text[1000];
	size_t length;

	taken(IP4 "worker 10.77.1.2:1\nkey -\nkey " KEY "\n");
	assert_int_equal(jobfile_print(&file, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "\nkey -\nkey " KEY "\n"));
	taken(text);
	assert_int_equal(file.keys, 2);
}

static void a_sealed_job_has_one_secret_that_nodes_need_not_know(void **state)
{
	char text[1000];
	size_t length;

	taken(IP4);
	assert_null(run_secret(&file));
	taken(IP4 "secret " KEY "\n");
	assert_memory_equal(run_secret(&file), "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16);
	assert_int_equal(jobfile_print(&file, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "\nsecret " KEY "\n"));
	taken(IP4 "secret -\n");
	assert_memory_equal(run_secret(&file), "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	refused("secret " KEY "\nsecret " KEY "\n",
		"line 2: secret: one too many; a job has one secret");
	refused("secret 1\n", "line 1: secret: 32 digits of 0-9 and a-f, not all of them 0, or - "
			      "on a node");
}

/* Not the first 63 digits of something longer. */
static void a_value_that_is_too_long_is_not_cut(void **state)
{
	char text[200] = "job ";

	memset(text + 4, '0', 70);
	memcpy(text + 74, "7\n", 3);
	assert_int_equal(parse_bytes(text, strlen(text)), -EINVAL);
}

static void strange_bytes_are_refused_and_shown_as_question_marks(void **state)
{
	assert_int_equal(parse_bytes("job 7\0", 6), -EINVAL);
	assert_string_equal(why, "line 1: job 7?: a number from 0 to 4294967295");
	refused("job \xff\x1b[1m", "line 1: job ??[1m: a number from 0 to 4294967295");
}

static void addresses_must_be_one_machines(void **state)
{
	static const char *const wrong[] = {
		"worker 10.77.1.1",
		"worker 10.77.1.1:",
		"worker 10.77.1.1:0",
		"worker :40000",
		"worker 10.77.1.1:65536",
		"worker 10.77.1:40000",
		"worker host:40000",
		"worker fd77:1::1:40000",
		"worker [10.77.1.1]:40000",
		"worker [fd77::1]",
		"worker [fd77::1]40000",
		"worker fd77::1]:40000",
		"worker [fd77::1:1",
		"worker [fe80::1%lo]:40000",
		"worker 0.0.0.0:40000",
		"worker [::]:40000",
		"worker 224.0.0.1:40000",
		"worker [ff02::1]:40000",
		"worker 255.255.255.255:40000",
		"worker [:1",
		"worker ]:1",
	};
	char text[80];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(parse_bytes(wrong[i], strlen(wrong[i])), -EINVAL);
		snprintf(text, sizeof(text), "line 1: %s: an address and port, such as", wrong[i]);
		assert_memory_equal(why, text, strlen(text));
	}
	refused("service 10.77.0.1:31249", "line 1: service 10.77.0.1:31249: an address without "
					   "port, such as 10.77.0.1 or fd77::1");
	refused("service [fd77::1]", "line 1: service [fd77::1]: an address without port, such as "
				     "10.77.0.1 or fd77::1");
}

static void two_workers_never_share_address_and_port(void **state)
{
	refused(IP4 "worker 10.77.1.1:40000",
		"line 4: worker 10.77.1.1:40000: another worker has this address and port");
	refused(IP6 "worker [fd77:1:0::1]:40000",
		"line 4: worker [fd77:1:0::1]:40000: another worker has this address and port");
	taken(IP4 "worker 10.77.1.1:40001\nworker 10.77.1.2:40000");
	taken(IP6 "worker [fd77:1::1]:40001\nworker [fd77:1::2]:40000");
}

static void families_do_not_mix(void **state)
{
	refused(IP4 "worker [fd77::1]:1", "line 4: worker [fd77::1]:1: the addresses above are "
					  "IPv4; all must be of one family");
	refused("worker [fd77::1]:1\nservice 10.77.0.1",
		"line 2: service 10.77.0.1: the addresses above are IPv6; all must be of one "
		"family");
	taken("worker [fd77:1::1]:1\nservice fd77::1\njob 1");
}

static void a_job_has_256_workers_and_no_more(void **state)
{
	static char text[16384];
	size_t n = snprintf(text, sizeof(text), "job 1\nservice 10.77.0.1\n");

	for (unsigned int rank = 0; rank < 256; rank++)
		n += snprintf(text + n, sizeof(text) - n, "worker 10.77.1.%u:40000\n", rank);
	taken(text);
	assert_int_equal(file.workers, 256);
	snprintf(text + n, sizeof(text) - n, "worker 10.77.2.1:40000\n");
	refused(text, "line 259: worker 10.77.2.1:40000: one too many; a job has at most 256 "
		      "workers");
}

static void printed_addresses_can_be_read_again(void **state)
{
	static const char *const addresses[] = { "10.77.0.1", "fd77::1", "::ffff:10.77.0.1",
						 "1111:2222:3333:4444:5555:6666:7777:8888" };
	struct sockaddr_storage a;
	char text[ADDRESS_BYTES];

	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		assert_int_equal(address_parse(addresses[i], 9, &a), 0);
		address_print(&a, text, sizeof(text));
		assert_string_equal(text, addresses[i]);
	}
}

static void no_truncation_or_flipped_byte_is_too_much(void **state)
{
	static const char text[] = "# a\njob 7\nepoch 2\nwindow 64\npayload 64\n" IP6
				   "worker [fd77:1::2]:40000\n";
	char copy[sizeof(text)];

	for (size_t length = 0; length < sizeof(text); length++)
		parse_bytes(text, length);
	for (size_t at = 0; at + 1 < sizeof(text); at++) {
		for (int byte = 0; byte < 256; byte++) {
			memcpy(copy, text, sizeof(text));
			copy[at] = byte;
			parse_bytes(copy, sizeof(text) - 1);
		}
	}
}

static void a_small_room_for_the_reason_is_respected(void **state)
{
	char small[8];

	assert_int_equal(jobfile_parse("job x", 5, &file, small, sizeof(small)), -EINVAL);
	assert_string_equal(small, "line 1:");
	assert_int_equal(jobfile_parse("job x", 5, &file, NULL, 0), -EINVAL);
}

static void files_are_read_and_named_in_the_reason(void **state)
{
	char path[] = "/tmp/tally-jobfile-XXXXXX", expected[100];
	static char big[JOBFILE_BYTES_MAX + 1];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, IP4, strlen(IP4)), strlen(IP4));
	assert_int_equal(jobfile_read(path, &file, why, sizeof(why)), 0);
	assert_int_equal(file.workers, 1);
	assert_int_equal(write(fd, "window 3", 8), 8);
	assert_int_equal(jobfile_read(path, &file, why, sizeof(why)), -EINVAL);
	snprintf(expected, sizeof(expected), "%s: line 4: window 3: a power of two from 1 to 1024",
		 path);
	assert_string_equal(why, expected);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, strlen(IP4)), 0);
	assert_int_equal(pwrite(fd, "key " KEY, 36, strlen(IP4)), 36);
	assert_int_equal(jobfile_read(path, &file, why, sizeof(why)), 0);
	assert_int_equal(chmod(path, 0604), 0);
	assert_int_equal(jobfile_read(path, &file, why, sizeof(why)), -EPERM);
	snprintf(expected, sizeof(expected), "%s: everybody on this machine may read or", path);
	assert_memory_equal(why, expected, strlen(expected));

	memset(big, '\n', sizeof(big));
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(jobfile_read(path, &file, why, sizeof(why)), -EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(jobfile_read(path, &file, why, sizeof(why)), -ENOENT);
	assert_int_equal(jobfile_read("/", &file, why, sizeof(why)), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_file_is_read),
		cmocka_unit_test(what_is_not_said_has_a_default),
		cmocka_unit_test(ipv6_workers_stand_in_brackets),
		cmocka_unit_test(what_is_needed_must_be_there),
		cmocka_unit_test(numbers_have_limits),
		cmocka_unit_test(only_allowed_windows_and_payloads_are_taken),
		cmocka_unit_test(lines_are_a_key_and_a_value),
		cmocka_unit_test(each_worker_has_a_key_or_none_has),
		cmocka_unit_test(a_key_is_32_hex_digits_and_not_all_0),
		cmocka_unit_test(keys_are_printed_as_they_were_read),
		cmocka_unit_test(a_sealed_job_has_one_secret_that_nodes_need_not_know),
		cmocka_unit_test(a_value_that_is_too_long_is_not_cut),
		cmocka_unit_test(strange_bytes_are_refused_and_shown_as_question_marks),
		cmocka_unit_test(addresses_must_be_one_machines),
		cmocka_unit_test(two_workers_never_share_address_and_port),
		cmocka_unit_test(families_do_not_mix),
		cmocka_unit_test(a_job_has_256_workers_and_no_more),
		cmocka_unit_test(printed_addresses_can_be_read_again),
		cmocka_unit_test(no_truncation_or_flipped_byte_is_too_much),
		cmocka_unit_test(a_small_room_for_the_reason_is_respected),
		cmocka_unit_test(files_are_read_and_named_in_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
