// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of joining over stream sockets: docs/joining.md, common/joining.h. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "agent/edge/log.h"
#include "agent/edge/stream.h"
#include "common/joining.h"
#include "workers.h"

enum {
	CONNECTIONS_MAX = 8192,
	ADDRESS_MAX = 1024,
	REQUEST_TIMEOUT_S = 10,
};

struct workers {
	struct stream_server *server;
	struct driver *driver;
};

static void tell_error(struct stream *s, int error, const char *words)
{
	char text[JOINING_TEXT_BYTES + 64];
	size_t length = 0;

	if (joining_error_print(error, words, text, sizeof(text), &length) == 0)
		stream_send(s, text, length);
	stream_finish(s);
}

static char *refuse(int error)
{
	const char *words = error == -EMSGSIZE	  ? "the request is too long"
			    : error == -ETIMEDOUT ? "the request did not come in time"
						  : "the agent serves as many workers as it can";
	char text[JOINING_TEXT_BYTES + 64];
	size_t length = 0;

	if (joining_error_print(error, words, text, sizeof(text), &length) < 0)
		return NULL;
	return strdup(text);
}

/* A worker that is not told for lack of memory runs into its timeout, and comes again. */
static int run_print(const struct core_action *a, char *text, size_t size, size_t *ret_length)
{
	_cleanup_(freep) struct run *run = malloc(sizeof(*run));

	if (!run)
		return -ENOMEM;
	job_this_run(a->job, run);
	return joining_run_print(a->rank, run, text, size, ret_length);
}

void workers_tell(const struct core_action *a)
{
	char text[JOINING_ANSWER_BYTES + 1], words[64];
	struct stream *s = a->connection;
	size_t length = 0;
	int r = 0;

	switch (a->tell.kind) {
	case JOINING_ERROR:
		tell_error(s, a->error, a->tell.text);
		return;
	case JOINING_WAITING:
		stream_keep(s);
		r = joining_waiting_print(&a->tell.missing, text, sizeof(text), &length);
		break;
	case JOINING_RUN:
		stream_keep(s);
		r = run_print(a, text, sizeof(text), &length);
		break;
	case JOINING_ENDING:
		snprintf(words, sizeof(words), "rank %u %s", a->rank, a->tell.text);
		r = joining_ending_print(words, text, sizeof(text), &length);
		break;
	case JOINING_LEFT:
		r = joining_left_print(text, sizeof(text), &length);
		break;
	}
	if (r == 0)
		stream_send(s, text, length);
	if (a->tell.kind == JOINING_LEFT)
		stream_finish(s);
}

static void on_end(struct stream *s)
{
	const struct core_event e = { .kind = CORE_ENDED, .connection = s };
	struct workers *w = stream_owner(s);

	if (stream_context(s))
		driver_handle(w->driver, &e);
}

static int nonce_draw(uint64_t *ret)
{
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return -EIO;
	*ret = nonce ? nonce : 1;
	return 0;
}

static ssize_t on_text(struct stream *s, const char *text, size_t length)
{
	struct joining_message m = { 0 };
	struct core_event e = { .kind = CORE_JOINING,
				.connection = s,
				.joining = { &m, stream_peer(s), 0 } };
	struct workers *w = stream_owner(s);
	char why[512] = "";
	size_t used = 0;
	int r;

	r = joining_message_parse(text, length, &m, &used, why, sizeof(why));
	if (r == -EAGAIN)
		return 0;
	if (r == 0 && stream_context(s) && !m.leave) {
		snprintf(why, sizeof(why), "who has joined says nothing more but tally-leave");
		r = -EINVAL;
	}
	if (r == 0)
		r = nonce_draw(&e.joining.nonce);
	if (r < 0) {
		log_say(LOG_LEVEL_DEBUG, "worker refused", "job= reason=\"%s\"", why);
		tell_error(s, r, *why ? why : strerror(-r));
		return length;
	}
	stream_context_set(s, s); /* the core knows it from now on */
	driver_handle(w->driver, &e);
	explicit_bzero(m.token, sizeof(m.token));
	return used;
}

static const struct stream_service service = {
	.name = "joining",
	.request_bytes_max = JOINING_MESSAGE_BYTES,
	.connections_max = CONNECTIONS_MAX,
	.address_max = ADDRESS_MAX,
	.request_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.idle_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.read = on_text,
	.end = on_end,
	.refuse = refuse,
};

int workers_open(sd_event *loop, struct driver *d, struct workers **ret, struct why *why)
{
	const struct config *c = core_config(driver_core(d));
	struct workers *w = calloc(1, sizeof(*w));
	int r;

	*ret = w;
	if (!w)
		return -ENOMEM;
	w->driver = d;
	r = stream_server_open(loop, &service, w, &w->server);
	if (r == 0 && *c->join_socket)
		r = stream_listen_unix(w->server, c->join_socket, 0666, -1, why);
	for (unsigned int i = 0; r == 0 && i < c->listens; i++)
		r = stream_listen_tcp(w->server, &c->listen[i], why);
	return r;
}

void workers_close(struct workers *w)
{
	if (w)
		stream_server_close(w->server);
	free(w);
}
