// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "peer_secret.h"

#include <errno.h>
#include <string.h>

#include "common/file.h"
#include "common/name.h"
#include "common/owned.h"

enum {
	SECRET_LEAST = 32, /* characters: nobody is to guess it, however often */
	SECRET_FILE_BYTES = 4096,
};

/* How many lines there are, one more than PEER_SECRETS at most; 0: one of them is no secret. */
static unsigned int lines_read(char *text, uint8_t ret[PEER_SECRETS][SECRET_KEY_BYTES])
{
	unsigned int lines = 0;
	char *at = NULL;

	for (char *line = strtok_r(text, "\r\n", &at); line; line = strtok_r(NULL, "\r\n", &at)) {
		if (lines == PEER_SECRETS)
			return lines + 1;
		if (strlen(line) < SECRET_LEAST || !token_is_valid(line))
			return 0;
		secret_token_key(line, ret[lines++]);
	}
	if (lines == 1)
		memcpy(ret[1], ret[0], SECRET_KEY_BYTES);
	return lines;
}

int peer_secret_read(const char *path, uint8_t ret[PEER_SECRETS][SECRET_KEY_BYTES], struct why *why)
{
	uint8_t keys[PEER_SECRETS][SECRET_KEY_BYTES] = { { 0 } };
	_cleanup_(freep) char *text = NULL;
	unsigned int lines;
	size_t length = 0;
	int r = file_read(path, SECRET_FILE_BYTES, &text, &length);

	if (r == 0)
		r = file_is_open_to_all(path);
	if (r < 0)
		return why_say(why, r, "the agents' secret, %s: %s", path, strerror(-r));
	if (r > 0) {
		explicit_bzero(text, length);
		return why_say(why, -EPERM,
			       "%s: every user of this machine may read or write the agents' "
			       "secret: chmod o= %s",
			       path, path);
	}
	lines = lines_read(text, keys);
	if (lines == 0)
		r = why_say(why, -EINVAL,
			    "%s: a line is no secret of agents: %d to 128 of A-Z, a-z, 0-9, '_' "
			    "and '-', such as openssl rand -hex 32 prints",
			    path, SECRET_LEAST);
	else if (lines > PEER_SECRETS)
		r = why_say(why, -EINVAL,
			    "%s: more than two lines; a second one is for the time in which the "
			    "agents' secret is changed",
			    path);
	else
		memcpy(ret, keys, sizeof(keys));
	explicit_bzero(text, length);
	explicit_bzero(keys, sizeof(keys));
	return r;
}
