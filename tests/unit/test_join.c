// SPDX-License-Identifier: GPL-2.0-only
/*
 * Joining through an agent, over real sockets: the test is the agent, or what pretends to be
 * one, and the worker is a thread that calls the library. Nobody waits for time, only for the
 * other side; timeouts are either the tested thing or far away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tally/check.h>
#include <tally/tally.h>

#include "common/address.h"
#include "common/joining.h"
#include "client/seal.h"
#include "common/session.h"

enum {
	FAR_MS = 20000, /* no test should come so far */
};

/* The agent's side. */
#define NONCE 0x9c41d00f3ae7b552ull /* of the run */

struct agent {
	int listener, connection;
	char name[128]; /* as a worker names it */
	const char *token; /* NULL: the usual one */
	const struct tally_key *key; /* of the worker; NULL: the job has none */
	bool sealed; /* is the job? */
	bool silent; /* about its service address */
	unsigned int wants; /* enum joining_wants */
	uint64_t run; /* of the place that the worker named; 0: it named none */
	char job[NAME_BYTES];
	struct session session;
	struct joining_message request;
	char text[JOINING_MESSAGE_BYTES]; /* of what was heard last */
	size_t length;
};

/* The worker's side, and what the library said there. */
struct worker {
	struct tally_join_options options;
	pthread_t thread;
	struct tally *tally;
	int result;
	char error[512];
	int32_t sum;
};

static char directory[] = "/tmp/tally-join-XXXXXX";

/* A file descriptor, or the end: what is tested comes after. */
static int must_have(int fd)
{
	if (fd < 0) {
		print_error("no file descriptor: %s\n", strerror(errno));
		abort();
	}
	return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
}

/* --- the worker */

static void *join_run(void *argument)
{
	struct worker *w = argument;

	w->result = tally_join(&w->options, &w->tally);
	snprintf(w->error, sizeof(w->error), "%s", tally_error());
	return NULL;
}

static void *sum_run(void *argument)
{
	struct worker *w = argument;

	w->sum = 42;
	w->result = tally_allreduce(w->tally, &w->sum, &w->sum, 1, TALLY_INT32, TALLY_SUM);
	snprintf(w->error, sizeof(w->error), "%s", tally_error());
	return NULL;
}

static void *close_run(void *argument)
{
	struct worker *w = argument;

	w->result = tally_close(w->tally);
	return NULL;
}

static void worker_start(struct worker *w, void *(*run)(void *))
{
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void worker_finish(struct worker *w, int result)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	if (w->result != result)
		print_error("got %d: %s\n", w->result, w->error);
	assert_int_equal(w->result, result);
}

/* Ended with this errno, and a text with this in it. */
static void worker_refused(struct worker *w, int error, const char *words)
{
	worker_finish(w, -error);
	if (!strstr(w->error, words))
		print_error("said: %s\n", w->error);
	assert_non_null(strstr(w->error, words));
	assert_null(w->tally);
}

static struct worker worker_of(const struct agent *a)
{
	return (struct worker){
		.options = { .agent = a->name,
			     .job = "resnet",
			     .token = "5b1f",
			     .rank = -1,
			     .timeout_ms = 50,
			     .join_timeout_ms = FAR_MS },
	};
}

/* --- the agent */

static struct agent agent_at(struct sockaddr_in at)
{
	const int yes = 1;
	socklen_t length = sizeof(at);
	struct agent a = { .connection = -1 };

