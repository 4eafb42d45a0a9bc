// SPDX-License-Identifier: GPL-2.0-only
/* What workers and agents say: what is printed is parsed, and what is wrong is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/joining.h"
#include "common/ranks.h"

#define CHALLENGE "000102030405060708090a0b0c0d0e0f"
#define GREETING "tally-join 4\njob resnet\nchallenge " CHALLENGE "\n\n"
#define KEY "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
#define SHARE "share " KEY "\n"
#define JOIN "join\nrank any\naddress 10.77.1.1:40000\n" SHARE "\n"
#define LEAVE "leave\nrank 3\nepoch 12\n\n"
#define NONCE "nonce 9c41d00f3ae7b552\nkey none\n"
#define PLACE                                                                       \
	"run\nrank 1\n" NONCE "job 7\nepoch 12\nwindow 128\npayload 1408\nservice " \
	"10.77.0.1\nworker 10.77.1.1:40000\nworker 10.77.2.1:40000\n\n"

enum {
	ROUNDS = 3000
};

static struct joining_greeting greeting;
static struct joining_message request;
static struct joining_answer answer;
static size_t taken_length;
static char why[256];

/* Both parse an exact copy on the heap, so that a step past its end is seen. */
static int request_of(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int r;

	memcpy(copy, text, length);
	memset(&request, 0xee, sizeof(request));
	taken_length = 0xeeee;
	r = joining_message_parse(copy, length, &request, &taken_length, why, sizeof(why));
	free(copy);
	return r;
}

static int greeting_of(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int r;

	memcpy(copy, text, length);
	memset(&greeting, 0xee, sizeof(greeting));
	taken_length = 0xeeee;
	r = joining_greeting_parse(copy, length, &greeting, &taken_length, why, sizeof(why));
	free(copy);
	return r;
}

static int answer_of(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int r;

	memcpy(copy, text, length);
	memset(&answer, 0xee, sizeof(answer));
	taken_length = 0xeeee;
	r = joining_answer_parse(copy, length, &answer, &taken_length, why, sizeof(why));
	free(copy);
	return r;
}

static void untouched(const void *object, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(((const uint8_t *)object)[i], 0xee);
	assert_int_equal(taken_length, 0xeeee);
}

static void request_refused(const char *text, int error, const char *reason)
{
	assert_int_equal(request_of(text, strlen(text)), -error);
	assert_string_equal(why, reason);
	untouched(&request, sizeof(request));
}

static void greeting_refused(const char *text, int error, const char *reason)
{
	assert_int_equal(greeting_of(text, strlen(text)), -error);
	assert_string_equal(why, reason);
	untouched(&greeting, sizeof(greeting));
}

static void answer_refused(const char *text, int error, const char *reason)
{
	assert_int_equal(answer_of(text, strlen(text)), -error);
	assert_string_equal(why, reason);
	untouched(&answer, sizeof(answer));
}

/* Its letters, without an end. */
static void overwrite(char *at, const char *with)
{
	while (*with)
		*at++ = *with++;
}

static void a_greeting_is_read(void **state)
{
	assert_int_equal(greeting_of(GREETING "more", strlen(GREETING "more")), 0);
	assert_int_equal(taken_length, strlen(GREETING));
	assert_string_equal(greeting.job, "resnet");
	assert_string_equal(greeting.challenge, CHALLENGE);
	assert_string_equal(why, "");
}

/* Of a worker that is in a run, and has proofs by its place there. */
static void a_greeting_names_a_place(void **state)
{
	const char *text = "tally-join 4\njob resnet\nchallenge " CHALLENGE
			   "\nrun 9c41d00f3ae7b552\n\n";

	assert_int_equal(greeting_of(GREETING, strlen(GREETING)), 0);
	assert_true(greeting.run == 0);
	assert_int_equal(greeting_of(text, strlen(text)), 0);
	assert_true(greeting.run == 0x9c41d00f3ae7b552);
	assert_int_equal(greeting.rank, 0);
	text = "tally-join 4\nrank 255\nrun 9c41d00f3ae7b552\njob resnet\nchallenge " CHALLENGE
	       "\n\n";
	assert_int_equal(greeting_of(text, strlen(text)), 0);
	assert_int_equal(greeting.rank, 255);
	greeting_refused("tally-join 4\nrun 0000000000000000\n", EINVAL,
			 "line 2: run: 16 digits of 0-9 and a-f, not all of them 0");
	greeting_refused("tally-join 4\nrank 256\n", EINVAL,
			 "line 2: rank: a number from 0 to 255");
}

static void a_join_request_is_read(void **state)
{
	const struct sockaddr_in *a = (const void *)&request.address;

	assert_int_equal(request_of(JOIN "more", strlen(JOIN "more")), 0);
	assert_int_equal(taken_length, strlen(JOIN));
	assert_int_equal(request.what, JOINING_JOIN);
	assert_int_equal(request.rank, JOINING_RANK_ANY);
	assert_int_equal(a->sin_family, AF_INET);
	assert_int_equal(ntohs(a->sin_port), 40000);
	assert_string_equal(why, "");
}

#define PEER "tally-peer 3\nroot 10.77.0.1\nto 10.77.0.2\nchallenge " CHALLENGE "\n" SHARE "\n"

static void peer_refused(const char *text, int error, const char *reason)
{
	struct joining_peer p;

	assert_int_equal(
		joining_peer_parse(text, strlen(text), &p, &taken_length, why, sizeof(why)),
		-error);
	assert_string_equal(why, reason);
}

