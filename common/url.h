/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a URL says of where it leads. */
#ifndef TALLY_COMMON_URL_H
#define TALLY_COMMON_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* http:// to this machine: what is said there nobody else hears. */
static inline bool url_is_of_this_machine(const char *url)
{
	static const char *const hosts[] = { "http://127.0.0.1", "http://[::1]",
					     "http://localhost" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		const size_t length = strlen(hosts[i]);

		if (!strncmp(url, hosts[i], length) && (!url[length] || url[length] == ':'))
			return true;
	}
	return false;
}

#endif
