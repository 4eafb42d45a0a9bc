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

int peer_secret_read(const char *path, uint8_t ret[SECRET_KEY_BYTES], struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	size_t length = 0;
	int r = file_is_open_to_all(path);

	if (r > 0)
		return why_say(why, -EPERM,
			       "%s: every user of this machine may read or write the agents' "
			       "secret: chmod 0600 %s",
			       path, path);
	if (r == 0)
		r = file_read(path, SECRET_FILE_BYTES, &text, &length);
	if (r < 0)
		return why_say(why, r, "%s: %s", path, strerror(-r));
	text[strcspn(text, "\r\n")] = '\0';
	if (strlen(text) >= SECRET_LEAST && token_is_valid(text))
		secret_token_key(text, ret);
	else
		r = why_say(why, -EINVAL,
			    "%s: its first line is no secret of agents: %d to 128 of A-Z, a-z, "
			    "0-9, '_' and '-', such as openssl rand -hex 32 prints",
			    path, SECRET_LEAST);
	explicit_bzero(text, length);
	return r;
}