/* From whom, and to whom. */
static void a_greeting_of_an_agent_is_read_and_said(void **state)
{
	struct joining_peer p;
	char text[512];
	size_t length;

	assert_int_equal(joining_is_peer(PEER, strlen(PEER)), 1);
	assert_int_equal(joining_is_peer(PEER, 8), -EAGAIN);
	assert_int_equal(joining_is_peer(GREETING, strlen(GREETING)), 0);
	for (size_t i = 0; i < strlen(PEER); i++)
		assert_int_equal(joining_peer_parse(PEER, i, &p, &length, why, sizeof(why)),
				 -EAGAIN);
	assert_int_equal(joining_peer_parse(PEER, strlen(PEER), &p, &length, why, sizeof(why)), 0);
	assert_int_equal(length, strlen(PEER));
	address_print(&p.root, text, sizeof(text));
	assert_string_equal(text, "10.77.0.1");
	address_print(&p.to, text, sizeof(text));
	assert_string_equal(text, "10.77.0.2");
	assert_int_equal(joining_peer_print(&p, text, sizeof(text), &length), 0);
	assert_string_equal(text, PEER);
	peer_refused("tally-peer 3\nroot 10.77.0.1\nchallenge " CHALLENGE "\n" SHARE "\n", EINVAL,
		     "no line 'to ...', which is needed");
	peer_refused("tally-peer 3\nto 10.77.0.2:31249\n", EINVAL,
		     "line 2: to: an address without port, such as 10.77.0.1 or fd77::1");
	peer_refused("tally-peer 2\n", EPROTONOSUPPORT,
		     "line 1: tally-peer: agents of these versions do not understand each other: "
		     "this one speaks version 3 of tally-peer");
}

static void the_order_of_keys_is_free_and_rank_may_be_left_out(void **state)
{
	const char *text = "join\n" SHARE "address [fd77:1::1]:40000\n\n";
	const struct sockaddr_in6 *a = (const void *)&request.address;

	assert_int_equal(request_of(text, strlen(text)), 0);
	assert_int_equal(request.rank, JOINING_RANK_ANY);
	assert_int_equal(a->sin6_family, AF_INET6);
	assert_int_equal(ntohs(a->sin6_port), 40000);
	text = "leave\nepoch 7\nrank 3\n\n";
	assert_int_equal(request_of(text, strlen(text)), 0);
	assert_int_equal(request.rank, 3);
	assert_int_equal(request.epoch, 7);
}

static void a_leave_request_is_read(void **state)
{
	assert_int_equal(request_of(LEAVE, strlen(LEAVE)), 0);
	assert_int_equal(request.what, JOINING_LEAVE);
	assert_int_equal(request.rank, 3);
	assert_int_equal(request.epoch, 12);
}

static void another_version_is_refused_by_its_first_line(void **state)
{
	greeting_refused("tally-join 2\n", EPROTONOSUPPORT,
			 "line 1: tally-join: version 2: the worker is older than the agent, which "
			 "speaks version 4");
	greeting_refused("tally-leave 2\n", EPROTONOSUPPORT,
			 "line 1: tally-leave: version 2: the worker is older than the agent, "
			 "which speaks version 4");
	greeting_refused("tally-join 4294967295\n", EPROTONOSUPPORT,
			 "line 1: tally-join: version 4294967295: the worker is newer than the "
			 "agent, which speaks version 4");
	greeting_refused("tally-join\n", EINVAL, "line 1: tally-join: a version number is needed");
	greeting_refused("GET / HTTP/1.1\r\n", EINVAL,
			 "line 1: GET: byte 0x0d at column 15: printable ASCII and newlines only");
	greeting_refused("\n", EINVAL, "line 1: no such greeting; there is tally-join");
}

static void unknown_and_doubled_keys_are_named_with_their_line(void **state)
{
	greeting_refused(
		"tally-join 4\njob a\ntoken 3\n", EINVAL,
		"line 3: token: no such key; there are job, challenge, wants, run and rank");
	greeting_refused("tally-join 4\njob a\njob a\n", EINVAL, "line 3: job: given twice");
	request_refused("join\nepoch 3\n", EINVAL,
			"line 2: epoch: no such key; there are rank, address, share, from, "
			"mtu and payload");
	request_refused("leave\nport 3\n", EINVAL,
			"line 2: port: no such key; there are rank and epoch");
	request_refused("join\n rank 1\n", EINVAL,
			"line 2: no such key; there are rank, address, share, from, "
			"mtu and payload");
	request_refused("join\nrank 1\nrank 1\n", EINVAL, "line 3: rank: given twice");
	request_refused("join 3\n", EINVAL,
			"line 1: join: no such request; there are join, leave and stay");
	request_refused("\n", EINVAL, "line 1: no such request; there are join, leave and stay");
}

static void what_is_needed_is_named(void **state)
{
	greeting_refused("tally-join 4\n\n", EINVAL, "no line 'job ...', which is needed");
	greeting_refused("tally-join 4\njob a\n\n", EINVAL,
			 "no line 'challenge ...', which is needed");
	request_refused("join\nrank any\n\n", EINVAL, "no line 'address ...', which is needed");
	request_refused("join\naddress 10.0.0.1:1\n\n", EINVAL,
			"no line 'share ...', which is needed");
	answer_refused("run\nrank 0\nnonce 9c41d00f3ae7b552\n\n", EINVAL,
		       "no line 'key ...', which is needed");
	request_refused("leave\nepoch 1\n\n", EINVAL, "no line 'rank ...', which is needed");
	request_refused("leave\nrank 1\n\n", EINVAL, "no line 'epoch ...', which is needed");
}

