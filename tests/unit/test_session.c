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

#include "common/joining.h"
#include "common/session.h"
#include "common/text.h"

#define TOKEN "000102030405060708090a0b0c0d0e0f1011121314151617"
#define OPENING                                                                    \
	"tally-join 4\njob resnet\nchallenge 00112233445566778899aabbccddeeff\n\n" \
	"tally-join 4\nchallenge ffeeddccbbaa99887766554433221100\n\n"

/* docs/joining.md has these. */
#define WORKER_SHARE "8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f"
#define JOIN_MESSAGE "join\nrank any\naddress 10.77.1.1:40000\nshare " WORKER_SHARE "\n\n"
#define JOIN \
	"proof 9c99069d9dcaee98d7ffef635a6afa92d5b08472d399210bdb42d927d69b91d8 110\n" JOIN_MESSAGE
#define WAITING \
	"proof eed2dd45fdcd454b2ddb4f88864b4ce202b737e1cd0ed66980e52b729ab71000 10\nwaiting 1\n"
#define LEAVE \
	"proof 9a6941653f402ec23742155c30b056f0e976d97a7cf21e66af5ec801006b6aec 23\nleave\nrank 0\nepoch 12\n\n"

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
		{ SESSION_WORKER, JOIN_MESSAGE, JOIN },
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

static void hex_is(const uint8_t *bytes, size_t count, const char *hex)
{
	char text[2 * 32 + 1];

	text_hex_print(bytes, count, text);
	assert_string_equal(text, hex);
}

/* And nobody opens it who knows the token and all that was said. */
static void a_sealed_key_is_that_of_the_page_and_is_opened_by_one(void **state)
{
	struct session s = begun(TOKEN, OPENING), other = begun(TOKEN, OPENING "x");
	uint8_t secret[3][X25519_BYTES], share[3][X25519_BYTES];
	uint8_t key[SECRET_RANK_KEY_BYTES], sealed[SECRET_RANK_KEY_BYTES], got[sizeof(sealed)];

	for (int i = 0; i < 3 * X25519_BYTES; i++)
		secret[i / X25519_BYTES][i % X25519_BYTES] = (uint8_t)i;
	for (int i = 0; i < 3; i++)
		x25519_share(secret[i], share[i]);
	hex_is(share[0], X25519_BYTES, WORKER_SHARE);
	hex_is(share[1], X25519_BYTES,
	       "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254");
	assert_true(text_hex_parse("9ce5f2bb5c0eac9d6ca25f1e0ac1b4d7", key, sizeof(key)));
	memcpy(sealed, key, sizeof(key));
	session_seal(&s, secret[1], share[0], sealed);
	hex_is(sealed, sizeof(sealed), "7afa03d32c8dbd0e7eff3f5d07221b03");
	for (int i = 0; i < 3; i++) {
		memcpy(got, sealed, sizeof(got));
		session_seal(&s, secret[i], share[1], got);
		assert_true(!memcmp(got, key, sizeof(key)) == (i == 0));
	}
	memcpy(got, sealed, sizeof(got));
	session_seal(&other, secret[0], share[1], got);
	assert_memory_not_equal(got, key, sizeof(key));
}

#define PLACE                                                                        \
	"tally-join 4\njob resnet\nchallenge 00112233445566778899aabbccddeeff\nrun " \
	"9c41d00f3ae7b552\n\ntally-join 4\nchallenge ffeeddccbbaa99887766554433221100\n\n"

static void place_key_make(const char *token, uint8_t ret[SECRET_KEY_BYTES])
{
	uint8_t rank_key[SECRET_RANK_KEY_BYTES];

	assert_true(text_hex_parse("9ce5f2bb5c0eac9d6ca25f1e0ac1b4d7", rank_key, sizeof(rank_key)));
	secret_token_key(token, ret);
	secret_place_key(ret, rank_key, ret);
}

/* And nobody uncovers it who knows all that was said, and one of the two secrets of a place. */
static void the_key_of_another_token_is_covered_as_on_the_page(void **state)
{
	uint8_t key[SECRET_KEY_BYTES], covered[SECRET_KEY_BYTES], place[SECRET_KEY_BYTES];
	struct session s, other;
	char text[256];
	size_t length;

	place_key_make(TOKEN, place);
	session_begin(place, PLACE, strlen(PLACE), &s);
	hex_is(s.key, sizeof(s.key),
	       "8ce01779d5a14218a948836c45bf079817051370f448efd16e1450a2f7082ef2");
	secret_token_key("18191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f", key);
	memcpy(covered, key, sizeof(key));
	session_cover(&s, covered);
	hex_is(covered, sizeof(covered),
	       "4df2e1c6182a6b118cb4eae955371ceea4ec36162e34cd8894f98c3bbbeb7590");
	assert_int_equal(joining_token_print(covered, text, sizeof(text), &length), 0);
	assert_string_equal(
		text, "token 4df2e1c6182a6b118cb4eae955371ceea4ec36162e34cd8894f98c3bbbeb7590\n");
	place_key_make(TOKEN "0", place);
	session_begin(place, PLACE, strlen(PLACE), &other);
	session_cover(&other, covered);
	assert_memory_not_equal(covered, key, sizeof(key));
	session_cover(&other, covered);
	session_cover(&s, covered);
	assert_memory_equal(covered, key, sizeof(key));
}