	a.listener = must_have(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	setsockopt(a.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	assert_int_equal(bind(a.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(a.listener, (struct sockaddr *)&at, &length), 0);
	assert_int_equal(listen(a.listener, 4), 0);
	snprintf(a.name, sizeof(a.name), "127.0.0.1:%u", ntohs(at.sin_port));
	return a;
}

static struct agent agent_on_tcp(void) { return agent_at(loopback(0)); }

static struct agent agent_on_unix(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct agent a = { .connection = -1 };

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/join.sock", directory);
	snprintf(a.name, sizeof(a.name), "%s", at.sun_path);
	a.listener = must_have(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	assert_int_equal(bind(a.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(a.listener, 4), 0);
	return a;
}

static void agent_hang_up(struct agent *a)
{
	if (a->connection >= 0)
		close(a->connection);
	a->connection = -1;
}

static void agent_end(struct agent *a)
{
	agent_hang_up(a);
	close(a->listener);
	if (*a->name == '/')
		unlink(a->name);
}

static void agent_receive(struct agent *a)
{
	const struct timeval far = { .tv_sec = FAR_MS / 1000 };
	ssize_t n;

	setsockopt(a->connection, SOL_SOCKET, SO_RCVTIMEO, &far, sizeof(far));
	n = recv(a->connection, a->text + a->length, sizeof(a->text) - a->length, 0);
	assert_true(n > 0);
	a->length += (size_t)n;
}

static void agent_say_raw(const struct agent *a, const char *text, size_t length)
{
	assert_int_equal(send(a->connection, text, length, MSG_NOSIGNAL), length);
}

/* The whole of a message, with its proof. */
static void agent_hear_more(struct agent *a)
{
	const char *message;
	char why[256];
	size_t bytes, taken;
	int r;

	a->length = 0;
	do {
		agent_receive(a);
		r = session_parse(&a->session, SESSION_WORKER, a->text, a->length, sizeof(a->text),
				  &message, &bytes, &taken);
	} while (r == -EAGAIN);
	assert_int_equal(r, 0);
	assert_int_equal(taken, a->length);
	r = joining_message_parse(message, bytes, &a->request, &taken, why, sizeof(why));
	assert_string_equal(why, "");
	assert_int_equal(r, 0);
	assert_int_equal(taken, bytes);
}

/* Takes a connection, and the greeting on it. */
static void agent_hear_greeting(struct agent *a)
{
	struct joining_greeting g;
	char why[256];
	size_t taken;
	int r;

	agent_hang_up(a);
	a->connection = must_have(accept(a->listener, NULL, NULL));
	a->length = 0;
	do {
		agent_receive(a);
		r = joining_greeting_parse(a->text, a->length, &g, &taken, why, sizeof(why));
	} while (r == -EAGAIN);
	assert_int_equal(r, 0);
	assert_int_equal(taken, a->length);
	snprintf(a->job, sizeof(a->job), "%s", g.job);
	a->wants = g.wants;
	a->run = g.run;
}

static void agent_greet(struct agent *a)
{
	const char *greeting =
		a->wants == JOINING_WANTS_SERVICE && !a->silent
			? "tally-join 4\nchallenge 000102030405060708090a0b0c0d0e0f\n"
			  "service 127.0.0.2\n\n"
			: "tally-join 4\nchallenge 000102030405060708090a0b0c0d0e0f\n\n";
	uint8_t key[SECRET_KEY_BYTES];

	secret_token_key(a->token && !a->run ? a->token : "5b1f", key);
	if (a->run) /* which is of the token that it joined with */
		secret_place_key(key, (const uint8_t *)a->key, key);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
	memcpy(a->text + a->length, greeting, strlen(greeting));
	session_begin(key, a->text, a->length + strlen(greeting), &a->session);
	agent_say_raw(a, greeting, strlen(greeting));
}

/* Takes a connection, and a message from it. */
static void agent_hear(struct agent *a)
{
	agent_hear_greeting(a);
	agent_greet(a);
	agent_hear_more(a);
}

static void agent_say_in_pieces(struct agent *a, const char *text, size_t length, size_t piece)
{
	char proven[JOINING_ANSWER_BYTES + SESSION_LINE_BYTES];

	assert_int_equal(session_print(&a->session, SESSION_AGENT, text, length, proven,
				       sizeof(proven), &length),
			 0);
	for (size_t i = 0; i < length; i += piece)
		agent_say_raw(a, proven + i, length - i < piece ? length - i : piece);
}

static void agent_say(struct agent *a, const char *text, size_t length)
{
	agent_say_in_pieces(a, text, length, SIZE_MAX / 2);
}

static void agent_say_text(struct agent *a, const char *text) { agent_say(a, text, strlen(text)); }

static uint16_t port_of(const struct agent *a) { return endpoint_port(&a->request.address); }

static struct sockaddr_storage address_of(const char *text, uint16_t port)
{
	struct sockaddr_storage a;

	assert_int_equal(address_parse(text, port, &a), 0);
	return a;
}

/* An address of this process alone, where no node listens unless the test is one. */
static struct sockaddr_storage service(void)
{
	uint32_t id = (uint32_t)getpid();
	char text[64];

	snprintf(text, sizeof(text), "127.%u.%u.%u", 1 + id / 64516 % 254, 1 + id / 254 % 254,
		 1 + id % 254);
	return address_of(text, TALLY_UDP_PORT);
}

/* A job of so many workers, of which the last one is the one that asked. */
static struct run job_of(const struct agent *a, uint16_t workers)
{
	struct run job = {
		.nonce = NONCE,
		.job = 7,
		.epoch = 12,
		.window = 16,
		.payload_bytes = 1408,
		.workers = workers,
		.service = service(),
	};
	char text[64];

	for (unsigned int rank = 0; rank < workers; rank++) {
		snprintf(text, sizeof(text), "127.0.0.9:%u", 50000 + rank);
		job.worker[rank] = address_of(text, 0);
	}
	job.worker[workers - 1] = a->request.address;
	return job;
}

/* The place of the last rank, with its key. */
static void place_print(const struct agent *a, const struct run *job, char *text,
			size_t *ret_length)
{
	static const uint8_t secret[X25519_BYTES] = { 7 };
	static struct joining_answer said;

	said = (struct joining_answer){ .rank = job->workers - 1,
					.job = *job,
					.sealed = a->sealed };
	if (a->key) {
		memcpy(said.key.sealed, a->key, sizeof(*a->key));
		x25519_share(secret, said.key.share);
		session_seal(&a->session, secret, a->request.share, said.key.sealed);
		assert_memory_not_equal(said.key.sealed, a->key, sizeof(*a->key));
	}
	assert_int_equal(joining_run_print(&said, text, JOINING_ANSWER_BYTES, ret_length), 0);
}

static void agent_give_place(struct agent *a, uint16_t workers, bool byte_by_byte)
{
	struct run job = job_of(a, workers);
	char text[JOINING_ANSWER_BYTES];
	size_t length;

	place_print(a, &job, text, &length);
	agent_say_in_pieces(a, text, length, byte_by_byte ? 1 : length + SESSION_LINE_BYTES);
}

/* From nothing to a place. */
static void join_fully(struct agent *a, struct worker *w, uint16_t workers)
{
	worker_start(w, join_run);
	agent_hear(a);
	agent_give_place(a, workers, false);
	worker_finish(w, 0);
}

static void still_connected(const struct agent *a)
{
	char byte;

	assert_int_equal(recv(a->connection, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Waits for the end of the connection, whatever is said before. */
static void hung_up(const struct agent *a)
{
	char text[JOINING_MESSAGE_BYTES];
	ssize_t n;

	while ((n = recv(a->connection, text, sizeof(text), 0)) > 0)
		;
	assert_int_equal(n, 0);
}

/* The next message on the connection says that the rank leaves. */
static void heard_leaving(struct agent *a, int rank)
{
	agent_hear_more(a);
	assert_int_equal(a->request.what, JOINING_LEAVE);
	assert_string_equal(a->job, "resnet");
	assert_int_equal(a->request.rank, rank);
	assert_int_equal(a->request.epoch, 12);
}

/* Nobody comes to say anything on another connection. */
static void no_more_is_said(const struct agent *a)
{
	assert_int_equal(fcntl(a->listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(accept(a->listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
}

/* --- joining */

static void a_place_over_tcp_is_where_the_connection_is(void **state)
{
	struct sockaddr_in at = loopback(0);
	int other = must_have(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	assert_string_equal(a.job, "resnet");
	assert_int_equal(a.request.rank, -1);
	assert_int_not_equal(port_of(&a), 0);

	/* It is bound before it asks. */
	at = loopback(port_of(&a));
	assert_int_equal(bind(other, (struct sockaddr *)&at, sizeof(at)), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(other);

	agent_say_text(&a, "waiting 0-1\n");
	agent_say_text(&a, "waiting 1\n");
	agent_give_place(&a, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_rank(w.tally), 2);
	assert_int_equal(tally_workers(w.tally), 3);

	still_connected(&a);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

/* Another one than that of other tests here, which may be at the same port. */
static struct agent agent_elsewhere(void)
{
	struct sockaddr_in at = loopback(TALLY_UDP_PORT);

	at.sin_addr.s_addr = htonl(0x7f000000 | (getpid() & 0xffff) << 8 | 9);
	return agent_at(at);
}

static void agent_say_elsewhere(struct agent *a, const struct agent *other)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);
	char text[128];
	size_t length;

	assert_int_equal(getsockname(other->listener, (struct sockaddr *)&at, &bytes), 0);
	assert_int_equal(joining_elsewhere_print(&at, text, sizeof(text), &length), 0);
	agent_say_text(a, text);
}

/* Over a unix socket, which has no address, it still finds its own towards the other one. */
static void who_is_told_where_the_root_is_joins_there(void **state)
{
	struct agent a = agent_on_unix(), root = agent_elsewhere();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_text(&a, "waiting 1\n");
	agent_say_elsewhere(&a, &root);
	agent_hear(&root);
	hung_up(&a);
	assert_string_equal(root.job, "resnet");
	agent_give_place(&root, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_workers(w.tally), 3);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&root);
	agent_end(&root);
	agent_end(&a);
}

/* It may have died a moment ago: the first agent will know of another one. */
static void who_is_sent_to_nobody_comes_back(void **state)
{
	struct agent a = agent_on_tcp(), root = agent_elsewhere();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	shutdown(root.listener, SHUT_RDWR); /* nobody is there any more */
	agent_say_elsewhere(&a, &root);
	agent_hang_up(&a);
	agent_hear(&a);
	agent_give_place(&a, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&root);
	agent_end(&a);
}

static void who_is_sent_round_in_a_circle_gives_up(void **state)
{
	struct agent a = agent_on_tcp(), circle = agent_elsewhere();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_elsewhere(&a, &circle);
	for (unsigned int i = 0; i < 8; i++) {
		agent_hear(&circle);
		agent_say_elsewhere(&circle, &circle);
		agent_hang_up(&circle);
	}
	worker_finish(&w, -ELOOP);
	assert_non_null(strstr(w.error, "send this worker from one to the other"));
	agent_end(&circle);
	agent_end(&a);
}

static void over_a_unix_socket_the_worker_says_its_address(void **state)
{
	struct agent a = agent_on_unix();
	struct worker w = worker_of(&a);
	char text[64];

	w.options.address = "127.0.0.1"; /* any port */
	w.options.rank = 1;
	worker_start(&w, join_run);
	agent_hear(&a);
	assert_int_equal(a.request.rank, 1);
	assert_int_equal(a.wants, JOINING_WANTS_NOTHING); /* which older agents would not know */
	address_print(&a.request.address, text, sizeof(text));
	assert_string_equal(text, "127.0.0.1");
	assert_int_not_equal(((struct sockaddr_in *)&a.request.address)->sin_port,
			     htons(TALLY_UDP_PORT));
	agent_give_place(&a, 2, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_rank(w.tally), 1);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

static void over_a_unix_socket_the_agent_says_what_the_worker_is_to_reach(void **state)
{
	static const char older[] = "error EINVAL line 4: wants: no such key\n\n";
	struct agent a = agent_on_unix();
	struct worker w = worker_of(&a);
	char text[64];

	worker_start(&w, join_run);
	agent_hear(&a);
	assert_int_equal(a.wants, JOINING_WANTS_SERVICE);
	address_print(&a.request.address, text, sizeof(text));
	assert_string_equal(text, "127.0.0.1"); /* from where 127.0.0.2 is reached */
	agent_give_place(&a, 2, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);

	w = worker_of(&a);
	worker_start(&w, join_run);
	agent_hear_greeting(&a);
	agent_say_raw(&a, older, strlen(older));
	worker_refused(&w, EINVAL, "is too old to name its service address. Say where");

	a.silent = true;
	w = worker_of(&a);
	worker_start(&w, join_run);
	agent_hear_greeting(&a);
	agent_greet(&a);
	worker_refused(&w, EPROTO, "does not greet");
	agent_end(&a);
}

static void a_slow_agent_is_understood(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_in_pieces(&a, "waiting 0,2\n", strlen("waiting 0,2\n"), 1);
	agent_give_place(&a, 256, true);
	worker_finish(&w, 0);
	assert_int_equal(tally_workers(w.tally), 256);
	assert_int_equal(tally_close(w.tally), 0);
	agent_end(&a);
}

static void the_agents_errors_are_passed_on(void **state)
{
	static const int errors[] = {
#define X(name) name,
		JOINING_ERRORS(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct agent a = agent_on_tcp();
		struct worker w = worker_of(&a);
		char text[256];
		size_t length;

		worker_start(&w, join_run);
		agent_hear(&a);
		assert_int_equal(joining_error_print(-errors[i], "rank 3 is taken, by 10.0.0.1",
						     text, sizeof(text), &length),
				 0);
		agent_say_text(&a, "waiting 1\n");
		agent_say(&a, text, length);
		worker_refused(&w, errors[i], "rank 3 is taken, by 10.0.0.1");
		hung_up(&a);
		agent_end(&a);
	}
}

/* These say it without proof, as version 2 did. */
static void an_older_agent_is_said_to_be_the_older_one(void **state)
{
	static const char *const said[] = {
		"line 1: tally-join: version 4: only version 1 is spoken here",
		"line 1: tally-join: version 4: the worker is newer than the agent, which speaks "
		"version 2",
	};

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		struct agent a = agent_on_tcp();
		struct worker w = worker_of(&a);
		char text[256];

		worker_start(&w, join_run);
		agent_hear_greeting(&a);
		snprintf(text, sizeof(text), "error EPROTONOSUPPORT %s\n\n", said[i]);
		agent_say_raw(&a, text, strlen(text));
		worker_refused(&w, EPROTONOSUPPORT,
			       "does not speak version 4 of joining, as this library does: line 1");
		assert_non_null(strstr(w.error, said[i]));
		agent_end(&a);
	}
}

static void an_agent_that_does_not_know_the_token_gives_no_place(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	a.token = "5b1e";
	worker_start(&w, join_run);
	agent_hear_greeting(&a);
	agent_greet(&a);
	agent_receive(&a); /* a proof that tells it nothing */
	agent_say_text(&a, "waiting 1\n");
	worker_refused(&w, EPROTO, "does not know the token of job resnet");
	hung_up(&a);
	agent_end(&a);
}

/* Not one byte of what an agent says can be changed, and none of it said again. */
static void what_is_changed_on_the_way_is_noticed(void **state)
{
	static const char waiting[] = "waiting 1\n";

	for (size_t i = 0;; i++) {
		char proven[SESSION_LINE_BYTES + sizeof(waiting)];
		struct agent a = agent_on_tcp();
		struct worker w = worker_of(&a);
		size_t length;

		worker_start(&w, join_run);
		agent_hear(&a);
		assert_int_equal(session_print(&a.session, SESSION_AGENT, waiting, strlen(waiting),
					       proven, sizeof(proven), &length),
				 0);
		if (i < length)
			proven[i] ^= 1;
		agent_say_raw(&a, proven, length);
		agent_say_raw(&a, proven, length); /* a length that was changed wants more */
		worker_refused(&w, EPROTO, "the agent at 127.0.0.1");
		agent_end(&a);
		if (i == length)
			return;
	}
}

static void once_an_agent_is_known_nobody_else_says_anything(void **state)
{
	static const char error[] = "error ECANCELED the job was deleted\n\n";
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_text(&a, "waiting 1\n");
	agent_say_raw(&a, error, strlen(error));
	worker_refused(&w, EPROTO, "an answer without proof");
	agent_end(&a);
}

static void ranks_that_do_not_come_are_named(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	w.options.join_timeout_ms = 200;
	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_text(&a, "waiting 0-5\n");
	agent_say_text(&a, "waiting 1,3-4\n");
	worker_refused(&w, ETIMEDOUT, "ranks 1,3-4 of job resnet have not come within 0.2 s");
	hung_up(&a);
	agent_end(&a);

	a = agent_on_tcp();
	w = worker_of(&a);
	w.options.join_timeout_ms = 200;
	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_text(&a, "waiting 7\n");
	agent_say_raw(&a, "proof 8", strlen("proof 8")); /* not a whole one */
	worker_refused(&w, ETIMEDOUT, "rank 7 of job resnet has not come");
	agent_end(&a);
}

static void an_agent_that_says_nothing_is_a_timeout(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	w.options.join_timeout_ms = 100;
	worker_start(&w, join_run);
	agent_hear(&a);
	worker_refused(&w, ETIMEDOUT, "place in job resnet, and no run has begun for 0.1 s");
	agent_end(&a);
}

static void an_agent_that_dies_meanwhile_is_an_error_at_last(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	w.options.join_timeout_ms = 1000;
	worker_start(&w, join_run);
	agent_hear(&a);
	agent_say_text(&a, "waiting 1\n");
	agent_say_raw(&a, "proof 8", strlen("proof 8"));
	shutdown(a.listener, SHUT_RDWR); /* nobody is there any more */
	agent_hang_up(&a);
	worker_refused(&w, ECONNREFUSED, "Connection refused (tried ");
	agent_end(&a);
}

static void who_waits_at_an_agent_that_is_restarted_asks_again(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	for (unsigned int i = 0; i < 3; i++) {
		agent_hear(&a);
		agent_say_text(&a, "waiting 1\n");
		agent_hang_up(&a);
	}
	agent_hear(&a);
	/* The old connection still has the rank, or the last one, as far as the agent knows. */
	agent_say_text(&a, "error EADDRINUSE rank 3 of job resnet is taken\n\n");
	agent_hear(&a);
	agent_say_text(&a, "error EUSERS all ranks of job resnet are taken\n\n");
	agent_hear(&a);
	agent_give_place(&a, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

/* Packets on lo are as large as any. An agent of before 0036 does not know the word. */
static void a_worker_says_what_its_way_carries_to_who_understands(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	assert_int_equal(a.request.mtu, 65535);
	assert_int_equal(a.request.payload_bytes, 0);
	agent_say_text(&a, "error EINVAL line 5: mtu: no such key\n\n");
	agent_hear(&a);
	assert_int_equal(a.request.mtu, 0);
	agent_give_place(&a, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

static void who_joins_before_its_agent_is_there_waits_for_it(void **state)
{
	struct agent a = agent_on_unix();
	struct worker w = worker_of(&a);

	agent_end(&a); /* with the socket's file */
	w.options.address = "127.0.0.1";
	worker_start(&w, join_run);
	a = agent_on_unix();
	agent_hear(&a);
	agent_give_place(&a, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

static void another_agent_is_asked_while_the_first_one_is_away(void **state)
{
	struct agent away = agent_on_tcp(), dies = agent_on_tcp(), other = agent_on_tcp();
	struct worker w = worker_of(&away);
	char others[512];

	agent_end(&away);
	snprintf(others, sizeof(others), "%s,%s", dies.name, other.name);
	w.options.other_agents = others;
	worker_start(&w, join_run);
	agent_hear(&dies);
	agent_say_text(&dies, "waiting 1\n");
	agent_end(&dies);
	agent_hear(&other);
	agent_give_place(&other, 3, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&other);
	agent_end(&other);
}

/* What an agent refuses is no reason to ask another one. */
static void who_is_told_no_asks_nobody_else(void **state)
{
	static const struct {
		const char *text;
		int error;
		const char *words;
	} said[] = {
		{ "error EACCES no such job\n\n", EACCES, "no such job" },
		{ "error EADDRINUSE rank 3 is taken\n\n", EADDRINUSE, "is taken" },
		{ "error EHOSTUNREACH no way from the node\n\n", EHOSTUNREACH, "no way" },
	};

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		struct agent a = agent_on_tcp(), other = agent_on_tcp();
		struct worker w = worker_of(&a);

		w.options.other_agents = other.name;
		worker_start(&w, join_run);
		agent_hear(&a);
		agent_say_text(&a, said[i].text);
		worker_refused(&w, said[i].error, said[i].words);
		agent_end(&a);
		agent_end(&other);
	}
}

static void what_is_no_agent_is_told(void **state)
{
	static const struct {
		int error;
		const char *said, *words;
	} strangers[] = {
		{ EPROTO, "HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1" },
		{ EPROTO, "\x16\x03\x01", "byte 0x16" },
		{ EPROTO, "left\n\n", "does not greet" },
		{ EPROTO, "tally-join 4\nchallenge 12\n", "32 digits" },
		{ EPROTONOSUPPORT, "tally-join 1\n", "the agent is older than the worker" },
	}, cases[] = {
		{ EPROTO, "left\n\n", "sent an unexpected answer" },
		{ EPROTO, "waiting 256\n", "ranks up to 255" },
		{ EPROTO, "waiting 1", "one message, with its end" },
		{ EPROTO, "run\nrank 9\njob 1\nservice 127.0.0.1\n\n", "nonce" },
	};

	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
		struct agent a = agent_on_tcp();
		struct worker w = worker_of(&a);

		worker_start(&w, join_run);
		agent_hear_greeting(&a);
		agent_say_raw(&a, strangers[i].said, strlen(strangers[i].said));
		worker_refused(&w, strangers[i].error, strangers[i].words);
		agent_end(&a);
	}

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct agent a = agent_on_tcp();
		struct worker w = worker_of(&a);

		worker_start(&w, join_run);
		agent_hear(&a);
		agent_say_text(&a, cases[i].said);
		worker_refused(&w, cases[i].error, cases[i].words);
		agent_end(&a);
	}
}

static void a_flood_without_end_is_refused(void **state)
{
	static char flood[64 << 10];
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	ssize_t n = 1;

	memset(flood, 'a', sizeof(flood));
	snprintf(flood, sizeof(flood), "run\nrank 0\nnonce 1111111111111111\n");
	flood[strlen(flood)] = 'a'; /* and on without an end */
	worker_start(&w, join_run);
	agent_hear(&a);
	while (n > 0) /* until it hangs up */
		n = send(a.connection, flood, sizeof(flood), MSG_NOSIGNAL);
	worker_refused(&w, EMSGSIZE, "16384 bytes");
	agent_end(&a);
}

static void a_place_of_another_address_is_refused(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	worker_start(&w, join_run);
	agent_hear(&a);
	endpoint_port_set(&a.request.address, port_of(&a) ^ 1);
	agent_give_place(&a, 2, false);
	worker_refused(&w, EPROTO, "must not be translated");
	hung_up(&a);
	agent_end(&a);
}

static void a_place_that_cannot_be_used_is_given_back(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	char text[JOINING_ANSWER_BYTES];
	struct run job;
	size_t length;

	worker_start(&w, join_run);
	agent_hear(&a);
	job = job_of(&a, 1);
	job.service = address_of("192.0.2.1", TALLY_UDP_PORT); /* no way there from loopback */
	place_print(&a, &job, text, &length);
	agent_say(&a, text, length);
	worker_refused(&w, EINVAL, "cannot connect to the service address");
	hung_up(&a);
	agent_end(&a);
}

static void ipv6_agents_have_ipv6_workers(void **state)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct agent a = { .connection = -1 };
	char text[JOINING_ANSWER_BYTES];
	socklen_t length = sizeof(at);
	struct run job;
	struct worker w;
	size_t bytes;

	a.listener = must_have(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (bind(a.listener, (struct sockaddr *)&at, sizeof(at)) < 0 && errno == EADDRNOTAVAIL) {
		agent_end(&a);
		skip(); /* no IPv6 on this machine */
	}
	assert_int_equal(getsockname(a.listener, (struct sockaddr *)&at, &length), 0);
	assert_int_equal(listen(a.listener, 4), 0);
	snprintf(a.name, sizeof(a.name), "[::1]:%u", ntohs(at.sin6_port));
	w = worker_of(&a);
	worker_start(&w, join_run);
	agent_hear(&a);
	job = job_of(&a, 1);
	job.service = address_of("::1", TALLY_UDP_PORT);
	place_print(&a, &job, text, &bytes);
	agent_say(&a, text, bytes);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

static void an_agent_that_is_not_there_is_named(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	agent_end(&a);
	w.options.join_timeout_ms = 500;
	worker_start(&w, join_run);
	worker_refused(&w, ECONNREFUSED, w.options.agent);
	/* At 0, 0.1 and 0.3 s. */
	assert_non_null(strstr(w.error, "Connection refused (tried 3 times within 0.3 s)"));

	w.options.agent = "/nowhere/join.sock";
	w.options.address = "127.0.0.1:50000";
	worker_start(&w, join_run);
	worker_refused(&w, ENOENT, "/nowhere/join.sock");
}

/* --- options and environment */

static void refused(const struct tally_join_options *o, int error, const char *words)
{
	struct tally *t = NULL;
	int r = tally_join(o, &t);

	if (r != -error || !strstr(tally_error(), words))
		print_error("got %d: %s\n", r, tally_error());
	assert_int_equal(r, -error);
	assert_non_null(strstr(tally_error(), words));
	assert_null(t);
}

/* Nobody is at that agent's port, and who joins does not wait for anybody there. */
#define OPTIONS(...)                                           \
	(&(struct tally_join_options){ .agent = "127.0.0.1:1", \
				       .job = "resnet",        \
				       .token = "5b1f",        \
				       .rank = -1,             \
				       .join_timeout_ms = 100, \
				       __VA_ARGS__ })
#pragma GCC diagnostic ignored "-Woverride-init"

static void options_that_are_wrong_are_named(void **state)
{
	char path[256];

	memset(path, '/', sizeof(path));
	path[255] = '\0';
	assert_int_equal(tally_join(OPTIONS(), NULL), -EINVAL);
	refused(OPTIONS(.agent = "somewhere"), EINVAL, "agent: 'somewhere'");
	refused(OPTIONS(.agent = ""), EINVAL, "agent: ''");
	refused(OPTIONS(.agent = path), ENAMETOOLONG, "at most 107 bytes");
	refused(OPTIONS(.job = NULL), EINVAL, "$TALLY_JOB");
	refused(OPTIONS(.job = "a\nrank 1"), EINVAL, "job: 'a");
	refused(OPTIONS(.job = ""), EINVAL, "job: ''");
	refused(OPTIONS(.token = NULL), EINVAL, "$TALLY_TOKEN_FILE");
	refused(OPTIONS(.token = "se cret"), EINVAL, "token: malformed");
	assert_null(strstr(tally_error(), "cret"));
	refused(OPTIONS(.rank = -2), EINVAL, "rank: -2");
	refused(OPTIONS(.rank = 256), EINVAL, "rank: 256");
	refused(OPTIONS(.address = "10.77.1.1:"), EINVAL, "address: '10.77.1.1:'");
	refused(OPTIONS(.address = "[fd77::1]:1"), EINVAL, "one is IPv4, the other IPv6");
	refused(OPTIONS(.address = "192.0.2.1:1"), EADDRNOTAVAIL, "cannot bind to 192.0.2.1:1,");
	refused(OPTIONS(.address = "127.0.0.1"), ECONNREFUSED, "127.0.0.1 (option address): ");
	setenv("TALLY_ADDRESS", "10.77.1.1:", 1);
	refused(OPTIONS(), EINVAL, "$TALLY_ADDRESS: '10.77.1.1:' is no address");
	setenv("TALLY_ADDRESS", "fd77::1", 1);
	refused(OPTIONS(), EINVAL, "$TALLY_ADDRESS and agent: one is IPv4, the other IPv6");
	setenv("TALLY_ADDRESS", "192.0.2.1:1", 1);
	refused(OPTIONS(), EADDRNOTAVAIL, "$TALLY_ADDRESS: cannot bind to 192.0.2.1:1,");
	setenv("TALLY_ADDRESS", "127.0.0.1", 1);
	refused(OPTIONS(.agent = "192.0.2.1"), EINVAL, "from 127.0.0.1 ($TALLY_ADDRESS): ");
	unsetenv("TALLY_ADDRESS");
	setenv("TALLY_RANK", "first", 1);
	refused(OPTIONS(), EINVAL, "$TALLY_RANK: 'first'");
	unsetenv("TALLY_RANK");
	if (access("/run/tally/join.sock", F_OK) == 0) {
		print_message("SKIP: an agent runs here, so none is never missing\n");
		return;
	}
	refused(OPTIONS(.agent = NULL), EINVAL, "$TALLY_AGENT");
	refused(NULL, EINVAL, "/run/tally/join.sock");
}

static void congestion_is_on_or_off(void **state)
{
	refused(OPTIONS(.congestion = TALLY_CONGESTION_OFF + 1), EINVAL,
		"congestion: 2 is neither");
	setenv("TALLY_CONGESTION", "of", 1);
	refused(OPTIONS(.agent = "a"), EINVAL, "$TALLY_CONGESTION: 'of': it is on or off");
	setenv("TALLY_CONGESTION", "off", 1);
	refused(OPTIONS(.agent = "a"), EINVAL, "agent: 'a' is neither");
	unsetenv("TALLY_CONGESTION");
}

/* Of what is said for each root, there is one for all, or one for each. */
static void lists_of_roots_are_as_long_as_that_of_agents(void **state)
{
	static const char many[] = "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a";

	refused(OPTIONS(.agent = many), E2BIG, "agent: 17 of them, allowed are 1 to 16");
	refused(OPTIONS(.agent = "a,b,c", .job = "a,b"), EINVAL,
		"job: 2 with commas between, and 3 of agent");
	refused(OPTIONS(.agent = "a,b", .token = "a,b,c"), EINVAL, "token: 3");
	refused(OPTIONS(.job = many), E2BIG, "job: 17 of them, allowed are 1 to 16");
	refused(OPTIONS(.job = "a,b", .token = "a,b,c"), EINVAL,
		"token: 3 with commas between, and 2 of job");
	refused(OPTIONS(.job = "a,b,a"), EINVAL, "job: roots 1 and 3 are one job at one agent");
	refused(OPTIONS(.agent = "a,b,b", .job = "j"), EINVAL, "job: roots 2 and 3 are one job");
	refused(OPTIONS(.agent = "127.0.0.1:1,127.0.0.1:1", .job = "a,ab"), ECONNREFUSED,
		"root 1 of 2: ");
	refused(OPTIONS(.agent = "127.0.0.1:1", .job = "a,b"), ECONNREFUSED,
		"root 1 of 2: the agent at 127.0.0.1:1: ");
	refused(OPTIONS(.agent = "a,b", .address = "a,b,c"), EINVAL, "address: 3");
	refused(OPTIONS(.agent = "a,b", .shares = "1,2,3"), EINVAL, "shares: 3");
	refused(OPTIONS(.shares = "1,2"), EINVAL, "shares: 2 with commas between, and 1 of agent");
	refused(OPTIONS(.agent = "a,b", .shares = "1,0"), EINVAL, "shares: '1,0': numbers from 1");
	refused(OPTIONS(.agent = "a,b", .shares = "1,"), EINVAL, "shares: '1,'");
	refused(OPTIONS(.agent = "a,b", .shares = "1,1001"), EINVAL, "1 to 1000");
	refused(OPTIONS(.agent = "a,b"), EINVAL, "root 1 of 2: agent: 'a' is neither");
	refused(OPTIONS(.agent = "127.0.0.1:1,b"), ECONNREFUSED,
		"root 1 of 2: the agent at 127.0.0.1:1: ");
	refused(OPTIONS(.agent = "127.0.0.1:1,b", .job = "B,b"), EINVAL, "job: 'B'");
	refused(OPTIONS(.agent = "127.0.0.1:1,b", .token = ",b"), EINVAL, "token: malformed");
	setenv("TALLY_SHARES", "x,1", 1);
	refused(OPTIONS(.agent = "a,b"), EINVAL, "shares: 'x,1'");
	unsetenv("TALLY_SHARES");
	setenv("TALLY_TOKEN_FILE", "/nowhere/a,/nowhere/b", 1);
	refused(OPTIONS(.token = NULL), ENOENT, "token file /nowhere/a,/nowhere/b: ");
	refused(OPTIONS(.agent = "127.0.0.1:1,b", .token = NULL), ENOENT,
		"root 1 of 2: token file /nowhere/a: ");
	unsetenv("TALLY_TOKEN_FILE");
}

/* The file's path; its content is `text` and its mode `mode`. */
static const char *token_file(const char *text, mode_t mode)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/token", directory);
	unlink(path);
	fd = must_have(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static void other_agents_are_addresses_of_one_cluster(void **state)
{
	refused(OPTIONS(.other_agents = "10.77.0.2,/run/tally/join.sock"), EINVAL,
		"other_agents: '/run/tally/join.sock' is no address");
	refused(OPTIONS(.agent = "127.0.0.1:1,127.0.0.2:1", .other_agents = "10.77.0.2"), EINVAL,
		"name one agent of a cluster");
	refused(OPTIONS(.address = "127.0.0.1", .other_agents = "fd77::1"), EINVAL,
		"one is IPv4, the other IPv6");
	refused(OPTIONS(.other_agents = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"), E2BIG,
		"other_agents: 17 of them");
}

static void token_files_must_be_private_and_hold_a_token(void **state)
{
	const char *path = token_file("secret\n", 0644);
	char longest[160];

	setenv("TALLY_TOKEN_FILE", path, 1);
	refused(OPTIONS(.token = NULL), EPERM, "chmod o-rw");
	refused(OPTIONS(.token = NULL), EPERM, directory);
	token_file("secret\n", 0602);
	refused(OPTIONS(.token = NULL), EPERM, "may write it");
	setenv("TALLY_TOKEN_FILE", directory, 1);
	refused(OPTIONS(.token = NULL), EINVAL, "is not a file");
	setenv("TALLY_TOKEN_FILE", path, 1);
	token_file("se cret\n", 0600);
	refused(OPTIONS(.token = NULL), EINVAL, "is no token");
	assert_null(strstr(tally_error(), "cret"));
	token_file("\nsecret\n", 0600);
	refused(OPTIONS(.token = NULL), EINVAL, "is no token");
	memset(longest, 'a', sizeof(longest));
	longest[129] = '\0';
	token_file(longest, 0600);
	refused(OPTIONS(.token = NULL), EINVAL, "is no token");
	longest[128] = '\0';
	token_file(longest, 0640); /* taken: on to an agent that is not there */
	refused(OPTIONS(.token = NULL), ECONNREFUSED, "127.0.0.1:1");
	unlink(path);
	refused(OPTIONS(.token = NULL), ENOENT, path);
	unsetenv("TALLY_TOKEN_FILE");
}

static void what_no_option_says_the_environment_says(void **state)
{
	struct agent a = agent_on_unix();
	struct worker w = { .options = { .rank = -1, .join_timeout_ms = FAR_MS } };
	const char *path = token_file("secret\r\nremark\n", 0600);

	setenv("TALLY_AGENT", a.name, 1);
	setenv("TALLY_JOB", "bert", 1);
	setenv("TALLY_TOKEN_FILE", path, 1);
	setenv("TALLY_RANK", "3", 1);
	setenv("TALLY_ADDRESS", "127.0.0.1", 1);
	worker_start(&w, join_run);
	a.token = "secret";
	agent_hear(&a);
	assert_string_equal(a.job, "bert");
	assert_int_equal(a.request.rank, 3);
	agent_give_place(&a, 4, false);
	worker_finish(&w, 0);
	assert_int_equal(tally_close(w.tally), 0);
	agent_end(&a);
	unlink(path);
	unsetenv("TALLY_AGENT");
	unsetenv("TALLY_JOB");
	unsetenv("TALLY_TOKEN_FILE");
	unsetenv("TALLY_RANK");
	unsetenv("TALLY_ADDRESS");
}

/* --- with a place */

/* A node for a job of one worker: its contribution is the sum. */
static int node_open(void)
{
	struct sockaddr_storage at = service();
	int fd = must_have(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)), 0);
	return fd;
}

/* `key`: that of the rank, of a job that has some. */
static void node_answer_with(int fd, const struct tally_key *key)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	_Alignas(struct tally_header) uint8_t frame[2048];
	struct tally_header *h = (struct tally_header *)frame;
	ssize_t n = recvfrom(fd, frame, sizeof(frame), 0, (struct sockaddr *)&from, &length);
	struct tally_set set;

	assert_true(n >= (ssize_t)sizeof(*h));
	if (n < 0)
		return;
	set = tally_header_set(h);
	assert_true(tally_le64_get(h->tag) ==
		    (key ? tally_keyed_tag(h, &set, key) : tally_tag(h, &set)));
	h->kind = TALLY_RESULT;
	h->flags &= TALLY_FLAGS_STICKY;
	h->about = tally_le16(0);
	h->tag = tally_le64(key ? tally_keyed_tag(h, &set, key) : tally_tag(h, &set));
	assert_int_equal(sendto(fd, frame, (size_t)n, 0, (struct sockaddr *)&from, length), n);
}

static void node_answer(int fd) { node_answer_with(fd, NULL); }

/* The first contribution that comes: is its check made with this secret? */
static bool is_sealed_by(int fd, const struct tally_key *secret)
{
	struct seal seal;
	struct seal_masks m;
	_Alignas(struct tally_header) uint8_t frame[2048];
	const struct tally_header *h = (const struct tally_header *)frame;
	const uint64_t *word = (const uint64_t *)(h + 1);
	ssize_t n = recv(fd, frame, sizeof(frame), MSG_PEEK);

	assert_true(n > (ssize_t)sizeof(*h));
	seal_begin_run(&seal, secret, tally_run_identity(0x9c41d00f3ae7b552, 7, 12));
	m = seal_masks(&seal, tally_le32_get(h->seq), tally_le64_get(h->call), 0, 0, 1);
	return tally_le64_get(h->check) ==
	       m.all + seal_words(&seal, h->lane, word, (n - sizeof(*h)) / sizeof(*word));
}

/* And takes none that were made without it. */
static void who_gets_a_key_makes_tags_with_it(void **state)
{
	const struct tally_key key = { { 0x0123456789abcdef, 0xfedcba9876543210 } };
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();

	a.key = &key;
	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 1);
	worker_start(&w, sum_run);
	node_answer_with(node, &key);
	worker_finish(&w, 0);
	assert_int_equal(w.sum, 42);
	worker_start(&w, close_run);
	node_answer_with(node, &key);
	worker_finish(&w, 0);
	agent_end(&a);
	close(node);
}

/* The secret is that of docs/joining.md, by the token of its test vectors. */
static void the_secret_of_a_sealed_job_follows_from_the_token(void **state)
{
	const uint8_t page[] = { 0xfd, 0xf6, 0x4e, 0xc1, 0x12, 0x58, 0xc9, 0xb8,
				 0x38, 0x52, 0x0d, 0x06, 0x8c, 0xa6, 0x8b, 0x12 };
	struct tally_key secret;

	memcpy(&secret, page, sizeof(secret));
	for (int sealed = 0; sealed < 2; sealed++) {
		struct agent a = agent_on_tcp();
		struct worker w = worker_of(&a);
		int node = node_open();

		a.sealed = sealed;
		a.token = w.options.token = "000102030405060708090a0b0c0d0e0f1011121314151617";
		w.options.timeout_ms = FAR_MS;
		join_fully(&a, &w, 1);
		worker_start(&w, sum_run);
		assert_int_equal(is_sealed_by(node, &secret), sealed);
		node_answer(node);
		worker_finish(&w, 0);
		assert_int_equal(w.sum, 42);
		worker_start(&w, close_run);
		node_answer(node);
		worker_finish(&w, 0);
		agent_end(&a);
		close(node);
	}
}

static void calls_go_on_without_the_agent(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();

	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 1);
	agent_end(&a);
	worker_start(&w, sum_run);
	node_answer(node);
	worker_finish(&w, 0);
	assert_int_equal(w.sum, 42);

	worker_start(&w, close_run); /* with a barrier; and nobody to leave from */
	node_answer(node);
	worker_finish(&w, 0);
	close(node);
}

static void what_strangers_sent_before_is_not_received(void **state)
{
	struct sockaddr_in to;
	int stranger = must_have(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	struct tally_stats stats;

	worker_start(&w, join_run);
	agent_hear(&a);
	to = loopback(port_of(&a));
	for (int i = 0; i < 10; i++)
		assert_int_equal(sendto(stranger, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)),
				 1);
	close(stranger);
	agent_give_place(&a, 1, false);
	worker_finish(&w, 0);
	worker_start(&w, sum_run);
	worker_finish(&w, -ETIMEDOUT);
	tally_stats_read(w.tally, &stats);
	assert_true(stats.sent > 0);
	assert_int_equal(stats.received, 0);
	assert_int_equal(tally_close(w.tally), 0);
	agent_end(&a);
}

static void a_restarted_agent_is_told_who_leaves(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	join_fully(&a, &w, 3);
	agent_hang_up(&a);
	worker_start(&w, close_run);
	agent_hear_greeting(&a);
	agent_greet(&a);
	heard_leaving(&a, 2);
	agent_say_text(&a, "left\n\n");
	worker_finish(&w, 0);
	hung_up(&a);
	agent_end(&a);
}

static void what_the_agent_says_later_ends_nothing(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	join_fully(&a, &w, 2);
	agent_say_text(&a, "waiting 1\n");
	assert_int_equal(tally_close(w.tally), 0);
	no_more_is_said(&a);
	agent_end(&a);
}

static void who_closes_says_so_before_the_connection_ends(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	join_fully(&a, &w, 2);
	assert_int_equal(tally_close(w.tally), 0);
	heard_leaving(&a, 1);
	hung_up(&a);
	no_more_is_said(&a);
	agent_end(&a);
}

static void who_aborts_leaves_at_once_and_only_then(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	join_fully(&a, &w, 2);
	assert_int_equal(tally_abort(w.tally), 0);
	heard_leaving(&a, 1);
	agent_say_text(&a, "left\n\n");
	still_connected(&a);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	no_more_is_said(&a);
	agent_end(&a);
}

/* --- what the agent says during the run */

static void call_refused(struct worker *w, int error, const char *words)
{
	worker_start(w, sum_run);
	worker_finish(w, error);
	assert_non_null(strstr(w->error, words));
}

static void the_run_is_over_when_its_job_was_deleted(enum tally_progress_by by)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	w.options.timeout_ms = FAR_MS;
	w.options.progress = by;
	join_fully(&a, &w, 2);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0); /* the call runs */
	agent_say_text(&a, "error ECANCELED the job was deleted\n\n");
	worker_finish(&w, -ECANCELED);
	assert_non_null(strstr(w.error, a.name));
	assert_non_null(strstr(w.error, "the job was deleted"));
	call_refused(&w, -ECONNABORTED, "the job was deleted");
	assert_int_equal(tally_close(w.tally), 0);
	no_more_is_said(&a); /* there is nothing to leave */
	agent_end(&a);
	close(node);
}

static void a_deleted_job_ends_the_calls_of_its_workers(void **state)
{
	the_run_is_over_when_its_job_was_deleted(TALLY_PROGRESS_CALLS);
	the_run_is_over_when_its_job_was_deleted(TALLY_PROGRESS_THREAD);
}

static void a_call_that_lacks_a_rank_fails_when_the_agent_says_so(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 2);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0);
	agent_say_text(&a, "ending rank 0 is gone: its connection ended\n");
	worker_finish(&w, -ECONNABORTED);
	assert_non_null(strstr(w.error, "rank 0 is gone: its connection ended"));
	call_refused(&w, -ECONNABORTED, "rank 0 is gone: its connection ended");
	assert_int_equal(tally_close(w.tally), 0);
	heard_leaving(&a, 1); /* others may still get what they need */
	agent_end(&a);
	close(node);
}

/* The worker is in a call, and the agent has ended its connection. */
static void heard_staying(struct agent *a, int rank)
{
	agent_hear(a);
	assert_int_equal(a->request.what, JOINING_STAY);
	assert_string_equal(a->job, "resnet");
	assert_int_equal(a->request.rank, rank);
	assert_int_equal(a->request.epoch, 12);
	assert_int_equal(a->request.nonce, NONCE);
}

static void a_restarted_agent_is_told_who_stays_and_says_who_goes(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 2);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0);
	agent_hang_up(&a);
	heard_staying(&a, 1);
	agent_hang_up(&a); /* it was not ready yet */
	heard_staying(&a, 1);
	agent_say_text(&a, "stays\n\n");
	agent_say_text(&a, "ending rank 0 is gone: its connection ended\n");
	worker_finish(&w, -ECONNABORTED);
	assert_non_null(strstr(w.error, "rank 0 is gone: its connection ended"));
	assert_int_equal(tally_close(w.tally), 0);
	heard_leaving(&a, 1); /* by that connection */
	hung_up(&a);
	no_more_is_said(&a);
	agent_end(&a);
	close(node);
}

/* The run goes on without one, and nobody is asked for ever. */
static void an_agent_that_lets_nobody_stay_is_asked_once(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	w.options.timeout_ms = 2500;
	join_fully(&a, &w, 2);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0);
	agent_hang_up(&a);
	heard_staying(&a, 1);
	agent_say_text(&a, "error EINVAL no such request; there are join and leave\n\n");
	worker_finish(&w, -ETIMEDOUT);
	no_more_is_said(&a);
	agent_end(&a);
	assert_int_equal(tally_close(w.tally), 0);
	close(node);
}

/* By its place in the run; who has only the token which that was got by hears nothing. */
static void a_worker_is_told_its_jobs_new_token(void **state)
{
	const struct tally_key key = { { 7, 9 } };
	uint8_t told[SECRET_KEY_BYTES];
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte, text[256];
	size_t length;

	a.key = &key;
	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 2);
	assert_true(a.run == 0);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0);
	agent_say_text(&a, "stays\n\n");
	heard_staying(&a, 1);
	assert_true(a.run == NONCE);
	secret_token_key("another", told);
	session_cover(&a.session, told);
	assert_int_equal(joining_token_print(told, text, sizeof(text), &length), 0);
	agent_say(&a, text, length);
	agent_say_text(&a, "stays\n\n");
	agent_say_text(&a, "ending rank 0 is gone: its connection ended\n");
	worker_finish(&w, -ECONNABORTED);
	assert_int_equal(tally_close(w.tally), 0);
	heard_leaving(&a, 1);
	agent_end(&a);
	close(node);
}

/* As an agent does that knows of none. */
static void refuse_place(struct agent *a)
{
	static const char older[] = "error EINVAL line 4: run: no such key\n\n";

	agent_hear_greeting(a);
	assert_true(a->run == NONCE);
	agent_say_raw(a, older, strlen(older));
}

static void to_an_older_agent_a_worker_proves_its_token(void **state)
{
	const struct tally_key key = { { 7, 9 } };
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	a.key = &key;
	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 2);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0);
	agent_hang_up(&a);
	refuse_place(&a);
	heard_staying(&a, 1);
	assert_true(a.run == 0);
	agent_say_text(&a, "stays\n\n");
	agent_say_text(&a, "ending rank 0 is gone: its connection ended\n");
	worker_finish(&w, -ECONNABORTED);
	assert_int_equal(tally_close(w.tally), 0);
	heard_leaving(&a, 1);
	agent_end(&a);
	close(node);
}

/* Who stands between needs no token to say that; with the old one it would be the agent. `stayed`:
 * the worker has the new token by then. */
static void nobody_talks_out_of_its_place(bool stayed)
{
	const struct tally_key key = { { 7, 9 } };
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	a.key = &key;
	w.options.timeout_ms = 2500;
	join_fully(&a, &w, 2);
	worker_start(&w, sum_run);
	assert_true(recv(node, &byte, 1, 0) > 0);
	agent_say_text(&a, "stays\n\n"); /* the job has another token */
	if (stayed) {
		heard_staying(&a, 1);
		agent_say_text(&a, "stays\n\n");
		agent_hang_up(&a);
	}
	refuse_place(&a);
	worker_finish(&w, -ETIMEDOUT);
	no_more_is_said(&a);
	agent_end(&a);
	assert_int_equal(tally_close(w.tally), 0);
	close(node);
}

static void after_a_rotation_nobody_talks_a_worker_out_of_its_place(void **state)
{
	nobody_talks_out_of_its_place(false);
	nobody_talks_out_of_its_place(true);
}

/* Before the call and during it: what is there still comes, also if it was lost once. */
static void what_a_rank_gave_before_it_went_is_not_lost(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();
	char byte;

	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 1);
	agent_say_text(&a, "ending rank 3 left\n");
	agent_say_text(&a, "ending rank 4 left\n");
	for (int call = 0; call < 2; call++) {
		worker_start(&w, sum_run);
		assert_true(recv(node, &byte, 1, 0) > 0); /* lost */
		node_answer(node);
		worker_finish(&w, 0);
		assert_int_equal(w.sum, 42);
	}
	call_refused(&w, -ECONNABORTED, "rank 3 left");
	agent_hang_up(&a);
	agent_end(&a);
	assert_int_equal(tally_close(w.tally), 0);
	close(node);
}

static bool is_readable(int fd, int within_ms)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, within_ms) == 1;
}