static void values_out_of_range_are_refused(void **state)
{
	const char *rank = "line 2: rank: a number from 0 to 255, or any";
	const char *address = "line 2: address: an address and port, such as 10.77.1.1:40000 or "
			      "[fd77:1::1]:40000";

	request_refused("join\nrank 256\n", EINVAL, rank);
	request_refused("join\nrank -1\n", EINVAL, rank);
	request_refused("join\nrank 1 \n", EINVAL, rank);
	request_refused("join\nrank  1\n", EINVAL, rank);
	request_refused("join\nrank\n", EINVAL, rank);
	request_refused("leave\nrank any\n", EINVAL, "line 2: rank: a number from 0 to 255");
	request_refused("leave\nepoch 65536\n", EINVAL, "line 2: epoch: a number from 0 to 65535");
	request_refused("join\naddress 10.0.0.1\n", EINVAL, address);
	request_refused("join\naddress 0.0.0.0:1\n", EINVAL, address);
	request_refused("join\nshare ab\n", EINVAL, "line 2: share: 64 digits of 0-9 and a-f");
	request_refused("join\n" SHARE SHARE, EINVAL, "line 3: share: given twice");
	answer_refused("run\nkey ab\n\n", EINVAL, "line 2: key: 96 digits of 0-9 and a-f, or none");
	answer_refused("run\nkey \n\n", EINVAL, "line 2: key: 96 digits of 0-9 and a-f, or none");
	greeting_refused(
		"tally-join 4\njob ResNet\n", EINVAL,
		"line 2: job: 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit");
}

static void a_challenge_is_32_digits(void **state)
{
	static const char *const wrong[] = { "", "0", (CHALLENGE "0"),
					     "000102030405060708090a0b0c0d0e0F",
					     "000102030405060708090a0b0c0d0e0 " };
	char text[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(text, sizeof(text), "tally-join 4\nchallenge %s\n\n", wrong[i]);
		greeting_refused(text, EINVAL, "line 2: challenge: 32 digits of 0-9 and a-f");
		answer_refused(text, EINVAL, "line 2: challenge: 32 digits of 0-9 and a-f");
	}
}

static void bytes_that_no_line_has_are_refused_before_its_end(void **state)
{
	for (int c = 0; c < 256; c++) {
		char text[] = "tally-join 4\njob ax";

		text[sizeof(text) - 2] = (char)c;
		assert_int_equal(greeting_of(text, sizeof(text) - 1),
				 c == '\n' || (c >= ' ' && c <= '~') ? -EAGAIN : -EINVAL);
		if (*why)
			assert_non_null(strstr(why, "line 2: job: byte 0x"));
	}
}

static void a_line_without_end_is_refused(void **state)
{
	char text[2048] = "join\nrank ";
	size_t start = strlen("join\n");

	memset(text + strlen(text), 'a', sizeof(text) - strlen(text));
	assert_int_equal(request_of(text, start + 256), -EAGAIN);
	assert_int_equal(request_of(text, start + 257), -EMSGSIZE);
	assert_string_equal(why, "line 2: rank: the line is longer than 256 bytes");
	assert_int_equal(request_of(text, sizeof(text)), -EMSGSIZE);

	memset(text, 'a', sizeof(text));
	overwrite(text, "error EIO ");
	assert_int_equal(answer_of(text, 1024), -EAGAIN);
	assert_int_equal(answer_of(text, 1025), -EMSGSIZE);
	assert_string_equal(why, "line 1: error: the line is longer than 1024 bytes");
}

static void every_truncation_wants_more(void **state)
{
	for (size_t i = 0; i < strlen(GREETING); i++)
		assert_int_equal(greeting_of(GREETING, i), -EAGAIN);
	for (size_t i = 0; i < strlen(JOIN); i++)
		assert_int_equal(request_of(JOIN, i), -EAGAIN);
	for (size_t i = 0; i < strlen(LEAVE); i++)
		assert_int_equal(request_of(LEAVE, i), -EAGAIN);
	for (size_t i = 0; i < strlen(PLACE); i++)
		assert_int_equal(answer_of(PLACE, i), -EAGAIN);
	for (size_t i = 0; i < strlen("waiting 1-3\n"); i++)
		assert_int_equal(answer_of("waiting 1-3\n", i), -EAGAIN);
	for (size_t i = 0; i < strlen("error EACCES no\n\n"); i++)
		assert_int_equal(answer_of("error EACCES no\n\n", i), -EAGAIN);
	for (size_t i = 0; i < strlen("left\n\n"); i++)
		assert_int_equal(answer_of("left\n\n", i), -EAGAIN);
}

