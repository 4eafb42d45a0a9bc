// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * etcd by a module of its own, so that libcurl, and what that brings along, is in an agent only
 * where there is an etcd. The module is beside tallyd, or in ../lib/tally (its run path).
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "store.h"

#define MODULE "tally-etcd.so"

int store_open_etcd_module(sd_event *loop, const struct store_etcd_options *o, struct store **ret,
			   struct why *why)
{
	int (*open)(sd_event *, const struct store_etcd_options *, struct store **, struct why *);
	void *module = dlopen(MODULE, RTLD_NOW | RTLD_LOCAL); /* and stays */
	const char *version;

	if (!module)
		return why_say(why, -ENOENT, "cannot use etcd: %s", dlerror());
	version = dlsym(module, "tally_etcd_version");
	*(void **)&open = dlsym(module, "store_open_etcd");
	if (!version || !open || strcmp(version, TALLY_VERSION_TEXT) != 0)
		return why_say(why, -EINVAL,
			       "cannot use etcd: " MODULE " is not of tallyd " TALLY_VERSION_TEXT
			       " (make install brings both)");
	return open(loop, o, ret, why);
}