static void an_event_loop_hears_of_the_runs_end(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	struct tally_call *call;
	unsigned int ended = 0;
	int32_t x = 1;

	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 2);
	assert_int_equal(tally_allreduce_start(w.tally, &x, &x, 1, TALLY_INT32, TALLY_SUM, &call),
			 0);
	assert_true(tally_fd(w.tally) >= 0);
	agent_say_text(&a, "ending rank 0 left\n");
	while (!ended) {
		assert_true(is_readable(tally_fd(w.tally), FAR_MS));
		assert_int_equal(tally_progress(w.tally, &ended), 0);
	}
	assert_int_equal(tally_wait(call), -ECONNABORTED);
	assert_int_equal(tally_close(w.tally), 0);
	agent_end(&a);
}

/* As while it is being restarted. */
static void what_no_agent_says_ends_nothing(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int node = node_open();

	w.options.timeout_ms = FAR_MS;
	join_fully(&a, &w, 1);
	worker_start(&w, sum_run);
	agent_say_text(&a, "no such words\n");
	agent_hang_up(&a);
	node_answer(node);
	worker_finish(&w, 0);
	agent_end(&a);
	assert_int_equal(tally_close(w.tally), 0);
	close(node);
}

static void leaving_a_silent_agent_ends(void **state)
{
	struct timespec before, after;
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);

	join_fully(&a, &w, 1);
	agent_hang_up(&a);
	clock_gettime(CLOCK_MONOTONIC, &before);
	worker_start(&w, close_run);
	agent_hear(&a);
	worker_finish(&w, 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(after.tv_sec - before.tv_sec < 10);
	agent_end(&a);
}