static void an_answers_kinds_are_told_apart(void **state)
{
	const char *greets = "tally-join 4\nchallenge " CHALLENGE "\n\n";
	char text[ADDRESS_BYTES];

	assert_int_equal(answer_of(greets, strlen(greets)), 0);
	assert_int_equal(answer.kind, JOINING_GREETING);
	assert_string_equal(answer.greeting.challenge, CHALLENGE);
	assert_int_equal(taken_length, strlen(greets));

	assert_int_equal(answer_of("waiting 1,3-4\nwaiting 1\n", 24), 0);
	assert_int_equal(taken_length, 14);
	assert_int_equal(answer.kind, JOINING_WAITING);
	assert_true(answer.missing.word[0] == (1 << 1 | 1 << 3 | 1 << 4));

	assert_int_equal(answer_of(PLACE, strlen(PLACE)), 0);
	assert_int_equal(answer.kind, JOINING_RUN);
	assert_int_equal(answer.rank, 1);
	assert_true(answer.job.nonce == 0x9c41d00f3ae7b552);
	assert_int_equal(answer.job.job, 7);
	assert_int_equal(answer.job.epoch, 12);
	assert_int_equal(answer.job.workers, 2);
	assert_int_equal(taken_length, strlen(PLACE));

	assert_int_equal(answer_of("error EADDRINUSE rank 3 is taken\n\n", 34), 0);
	assert_int_equal(answer.kind, JOINING_ERROR);
	assert_int_equal(answer.error, -EADDRINUSE);
	assert_string_equal(answer.text, "rank 3 is taken");

	assert_int_equal(answer_of("ending rank 3 left\nmore", 23), 0);
	assert_int_equal(answer.kind, JOINING_ENDING);
	assert_string_equal(answer.text, "rank 3 left");
	assert_int_equal(taken_length, 19);

	assert_int_equal(answer_of("elsewhere 10.77.0.3\n", 20), 0);
	assert_int_equal(answer.kind, JOINING_ELSEWHERE);
	address_print(&answer.elsewhere, text, sizeof(text));
	assert_string_equal(text, "10.77.0.3");

	assert_int_equal(answer_of("token " KEY "\n", strlen("token " KEY "\n")), 0);
	assert_int_equal(answer.kind, JOINING_TOKEN);
	assert_int_equal(answer.token_key[0], 0x85);
	assert_int_equal(answer.token_key[31], 0x6a);

	assert_int_equal(answer_of("left\n\n", 6), 0);
	assert_int_equal(answer.kind, JOINING_LEFT);
}

static void answers_that_are_wrong_are_refused(void **state)
{
	answer_refused(
		"SSH-2.0-x\n", EINVAL,
		"line 1: SSH-2.0-x: an agent says no such thing: something else listens there");
	answer_refused("waiting \n", EINVAL, "line 1: waiting: ranks up to 255, such as 1,3-4");
	answer_refused("waiting 256\n", EINVAL, "line 1: waiting: ranks up to 255, such as 1,3-4");
	answer_refused("waiting 1,\n", EINVAL, "line 1: waiting: ranks up to 255, such as 1,3-4");
	answer_refused("waiting 3-1\n", EINVAL, "line 1: waiting: ranks up to 255, such as 1,3-4");
	answer_refused("waiting 1-2-3\n", EINVAL,
		       "line 1: waiting: ranks up to 255, such as 1,3-4");
	answer_refused("waiting 00001\n", EINVAL,
		       "line 1: waiting: ranks up to 255, such as 1,3-4");
	answer_refused("tally-join 1\n", EPROTONOSUPPORT,
		       "line 1: tally-join: version 1: the agent is older than the worker, which "
		       "speaks version 4");
	answer_refused("tally-join 5\n", EPROTONOSUPPORT,
		       "line 1: tally-join: version 5: the agent is newer than the worker, which "
		       "speaks version 4");
	answer_refused("run 3\n\n", EINVAL, "line 1: run: no value belongs here");
	answer_refused("run\n\n", EINVAL, "no line 'rank ...', which is needed");
	answer_refused("run\nrank 0\n\n", EINVAL, "no line 'nonce ...', which is needed");
	answer_refused(
		"run\nrank 0\njob 1\n\n", EINVAL,
		"line 3: job: no such key; there are rank, nonce, key, sealed, roots, which, "
		"share and other");
	answer_refused("run\nrank 0\nrank 0\n\n", EINVAL, "line 3: rank: given twice");
	answer_refused("run\nrank 256\n\n", EINVAL, "line 2: rank: a number from 0 to 255");
	answer_refused("run\nrank 0\n" NONCE "\n", EINVAL,
		       "line 4: key: the job file behind it: no line 'job ...', which is needed");
	answer_refused("run\nrank 0\n" NONCE "job x\n\n", EINVAL,
		       "line 4: key: the job file behind it: line 1: job x: a number from 0 to "
		       "4294967295");
	answer_refused("run\nrank 1\n" NONCE "job 1\nservice 10.0.0.1\nworker 10.0.0.2:1\n\n",
		       EINVAL, "line 4: key: rank 1, but there are 1 workers");
	answer_refused("error \n\n", EINVAL,
		       "line 1: error: the name of an error is needed, such as EACCES");
	answer_refused("error EACCES: no\n\n", EINVAL,
		       "line 1: error: the name of an error is needed, such as EACCES");
	answer_refused("error EACCES no\nmore\n", EINVAL,
		       "line 2: more: an empty line should be here");
	answer_refused("ending\n", EINVAL, "line 1: ending: the reason is needed");
	answer_refused("elsewhere\n", EINVAL,
		       "line 1: elsewhere: an address is needed, such as 10.77.0.1");
	answer_refused("elsewhere 10.77.0.1:7\n", EINVAL,
		       "line 1: elsewhere: an address is needed, such as 10.77.0.1");
	answer_refused("token\n", EINVAL, "line 1: token: 64 digits of 0-9 and a-f are needed");
	answer_refused("token " KEY "0\n", EINVAL,
		       "line 1: token: 64 digits of 0-9 and a-f are needed");
	answer_refused("left 1\n\n", EINVAL, "line 1: left: no value belongs here");
}

