// SPDX-License-Identifier: GPL-2.0-only
/* Anything may come over the wire. What is taken is printed, and is the same when read again. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/joining.h"
#include "common/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void request_again(const struct joining_message *q)
{
	char text[JOINING_MESSAGE_BYTES], why[256];
	struct joining_message again;
	size_t length, taken;

	must(joining_message_print(q, text, sizeof(text), &length) == 0);
	must(joining_message_parse(text, length, &again, &taken, why, sizeof(why)) == 0);
	must(taken == length && again.leave == q->leave && again.rank == q->rank &&
	     again.epoch == q->epoch && again.port == q->port);
	must(!strcmp(again.job, q->job) && !strcmp(again.token, q->token));
	must(token_is_equal(again.token, q->token));
	must(!memcmp(&again.address, &q->address, sizeof(q->address)));
}

static bool job_is_equal(const struct run *a, const struct run *b)
{
	return a->nonce == b->nonce && a->job == b->job && a->epoch == b->epoch &&
	       a->window == b->window && a->payload_bytes == b->payload_bytes &&
	       a->workers == b->workers && !memcmp(&a->service, &b->service, sizeof(a->service)) &&
	       !memcmp(a->worker, b->worker, a->workers * sizeof(*a->worker));
}

static void answer_again(const struct joining_answer *a)
{
	char text[JOINING_ANSWER_BYTES], why[256];
	static struct joining_answer again;
	size_t length, taken;
	int r;

	if (a->kind == JOINING_WAITING)
		r = joining_waiting_print(&a->missing, text, sizeof(text), &length);
	else if (a->kind == JOINING_RUN)
		r = joining_run_print(a->rank, &a->job, text, sizeof(text), &length);
	else if (a->kind == JOINING_ENDING)
		r = joining_ending_print(a->text, text, sizeof(text), &length);
	else if (a->kind == JOINING_ERROR)
		r = joining_error_print(a->error, a->text, text, sizeof(text), &length);
	else
		r = joining_left_print(text, sizeof(text), &length);
	must(r == 0);
	must(joining_answer_parse(text, length, &again, &taken, why, sizeof(why)) == 0);
	must(taken == length && again.kind == a->kind && again.rank == a->rank);
	must(tally_set_is_equal(&again.missing, &a->missing) && job_is_equal(&again.job, &a->job));
	must(again.error == a->error && !strcmp(again.text, a->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct joining_answer answer;
	struct joining_message request;
	const char *text = (const char *)data;
	size_t taken = 0;
	char why[128];
	int r;

	r = joining_message_parse(text, size, &request, &taken, why, sizeof(why));
	must(size < JOINING_MESSAGE_BYTES || r != -EAGAIN);
	must((r == 0 && taken <= size && !*why) || (r < 0 && memchr(why, '\0', sizeof(why))));
	if (r == 0)
		request_again(&request);

	r = joining_answer_parse(text, size, &answer, &taken, why, sizeof(why));
	must(size < JOINING_ANSWER_BYTES || r != -EAGAIN);
	must((r == 0 && taken <= size && !*why) || (r < 0 && memchr(why, '\0', sizeof(why))));
	if (r == 0)
		answer_again(&answer);
	return 0;
}
