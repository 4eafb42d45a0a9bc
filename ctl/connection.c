// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "agent/core/request.h"
#include "connection.h"

struct connection {
	int fd;
	char *text; /* received and not used yet: whole lines, and the beginning of one */
	size_t length, size;
};

void connection_close(struct connection *c)
{
	if (!c)
		return;
	closep(&c->fd);
	free(c->text);
	free(c);
}

int connection_fd(const struct connection *c) { return c->fd; }

static int connect_error(const char *path, int error, struct why *why)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		return why_say(
			why, error,
			"tallyd is not running: %s does not exist. Start tallyd (systemctl "
			"start tallyd), or name its socket by --socket PATH or $TALLY_SOCKET",
			path);
	case -ECONNREFUSED:
		return why_say(why, error,
			       "tallyd is not running: no program listens at %s (systemctl start "
			       "tallyd)",
			       path);
	case -EACCES:
	case -EPERM:
		return why_say(why, error,
			       "%s: permission denied. Run tallyctl as root, or as a member of the "
			       "group that tallyd.yaml names (control: group:)",
			       path);
	case -EAGAIN:
		return why_say(why, error, "%s: too many connections wait for tallyd; try again",
			       path);
	default:
		return why_say(why, error, "%s: %s", path, strerror(-error));
	}
}

int connection_open(const char *path, unsigned int timeout_ms, struct connection **ret,
		    struct why *why)
{
	struct timeval timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	_cleanup_(connection_closep) struct connection *c = calloc(1, sizeof(*c));
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (!c)
		return -ENOMEM;
	c->fd = -1;
	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return why_say(why, -EINVAL, "--socket %s: the path must have 1 to %zu bytes", path,
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return connect_error(path, -errno, why);
	*ret = TAKE_PTR(c);
	return 0;
}

static int send_all(struct connection *c, const char *text, size_t length)
{
	while (length) {
		ssize_t n = send(c->fd, text, length, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		text += n;
		length -= n;
	}
	return 0;
}

static int request_send(struct connection *c, const json_t *request, struct why *why)
{
	_cleanup_(freep) char *text = json_dumps(request, JSON_COMPACT);
	size_t length;
	int r;

	if (!text)
		return -ENOMEM;
	length = strlen(text);
	if (length > REQUEST_BYTES_MAX)
		return why_say(why, -E2BIG, "the request has %zu bytes; tallyd takes at most %d",
			       length, REQUEST_BYTES_MAX);
	text[length] = '\n'; /* replaces the final 0 */
	r = send_all(c, text, length + 1);
	if (r < 0)
		return why_say(why, r, "cannot send the request to tallyd: %s", strerror(-r));
	return 0;
}

/* Makes room to receive more: doubles the buffer if it is full. */
static int room_make(struct connection *c)
{
	size_t size = c->size ? c->size * 2 : 16384;
	char *text;

	if (c->length < c->size)
		return 0;
	if (size > CONNECTION_LINE_BYTES_MAX)
		return -EMSGSIZE;
	text = realloc(c->text, size);
	if (!text)
		return -ENOMEM;
	c->text = text;
	c->size = size;
	return 0;
}

/* Reads once. */
static int receive(struct connection *c, int flags, struct why *why)
{
	int r = room_make(c);
	ssize_t n;

	if (r < 0)
		return why_say(why, r, "tallyd's answer is too long");
	do
		n = recv(c->fd, c->text + c->length, c->size - c->length, flags);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		c->length += n;
		return 0;
	}
	if (n < 0 && errno == EAGAIN && flags & MSG_DONTWAIT)
		return -EAGAIN;
	if (n < 0 && errno == EAGAIN)
		return why_say(why, -ETIMEDOUT, "tallyd did not answer in time");
	if (n < 0 && errno != ECONNRESET)
		return why_say(why, -errno, "cannot read tallyd's answer: %s", strerror(errno));
	return why_say(why, -ECONNRESET, "tallyd closed the connection");
}

/* Takes the first whole line out of the buffer and parses it. -EAGAIN: there is none. */
static int line_take(struct connection *c, json_t **ret, struct why *why)
{
	char *end = c->length ? memchr(c->text, '\n', c->length) : NULL;
	size_t length = end ? end - c->text : 0;
	json_error_t error;
	json_t *line;

	if (!end)
		return -EAGAIN;
	line = json_loadb(c->text, length, 0, &error);
	c->length -= length + 1;
	memmove(c->text, end + 1, c->length);
	if (!json_is_object(line)) {
		json_decref(line);
		return why_say(why, -EPROTO,
			       "the program at the socket is not tallyd: its answer is not a JSON "
			       "object");
	}
	*ret = line;
	return 0;
}

static int answer_open(json_t *answer, json_t **ret, struct why *why)
{
	const json_t *ok = json_object_get(answer, "ok");
	const char *error = json_string_value(json_object_get(answer, "error"));
	json_t *result = json_object_get(answer, "result");

	if (json_is_true(ok) && result) {
		*ret = json_incref(result);
		return 0;
	}
	if (json_is_false(ok) && error)
		return why_say(why, -EREMOTEIO, "%s", error);
	return why_say(why, -EPROTO,
		       "the program at the socket is not tallyd: its answer has no result and "
		       "no error");
}

int connection_ask(struct connection *c, const json_t *request, json_t **ret, struct why *why)
{
	json_t *answer = NULL;
	int r = request_send(c, request, why);

	while (r == 0 && (r = line_take(c, &answer, why)) == -EAGAIN)
		r = receive(c, 0, why);
	if (r < 0)
		return r;
	r = answer_open(answer, ret, why);
	json_decref(answer);
	return r;
}

int connection_next(struct connection *c, json_t **ret, struct why *why)
{
	int r = line_take(c, ret, why);

	if (r != -EAGAIN)
		return r;
	r = receive(c, MSG_DONTWAIT, why);
	return r < 0 ? r : line_take(c, ret, why);
}