/* An agent whose job has one root says what it always said. */
static void several_roots_are_said_together(void **state)
{
	static const char file[] = "job 7\nservice 10.77.0.1\nworker 10.77.1.1:40000\n\n";
	static const char *const bad[] = { "1",
					   "1,",
					   ",1",
					   "1,,1",
					   "0,1",
					   "1001,1",
					   "1,2,",
					   "1, 2",
					   "1,99999999999999999999",
					   "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1" };
	char text[JOINING_ANSWER_BYTES];
	struct joining_answer said;
	size_t length;

	snprintf(text, sizeof(text), "run\nrank 0\n" NONCE "roots 3\nwhich 2\nshare 250\n%s", file);
	assert_int_equal(answer_of(text, strlen(text)), 0);
	assert_int_equal(answer.roots, 3);
	assert_int_equal(answer.which, 2);
	assert_int_equal(answer.share, 250);
	said = answer;
	assert_int_equal(joining_run_print(&said, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "key none\nroots 3\nwhich 2\nshare 250\njob 7\n"));
	said.roots = said.which = said.share = 0;
	assert_int_equal(joining_run_print(&said, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "key none\njob 7\n"));

	assert_int_equal(joining_shares_print((const uint16_t[]){ 800, 1, 1000 }, 3, text,
					      sizeof(text), &length),
			 0);
	assert_string_equal(text, "shares 800,1,1000\n");
	assert_int_equal(answer_of(text, length), 0);
	assert_int_equal(answer.kind, JOINING_SHARES);
	assert_int_equal(answer.roots, 3);
	assert_int_equal(answer.shares[0], 800);
	assert_int_equal(answer.shares[2], 1000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), "shares %s\n", bad[i]);
		answer_refused(
			text, EINVAL,
			"line 1: shares: 2 to 16 numbers from 1 to 1000, with commas between");
	}
	answer_refused("run\nrank 0\n" NONCE "roots 1\nwhich 1\nshare 1\njob 7\n\n", EINVAL,
		       "line 5: roots: a number from 2 to 16");
	answer_refused("run\nrank 0\n" NONCE "roots 2\nwhich 3\nshare 1\njob 7\n\n", EINVAL,
		       "line 7: share: root 3, but there are 2 roots");
	answer_refused("run\nrank 0\n" NONCE "roots 2\nwhich 1\nshare 1001\njob 7\n\n", EINVAL,
		       "line 7: share: a number from 1 to 1000");
	answer_refused("run\nrank 0\n" NONCE "roots 2\nshare 1\njob 7\n\n", EINVAL,
		       "line 6: share: roots, which and share are said together");
	answer_refused("run\nrank 0\n" NONCE "share 1\njob 7\n\n", EINVAL,
		       "line 5: share: roots, which and share are said together");
}

/* Where to ask when the root is gone, and from which run one asks. */
static void others_are_named(void **state)
{
	static const char file[] = "job 7\nservice 10.77.0.1\nworker 10.77.1.1:40000\n\n";
	char text[JOINING_ANSWER_BYTES], other[ADDRESS_BYTES], why[256];
	struct joining_answer said;
	struct joining_message m = { .rank = 3, .from = 0x5ca1ab1e };
	size_t length;

	snprintf(text, sizeof(text), "run\nrank 0\n" NONCE "other 10.77.0.2\nother fd77::3\n%s",
		 file);
	assert_int_equal(answer_of(text, strlen(text)), 0);
	assert_int_equal(answer.others, 2);
	address_print(&answer.other[1], other, sizeof(other));
	assert_string_equal(other, "fd77::3");
	assert_int_equal(endpoint_port(&answer.other[1]), TALLY_UDP_PORT);
	said = answer;
	assert_int_equal(joining_run_print(&said, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "key none\nother 10.77.0.2\nother fd77::3\njob 7\n"));
	answer_refused("run\nrank 0\n" NONCE "other 10.77.0.2:7\njob 7\n\n", EINVAL,
		       "line 5: other: an address without port, such as 10.77.0.1 or fd77::1");
	answer_refused("run\nrank 0\n" NONCE
		       "other ::1\nother ::2\nother ::3\nother ::4\nother ::5\njob 7\n\n",
		       EINVAL, "line 9: other: one too many; at most four are named");
	answer_refused("run\nrank 0\n" NONCE "other ::1\n\n", EINVAL,
		       "line 5: other: the job file behind it: no line 'job ...', which is needed");

	assert_int_equal(address_parse("10.77.1.1:5", 0, &m.address), 0);
	assert_int_equal(joining_message_print(&m, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "\nfrom 000000005ca1ab1e\n\n"));
	assert_int_equal(joining_message_parse(text, length, &m, &length, why, sizeof(why)), 0);
	assert_int_equal(m.from, 0x5ca1ab1e);
	m.from = 0;
	assert_int_equal(joining_message_print(&m, text, sizeof(text), &length), 0);
	assert_null(strstr(text, "from"));
}

/* What older agents do not know is said only where there is something to say. */
static void a_worker_says_what_its_way_carries(void **state)
{
	char text[JOINING_MESSAGE_BYTES], why[256];
	struct joining_message m = { .rank = 3 };
	size_t length;

	assert_int_equal(address_parse("10.77.1.1:5", 0, &m.address), 0);
	assert_int_equal(joining_message_print(&m, text, sizeof(text), &length), 0);
	assert_null(strstr(text, "mtu"));
	assert_null(strstr(text, "payload"));
	m.mtu = 9000;
	m.payload_bytes = 3392;
	assert_int_equal(joining_message_print(&m, text, sizeof(text), &length), 0);
	assert_non_null(strstr(text, "\nmtu 9000\npayload 3392\n\n"));
	memset(&m, 0, sizeof(m));
	assert_int_equal(joining_message_parse(text, length, &m, &length, why, sizeof(why)), 0);
	assert_int_equal(m.mtu, 9000);
	assert_int_equal(m.payload_bytes, 3392);
	request_refused("join\nmtu 65536\n", EINVAL, "line 2: mtu: a number from 0 to 65535");
	request_refused("join\npayload 3456\n", EINVAL,
			"line 2: payload: a multiple of 64 from 64 to 3392 (bytes)");
}