static void a_forked_child_does_not_hold_the_place(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int hold[2], status;
	char byte;
	pid_t child;

	join_fully(&a, &w, 1);
	assert_int_equal(pipe(hold), 0);
	child = fork();
	if (child == 0) {
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
	}
	assert_true(child > 0);
	close(hold[0]);
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	close(hold[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	agent_end(&a);
}

/* Has this process a socket that is connected to the agent? */
static bool is_connected(const struct agent *a)
{
	const char *port = strrchr(a->name, ':') + 1;

	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_in to = { 0 };
		socklen_t length = sizeof(to);

		if (getpeername(fd, (struct sockaddr *)&to, &length) == 0 &&
		    ntohs(to.sin_port) == strtoul(port, NULL, 10))
			return true;
	}
	return false;
}

/* Or the agent would not see that the parent dies. */
static void a_forked_child_that_closes_has_no_connection(void **state)
{
	struct agent a = agent_on_tcp();
	struct worker w = worker_of(&a);
	int status;
	pid_t child;

	join_fully(&a, &w, 1);
	child = fork();
	if (child == 0)
		_exit(!is_connected(&a) || tally_close(w.tally) || is_connected(&a));
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(is_connected(&a));
	assert_int_equal(tally_close(w.tally), 0);
	hung_up(&a);
	agent_end(&a);
}

static int directory_make(void **state) { return mkdtemp(directory) ? 0 : -1; }

static int directory_remove(void **state) { return rmdir(directory); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_over_tcp_is_where_the_connection_is),
		cmocka_unit_test(who_is_told_where_the_root_is_joins_there),
		cmocka_unit_test(who_is_sent_to_nobody_comes_back),
		cmocka_unit_test(who_is_sent_round_in_a_circle_gives_up),
		cmocka_unit_test(over_a_unix_socket_the_worker_says_its_address),
		cmocka_unit_test(over_a_unix_socket_the_agent_says_what_the_worker_is_to_reach),
		cmocka_unit_test(a_slow_agent_is_understood),
		cmocka_unit_test(the_agents_errors_are_passed_on),
		cmocka_unit_test(an_older_agent_is_said_to_be_the_older_one),
		cmocka_unit_test(an_agent_that_does_not_know_the_token_gives_no_place),
		cmocka_unit_test(what_is_changed_on_the_way_is_noticed),
		cmocka_unit_test(once_an_agent_is_known_nobody_else_says_anything),
		cmocka_unit_test(ranks_that_do_not_come_are_named),
		cmocka_unit_test(an_agent_that_says_nothing_is_a_timeout),
		cmocka_unit_test(an_agent_that_dies_meanwhile_is_an_error_at_last),
		cmocka_unit_test(who_waits_at_an_agent_that_is_restarted_asks_again),
		cmocka_unit_test(a_worker_says_what_its_way_carries_to_who_understands),
		cmocka_unit_test(who_joins_before_its_agent_is_there_waits_for_it),
		cmocka_unit_test(another_agent_is_asked_while_the_first_one_is_away),
		cmocka_unit_test(who_is_told_no_asks_nobody_else),
		cmocka_unit_test(what_is_no_agent_is_told),
		cmocka_unit_test(a_flood_without_end_is_refused),
		cmocka_unit_test(a_place_of_another_address_is_refused),
		cmocka_unit_test(a_place_that_cannot_be_used_is_given_back),
		cmocka_unit_test(ipv6_agents_have_ipv6_workers),
		cmocka_unit_test(an_agent_that_is_not_there_is_named),
		cmocka_unit_test(options_that_are_wrong_are_named),
		cmocka_unit_test(lists_of_roots_are_as_long_as_that_of_agents),
		cmocka_unit_test(congestion_is_on_or_off),
		cmocka_unit_test(other_agents_are_addresses_of_one_cluster),
		cmocka_unit_test(token_files_must_be_private_and_hold_a_token),
		cmocka_unit_test(what_no_option_says_the_environment_says),
		cmocka_unit_test(who_gets_a_key_makes_tags_with_it),
		cmocka_unit_test(the_secret_of_a_sealed_job_follows_from_the_token),
		cmocka_unit_test(calls_go_on_without_the_agent),
		cmocka_unit_test(what_strangers_sent_before_is_not_received),
		cmocka_unit_test(a_restarted_agent_is_told_who_leaves),
		cmocka_unit_test(a_restarted_agent_is_told_who_stays_and_says_who_goes),
		cmocka_unit_test(an_agent_that_lets_nobody_stay_is_asked_once),
		cmocka_unit_test(a_worker_is_told_its_jobs_new_token),
		cmocka_unit_test(to_an_older_agent_a_worker_proves_its_token),
		cmocka_unit_test(after_a_rotation_nobody_talks_a_worker_out_of_its_place),
		cmocka_unit_test(what_the_agent_says_later_ends_nothing),
		cmocka_unit_test(who_closes_says_so_before_the_connection_ends),
		cmocka_unit_test(who_aborts_leaves_at_once_and_only_then),
		cmocka_unit_test(a_deleted_job_ends_the_calls_of_its_workers),
		cmocka_unit_test(a_call_that_lacks_a_rank_fails_when_the_agent_says_so),
		cmocka_unit_test(what_a_rank_gave_before_it_went_is_not_lost),
		cmocka_unit_test(an_event_loop_hears_of_the_runs_end),
		cmocka_unit_test(what_no_agent_says_ends_nothing),
		cmocka_unit_test(leaving_a_silent_agent_ends),
		cmocka_unit_test(a_forked_child_does_not_hold_the_place),
		cmocka_unit_test(a_forked_child_that_closes_has_no_connection),
	};

	return cmocka_run_group_tests_name("join", tests, directory_make, directory_remove);
}
