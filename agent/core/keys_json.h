/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JSON by tables of keys, with jansson. Pure. */
#ifndef TALLY_AGENT_KEYS_JSON_H
#define TALLY_AGENT_KEYS_JSON_H

#include <jansson.h>

#include "common/keys.h"

static inline void json_freep(json_t **j) { json_decref(*j); }

/*
 * A text without the same key twice; `ret` is the caller's. -EINVAL: `error` says what is wrong;
 * -ENOMEM.
 */
int keys_json_parse(const char *text, size_t length, json_t **ret, json_error_t *error);

/* A tree of the same values, without positions; the caller's. -EINVAL: too deep; -ENOMEM. */
int keys_json_tree(const json_t *json, struct value **ret);

/* What a struct says, as an object. NULL: no memory. */
json_t *keys_json_make(const struct keys *keys, const void *from);

#endif