static void each_root_has_a_name(void **state)
{
	char name[NAME_BYTES], longest[NAME_BYTES];

	assert_int_equal(joining_root_name("train", 1, name), 0);
	assert_string_equal(name, "train");
	assert_int_equal(joining_root_name("train", 16, name), 0);
	assert_string_equal(name, "train.16");
	memset(longest, 'a', sizeof(longest));
	longest[NAME_BYTES - 1] = '\0';
	assert_int_equal(joining_root_name(longest, 1, name), 0);
	assert_int_equal(joining_root_name(longest, 2, name), -ENAMETOOLONG);
	assert_string_equal(name, longest);
	assert_int_equal(joining_root_name(longest + 2, 2, name), 0);
	assert_int_equal(joining_root_name(longest + 2, 10, name), -ENAMETOOLONG);
}

/* An agent whose job is not sealed says what it always said. */
static void that_a_job_is_sealed_is_said_behind_the_key(void **state)
{
	static const char file[] = "job 7\nservice 10.77.0.1\nworker 10.77.1.1:40000\n\n";
	char text[JOINING_ANSWER_BYTES];
	struct joining_answer said;
	size_t length;

	for (int sealed = 0; sealed < 2; sealed++) {
		snprintf(text, sizeof(text), "run\nrank 0\n" NONCE "%s%s",
			 sealed ? "sealed true\n" : "", file);
		assert_int_equal(answer_of(text, strlen(text)), 0);
		assert_int_equal(answer.sealed, sealed);
		assert_int_equal(answer.job.secrets, 0);
		said = answer;
		assert_int_equal(joining_run_print(&said, text, sizeof(text), &length), 0);
		assert_int_equal(!strstr(text, "key none\nsealed true\njob 7\n"), sealed == 0);
		assert_int_equal(!strstr(text, "key none\njob 7\n"), sealed == 1);
	}
	answer_refused("run\nrank 0\n" NONCE "sealed 1\n\n", EINVAL,
		       "line 5: sealed: one of false and true");
	answer_refused(
		"run\nrank 0\n" NONCE "sealed true\n\n", EINVAL,
		"line 5: sealed: the job file behind it: no line 'job ...', which is needed");
	answer_refused("run\nrank 0\nsealed true\nnonce 9c41d00f3ae7b552\njob 7\n\n", EINVAL,
		       "no line 'key ...', which is needed");
	/* so somebody who does not know this one says what is wrong */
	answer_refused(
		"run\nrank 0\n" NONCE "painted true\njob 7\n\n", EINVAL,
		"line 4: key: the job file behind it: line 1: painted: no such "
		"key; there are job, epoch, window, payload, service, worker, key and secret");
}

static void a_nonce_is_16_digits_and_not_0(void **state)
{
	static const char *const wrong[] = { "",
					     "0",
					     "9c41d00f3ae7b55",
					     "9c41d00f3ae7b5522",
					     "9C41D00F3AE7B552",
					     "0x41d00f3ae7b552",
					     "9c41d00f3ae7b55 ",
					     "0000000000000000" };
	char text[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(text, sizeof(text), "run\nrank 0\nnonce %s\n\n", wrong[i]);
		answer_refused(text, EINVAL,
			       "line 3: nonce: 16 digits of 0-9 and a-f, not all of them 0");
	}
}

static void a_place_without_end_is_refused(void **state)
{
	static char text[JOINING_ANSWER_BYTES];

	memset(text, '#', sizeof(text));
	overwrite(text, "run\nrank 0\n" NONCE);
	assert_int_equal(answer_of(text, sizeof(text) - 1), -EAGAIN);
	assert_int_equal(answer_of(text, sizeof(text)), -EMSGSIZE);
	assert_string_equal(why, "line 1: run: no end within 16384 bytes");
}

static void an_unknown_error_keeps_its_words(void **state)
{
	char text[64];
	size_t length = 0;

	assert_int_equal(answer_of("error EFUTURE later\n\n", 21), 0);
	assert_int_equal(answer.error, -EIO);
	assert_string_equal(answer.text, "later");
	assert_int_equal(joining_error_print(-ENOMEM, "a\nb\x7f", text, sizeof(text), &length), 0);
	assert_string_equal(text, "error EIO a?b?\n\n");
	assert_int_equal(joining_ending_print("a\nb\x7f", text, sizeof(text), &length), 0);
	assert_string_equal(text, "ending a?b?\n");
	assert_int_equal(length, strlen(text));
}

static void errors_come_back_as_they_were_said(void **state)
{
	static const int known[] = {
#define X(name) name,
		JOINING_ERRORS(X)
#undef X
	};
	char text[1024], words[600];
	size_t length;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		memset(words, 'a' + (int)i, sizeof(words));
		words[i * 42] = '\0'; /* from none to more than there is room for */
		assert_int_equal(joining_error_print(-known[i], words, text, sizeof(text), &length),
				 0);
		assert_int_equal(answer_of(text, length), 0);
		assert_int_equal(taken_length, length);
		assert_int_equal(answer.error, -known[i]);
		words[JOINING_TEXT_BYTES - 1] = '\0';
		assert_string_equal(answer.text, words);
	}
}

/* --- what is printed is parsed */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	assert(n > 0);
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % n;
}

