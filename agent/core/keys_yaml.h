/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * YAML by tables of keys. Pure; only keys_yaml.c knows libyaml. Plain YAML alone is read: no
 * aliases, anchors and tags, one document, bounded depth.
 */
#ifndef TALLY_AGENT_KEYS_YAML_H
#define TALLY_AGENT_KEYS_YAML_H

#include <stdio.h>

#include "common/keys.h"
#include "common/owned.h"
#include "common/why.h"

extern const struct keys_style keys_yaml_style;

/*
 * A buffer (no NUL at its end needed) as a tree, the caller's. `name` leads in `why`. Nothing at
 * all is VALUE_NOTHING. -EINVAL, -ENOMEM.
 */
int keys_yaml_parse(const char *text, size_t length, const char *name, struct value **ret,
		    struct why *why);

/* Line by line, each behind `indent`; of keys with a `take` and no type, nothing. */
void keys_yaml_print(const struct keys *keys, const void *from, const char *indent, FILE *to);

#endif
