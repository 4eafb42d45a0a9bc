// SPDX-License-Identifier: GPL-2.0-only
/* Proofs hold for one message, one conversation, and one place in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/session.h"

#define TOKEN "000102030405060708090a0b0c0d0e0f1011121314151617"
#define OPENING                                                                    \
	"tally-join 3\njob resnet\nchallenge 00112233445566778899aabbccddeeff\n\n" \
	"tally-join 3\nchallenge ffeeddccbbaa99887766554433221100\n\n"

/* docs/joining.md has these. */
#define JOIN \
	"proof e0ea6d2663613597e29057aef02cc0c6fba0c0162112f88df08251fb6c9bcc7a 39\njoin\nrank any\naddress 10.77.1.1:40000\n\n"
#define WAITING \
	"proof cab64f8b674624967ae1454e7589886b3a328ecc0381c174a8f585993e47881e 10\nwaiting 1\n"
#define LEAVE \
	"proof aacfb2ace3415ee13d113f9cc37eb35f23c5b56bd225041e54aa2d5221de110b 23\nleave\nrank 0\nepoch 12\n\n"

static struct session begun(const char *token, const char *opening)
{
	uint8_t key[SECRET_KEY_BYTES];
	struct session s;

	secret_token_key(token, key);
	session_begin(key, opening, strlen(opening), &s);
	return s;
}

/* An exact copy on the heap, so that a step past its end is seen. */
static int hear(struct session *s, enum session_speaker who, const char *text, size_t length,
		char *ret)
{
	char *copy = malloc(length ? length : 1);
	const char *message = NULL;
	size_t bytes = 0, end = 0;
	int r;

	memcpy(copy, text, length);
	r = session_parse(s, who, copy, length, 200, &message, &bytes, &end);
	if (r == 0) {
		assert_int_equal(message - copy + (ptrdiff_t)bytes, end);
		memcpy(ret, message, bytes);
		ret[bytes] = '\0';
	}
	free(copy);
	return r;
}

static void proofs_are_those_of_the_page(void **state)
{
	static const struct {
		enum session_speaker who;
		const char *message, *text;
	} said[] = {
		{ SESSION_WORKER, "join\nrank any\naddress 10.77.1.1:40000\n\n", JOIN },
		{ SESSION_AGENT, "waiting 1\n", WAITING },
		{ SESSION_WORKER, "leave\nrank 0\nepoch 12\n\n", LEAVE },
	};
	struct session speaker = begun(TOKEN, OPENING), listener = begun(TOKEN, OPENING);
	char text[512], heard[512];
	size_t length;

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		const char *message = said[i].message;

		assert_int_equal(session_print(&speaker, said[i].who, message, strlen(message),
					       text, strlen(said[i].text), &length),
				 -ENOSPC);
		assert_int_equal(session_print(&speaker, said[i].who, message, strlen(message),
					       text, sizeof(text), &length),
				 0);
		assert_string_equal(text, said[i].text);
		assert_int_equal(length, strlen(text));
		for (size_t n = 0; n < length; n++)
			assert_int_equal(hear(&listener, said[i].who, text, n, heard), -EAGAIN);
		assert_int_equal(hear(&listener, said[i].who, text, length, heard), 0);
		assert_string_equal(heard, message);
	}
}

static void no_byte_can_be_another(void **state)
{
	char heard[512];

	for (size_t i = 0; i < strlen(JOIN); i++)
		for (int c = 0; c < 256; c++) {
			struct session s = begun(TOKEN, OPENING);
			char text[] = JOIN;
			int r;

			text[i] = (char)c;
			r = hear(&s, SESSION_WORKER, text, strlen(JOIN), heard);
			assert_true((r == 0) == (text[i] == JOIN[i]));
			assert_true(r == 0 || r == -EBADMSG || r == -EINVAL || r == -EAGAIN);
			assert_int_equal(s.said[SESSION_WORKER], r == 0);
		}
}

static void a_proof_holds_nowhere_else(void **state)
{
	static const char other[] =
		"tally-join 3\njob resnet\nchallenge 00112233445566778899aabbccddeeff\n\n"
		"tally-join 3\nchallenge ffeeddccbbaa99887766554433221101\n\n";
	struct session s = begun(TOKEN, OPENING), another = begun(TOKEN, other);
	struct session stranger = begun(TOKEN "0", OPENING);
	char heard[512];

	assert_int_equal(hear(&another, SESSION_WORKER, JOIN, strlen(JOIN), heard), -EBADMSG);
	assert_int_equal(hear(&stranger, SESSION_WORKER, JOIN, strlen(JOIN), heard), -EBADMSG);
	assert_int_equal(hear(&s, SESSION_AGENT, JOIN, strlen(JOIN), heard), -EBADMSG);
	assert_int_equal(hear(&s, SESSION_WORKER, LEAVE, strlen(LEAVE), heard), -EBADMSG);
	assert_int_equal(hear(&s, SESSION_WORKER, JOIN, strlen(JOIN), heard), 0);
	assert_int_equal(hear(&s, SESSION_WORKER, JOIN, strlen(JOIN), heard), -EBADMSG);
	assert_int_equal(hear(&s, SESSION_WORKER, LEAVE, strlen(LEAVE), heard), 0);
}

static void lines_that_are_no_proof_are_refused(void **state)
{
#define DIGITS "0000000000000000000000000000000000000000000000000000000000000000"
	static const char *const wrong[] = {
		"proof\n",
		"proof " DIGITS "\n",
		"proof " DIGITS " \n",
		"proof " DIGITS " 0\n",
		"proof " DIGITS " 01\n1",
		"proof " DIGITS " -1\n",
		"proof " DIGITS " 201\n",
		"proof " DIGITS " 1000000\n",
		"proof " DIGITS "  1\n1",
		"proof " DIGITS "0 1\n1",
		"waiting 1\n",
		"q",
	};
	struct session s = begun(TOKEN, OPENING);
	char heard[512];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(hear(&s, SESSION_AGENT, wrong[i], strlen(wrong[i]), heard),
				 -EINVAL);
	assert_int_equal(hear(&s, SESSION_AGENT, "", 0, heard), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proofs_are_those_of_the_page),
		cmocka_unit_test(no_byte_can_be_another),
		cmocka_unit_test(a_proof_holds_nowhere_else),
		cmocka_unit_test(lines_that_are_no_proof_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