static void random_bytes(void *ret, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((uint8_t *)ret)[i] = (uint8_t)random_below(256);
}

static void random_word(const char *letters, size_t length, char *ret)
{
	for (size_t i = 0; i < length; i++)
		ret[i] = letters[random_below((uint32_t)strlen(letters))];
	ret[length] = '\0';
}

static struct sockaddr_storage random_address(bool ip6, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in6 *a6 = (void *)&a;
	struct sockaddr_in *a4 = (void *)&a;

	if (ip6) {
		a6->sin6_family = AF_INET6;
		a6->sin6_port = htons(port);
		for (int i = 0; i < 16; i++)
			a6->sin6_addr.s6_addr[i] = (uint8_t)random_below(256);
		a6->sin6_addr.s6_addr[0] = 0xfd;
	} else {
		a4->sin_family = AF_INET;
		a4->sin_port = htons(port);
		a4->sin_addr.s_addr = htonl(0x0a000000 | random_below(1 << 24));
	}
	return a;
}

static void greetings_come_back_as_they_were_said(void **state)
{
	static const char letters[] = "abcxyz0189._-";
	uint8_t random[JOINING_CHALLENGE_BYTES / 2];
	char text[JOINING_MESSAGE_BYTES];
	size_t length;

	for (int i = 0; i < ROUNDS; i++) {
		struct joining_greeting g = { .job = "" };

		for (size_t k = 0; k < sizeof(random); k++)
			random[k] = (uint8_t)random_below(256);
		random_word("az09", 1, g.job);
		random_word(letters, random_below(63), g.job + 1);
		joining_challenge_set(random, g.challenge);
		g.wants = random_below(2);
		if (random_below(2)) {
			g.run = 1 + random_below(1u << 31);
			g.rank = (uint16_t)random_below(256);
		}
		assert_int_equal(joining_greeting_print(&g, text, sizeof(text), &length), 0);
		assert_int_equal(greeting_of(text, length), 0);
		assert_int_equal(taken_length, length);
		assert_string_equal(greeting.job, g.job);
		assert_string_equal(greeting.challenge, g.challenge);
		assert_int_equal(greeting.wants, g.wants);
		assert_int_equal(greeting.run, g.run);
		assert_int_equal(greeting.rank, g.rank);
		g.job[0] = '\0';
		if (g.wants)
			assert_int_equal(address_parse("fd77::1", TALLY_UDP_PORT, &g.service), 0);
		assert_int_equal(joining_greeting_print(&g, text, sizeof(text), &length), 0);
		assert_int_equal(answer_of(text, length), 0);
		assert_int_equal(taken_length, length);
		assert_string_equal(answer.greeting.challenge, g.challenge);
		assert_memory_equal(&answer.greeting.service, &g.service, sizeof(g.service));
	}
}

static void requests_come_back_as_they_were_said(void **state)
{
	char text[JOINING_MESSAGE_BYTES];
	size_t length;

	for (int i = 0; i < ROUNDS; i++) {
		struct joining_message q = { .what = random_below(3) };

		q.rank = (int)random_below(257) - 1;
		if (q.what != JOINING_JOIN) {
			q.rank = q.rank < 0 ? 0 : q.rank;
			q.epoch = (uint16_t)random_below(65536);
			q.nonce = q.what == JOINING_STAY ? 1 + random_below(1u << 31) : 0;
		} else {
			q.address = random_address(random_below(2), 1 + random_below(65535));
			random_bytes(q.share, sizeof(q.share));
			q.mtu = (uint16_t)random_below(65536);
			q.payload_bytes = (uint16_t)(64 * random_below(54));
		}
		assert_int_equal(joining_message_print(&q, text, sizeof(text), &length), 0);
		assert_int_equal(request_of(text, length), 0);
		assert_int_equal(taken_length, length);
		assert_int_equal(request.what, q.what);
		assert_int_equal(request.nonce, q.nonce);
		assert_int_equal(request.rank, q.rank);
		assert_int_equal(request.epoch, q.epoch);
		assert_memory_equal(&request.address, &q.address, sizeof(q.address));
		assert_memory_equal(request.share, q.share, sizeof(q.share));
		assert_int_equal(request.mtu, q.mtu);
		assert_int_equal(request.payload_bytes, q.payload_bytes);
		assert_int_equal(joining_message_print(&q, text, length, &(size_t){ 0 }), -ENOSPC);
		assert_int_equal(request_of(text, random_below((uint32_t)length)), -EAGAIN);
	}
}

static struct run random_job(uint16_t workers)
{
	bool ip6 = random_below(2);
	struct run f = {
		.nonce = 1 + random_below(UINT32_MAX) * (random_below(2) ? 1 : 0x100000001),
		.job = random_below(UINT32_MAX),
		.epoch = (uint16_t)random_below(65536),
		.window = (uint16_t)(1u << random_below(11)),
		.payload_bytes = (uint16_t)(64 * (1 + random_below(53))),
		.workers = workers,
		.service = random_address(ip6, TALLY_UDP_PORT),
	};

	for (unsigned int rank = 0; rank < workers; rank++)
		f.worker[rank] = random_address(ip6, 65535 - rank);
	return f;
}