/* docs/peering.md has these. */
#define AGENT_SHARE "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254"
#define PEERS                                                                                                            \
	"tally-peer 3\nroot 10.77.0.1\nto 10.77.0.2\nchallenge 00112233445566778899aabbccddeeff\nshare " WORKER_SHARE    \
	"\n\ntally-peer 3\nroot 10.77.0.1\nto 10.77.0.2\nchallenge ffeeddccbbaa99887766554433221100\nshare " AGENT_SHARE \
	"\n\n"
#define READY "proof b9d9a89967d563157598e7fe472f5cf03bbd4ba98cda8cd9ac79682e46808788 6\nready\n"
#define FAREWELL "{\"do\":\"job-del\",\"name\":\"train\",\"id\":7}"

static void secret_make(int of, uint8_t ret[X25519_BYTES])
{
	for (int i = 0; i < X25519_BYTES; i++)
		ret[i] = (uint8_t)(of * X25519_BYTES + i);
}

/* And nobody else reads them who knows the secret and all that was said. */
static void what_agents_say_is_hidden_as_on_the_page(void **state)
{
	static const struct {
		enum session_speaker who;
		const char *message, *proof, *hidden;
	} said[] = {
		{ SESSION_WORKER, FAREWELL,
		  "proof 5a275e49b3aa0dc03f57b1240703723cb046fc1ce6de867a323fdf4cb88278f6 38\n",
		  "a5202fa798558e9fdfaf67d8d3a9c2e5494020931f8694baf5dc938f64699c3720bc242f2a4b" },
		{ SESSION_AGENT, "{\"ok\": true, \"result\": {}}\n",
		  "proof 49c266cc9b33891746080c39bf9bc8210f2cd8e20424662678ef808149c90391 27\n",
		  "9c87949c11cd9487a50b0eff7b9501d5db07e188dfb38109f31ad5" },
	};
	struct session speaker = begun(TOKEN, PEERS), listener = speaker, third;
	uint8_t secret[3][X25519_BYTES], share[3][X25519_BYTES], hidden[64];
	char text[512], heard[512], shown[512];
	size_t length, bytes;

	for (int i = 0; i < 3; i++) {
		secret_make(i, secret[i]);
		x25519_share(secret[i], share[i]);
	}
	hex_is(share[1], X25519_BYTES, AGENT_SHARE);
	assert_int_equal(session_print(&listener, SESSION_AGENT, JOINING_READY,
				       strlen(JOINING_READY), text, sizeof(text), &length),
			 0);
	assert_string_equal(text, READY);
	assert_int_equal(hear(&speaker, SESSION_AGENT, text, length, heard), 0);
	third = speaker;
	session_hide(&speaker, secret[0], share[1]);
	session_hide(&listener, secret[1], share[0]);
	session_hide(&third, secret[2], share[1]);
	for (size_t i = 0; i < 2; i++) {
		bytes = strlen(said[i].message);
		assert_int_equal(session_print(&speaker, said[i].who, said[i].message, bytes, text,
					       sizeof(text), &length),
				 0);
		assert_int_equal(length, strlen(said[i].proof) + bytes);
		assert_memory_equal(text, said[i].proof, strlen(said[i].proof));
		assert_true(text_hex_parse(said[i].hidden, hidden, bytes));
		assert_memory_equal(text + strlen(said[i].proof), hidden, bytes);
		assert_int_equal(hear(&listener, said[i].who, text, length, heard), 0);
		assert_memory_equal(heard, hidden, bytes);
		session_show(&listener, said[i].who, heard, bytes, shown);
		assert_memory_equal(shown, said[i].message, bytes);
		assert_int_equal(hear(&third, said[i].who, text, length, heard), 0);
		session_show(&third, said[i].who, heard, bytes, shown);
		assert_memory_not_equal(shown, said[i].message, bytes);
		session_show(&listener, said[i].who, heard, bytes, heard); /* in its place */
		assert_memory_equal(heard, said[i].message, bytes);
	}
}

/* The same words, said twice or by the other one, look like other words. */
static void what_is_hidden_shows_nothing_of_what_was_said_before(void **state)
{
	struct session s = begun(TOKEN, PEERS);
	uint8_t secret[X25519_BYTES], share[X25519_BYTES];
	const size_t message = strlen(FAREWELL);
	char text[3][256];
	size_t length;

	secret_make(0, secret);
	x25519_share(secret, share);
	session_hide(&s, secret, share);
	for (int i = 0; i < 3; i++)
		assert_int_equal(session_print(&s, i < 2 ? SESSION_WORKER : SESSION_AGENT, FAREWELL,
					       message, text[i], sizeof(text[i]), &length),
				 0);
	for (int i = 0; i < 3; i++)
		assert_memory_not_equal(text[i] + length - message,
					text[(i + 1) % 3] + length - message, 8);
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
		"tally-join 4\njob resnet\nchallenge 00112233445566778899aabbccddeeff\n\n"
		"tally-join 4\nchallenge ffeeddccbbaa99887766554433221101\n\n";
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
		cmocka_unit_test(a_sealed_key_is_that_of_the_page_and_is_opened_by_one),
		cmocka_unit_test(the_key_of_another_token_is_covered_as_on_the_page),
		cmocka_unit_test(what_agents_say_is_hidden_as_on_the_page),
		cmocka_unit_test(what_is_hidden_shows_nothing_of_what_was_said_before),
		cmocka_unit_test(no_byte_can_be_another),
		cmocka_unit_test(a_proof_holds_nowhere_else),
		cmocka_unit_test(lines_that_are_no_proof_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