static void members_come_back_as_they_were_said(void **state)
{
	char text[JOINING_ANSWER_BYTES];
	size_t length, longest = 0;

	for (int i = 0; i < ROUNDS / 10; i++) {
		uint16_t workers = (uint16_t)(i < 20 ? 256 : 1 + random_below(256));
		static struct joining_answer said;

		said = (struct joining_answer){ .rank = (uint16_t)random_below(workers),
						.job = random_job(workers),
						.sealed = i % 2 };
		if (i % 5 == 0) {
			said.roots = (uint16_t)(2 + random_below(15));
			said.which = (uint16_t)(1 + random_below(said.roots));
			said.share = (uint16_t)(1 + random_below(1000));
		}
		random_bytes(&said.key, i % 3 ? sizeof(said.key) : 0);
		assert_int_equal(joining_run_print(&said, text, sizeof(text), &length), 0);
		assert_int_equal(strlen(text), length);
		longest = length > longest ? length : longest;
		assert_int_equal(answer_of(text, length), 0);
		assert_int_equal(taken_length, length);
		assert_int_equal(answer.rank, said.rank);
		assert_memory_equal(&answer.key, &said.key, sizeof(said.key));
		assert_int_equal(answer.sealed, said.sealed);
		assert_int_equal(answer.roots, said.roots);
		assert_int_equal(answer.which, said.which);
		assert_int_equal(answer.share, said.share);
		assert_memory_equal(&answer.job, &said.job, sizeof(said.job));
		assert_int_equal(answer_of(text, random_below((uint32_t)length)), -EAGAIN);
		assert_int_equal(joining_run_print(&said, text, length, &(size_t){ 0 }), -ENOSPC);
		assert_int_equal(joining_run_print(&said, text, random_below((uint32_t)length),
						   &(size_t){ 0 }),
				 -ENOSPC);
	}
	assert_true(longest > 256 * 50); /* the largest jobs were really large */
}

static void waiting_comes_back_as_it_was_said(void **state)
{
	char text[RANKS_BYTES + 16];
	size_t length, longest = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct tally_set missing = { { 0 } };

		for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++)
			if (i == 0   ? rank % 3 < 2
			    : i == 1 ? true
				     : random_below(8) < (uint32_t)i % 9)
				tally_set_add(&missing, rank);
		tally_set_add(&missing, random_below(256) & -(uint32_t)(i > 1));
		assert_int_equal(joining_waiting_print(&missing, text, sizeof(text), &length), 0);
		longest = length > longest ? length : longest;
		if (i == 1)
			assert_string_equal(text, "waiting 0-255\n");
		assert_int_equal(answer_of(text, length), 0);
		assert_memory_equal(&answer.missing, &missing, sizeof(missing));
	}
	assert_true(longest < RANKS_BYTES);
}

static void a_flipped_byte_is_an_error_or_another_message(void **state)
{
	static const char place[] = PLACE;
	static const char *const texts[] = { (GREETING),	(JOIN),
					     (LEAVE),		place,
					     "waiting 1,3-4\n", "error EACCES no\n\n",
					     "left\n\n",	"ending no\n" };

	for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++)
		for (size_t i = 0; i < strlen(texts[t]); i++)
			for (int c = 0; c < 256; c++) {
				char text[512];

				snprintf(text, sizeof(text), "%s", texts[t]);
				text[i] = (char)c;
				greeting_of(text, strlen(texts[t]));
				request_of(text, strlen(texts[t]));
				answer_of(text, strlen(texts[t]));
			}
}

static void a_small_room_for_the_reason_is_respected(void **state)
{
	for (size_t size = 0; size < 40; size++) {
		char small[41];

		memset(small, 'x', sizeof(small));
		assert_int_equal(joining_message_parse("nonsense\n", 9, &request, &taken_length,
						       small, size),
				 -EINVAL);
		if (size)
			assert_true(strlen(small) < size);
		for (size_t i = size; i < sizeof(small); i++)
			assert_int_equal(small[i], 'x');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_is_read),
		cmocka_unit_test(a_greeting_names_a_place),
		cmocka_unit_test(a_join_request_is_read),
		cmocka_unit_test(a_greeting_of_an_agent_is_read_and_said),
		cmocka_unit_test(the_order_of_keys_is_free_and_rank_may_be_left_out),
		cmocka_unit_test(a_leave_request_is_read),
		cmocka_unit_test(another_version_is_refused_by_its_first_line),
		cmocka_unit_test(unknown_and_doubled_keys_are_named_with_their_line),
		cmocka_unit_test(what_is_needed_is_named),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(a_challenge_is_32_digits),
		cmocka_unit_test(bytes_that_no_line_has_are_refused_before_its_end),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(every_truncation_wants_more),
		cmocka_unit_test(an_answers_kinds_are_told_apart),
		cmocka_unit_test(answers_that_are_wrong_are_refused),
		cmocka_unit_test(that_a_job_is_sealed_is_said_behind_the_key),
		cmocka_unit_test(several_roots_are_said_together),
		cmocka_unit_test(others_are_named),
		cmocka_unit_test(a_worker_says_what_its_way_carries),
		cmocka_unit_test(each_root_has_a_name),
		cmocka_unit_test(a_nonce_is_16_digits_and_not_0),
		cmocka_unit_test(a_place_without_end_is_refused),
		cmocka_unit_test(an_unknown_error_keeps_its_words),
		cmocka_unit_test(errors_come_back_as_they_were_said),
		cmocka_unit_test(greetings_come_back_as_they_were_said),
		cmocka_unit_test(requests_come_back_as_they_were_said),
		cmocka_unit_test(members_come_back_as_they_were_said),
		cmocka_unit_test(waiting_comes_back_as_it_was_said),
		cmocka_unit_test(a_flipped_byte_is_an_error_or_another_message),
		cmocka_unit_test(a_small_room_for_the_reason_is_respected),
	};

	return cmocka_run_group_tests_name("joining", tests, NULL, NULL);
}
