// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "leader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-event.h>

#include "common/name.h"

struct leader {
	struct store *store;
	void (*changed)(void *context, const char *name, bool is_us);
	void *context;
	sd_event_source *again;
	bool is_known, is_there; /* the key: whether it is there, and it is */
	bool writes; /* our write is under way, or was until a moment ago */
	bool leads;
	bool withdraws; /* it is not to lead */
	bool leaves; /* our key is being deleted */
	uint64_t revision; /* of the key, while we lead */
	char key[STORE_KEY_BYTES];
	char value[LEADER_NAME_BYTES + 20]; /* of the key, if it is ours: NAME RANDOM */
};

static void on_written(void *context, int error, uint64_t revision, const char *why);

/* What comes of it the store tells as of any key, perhaps later than `on_written`. */
static void campaign(struct leader *l)
{
	const struct store_seen seen = { l->key, 0 };
	const struct store_change change = { l->key, l->value, true };

	if (!l->is_known || l->is_there || l->writes || l->withdraws)
		return;
	l->writes = true;
	if (store_write(l->store, &(struct store_write){ &seen, 1, &change, 1 }, on_written, l) < 0)
		on_written(l, -ENOMEM, 0, "");
}

/* Whatever came of it: by then we have been told, or it is tried once more. */
static void on_written(void *context, int error, uint64_t revision, const char *why)
{
	struct leader *l = context;

	sd_event_source_set_time_relative(l->again, LEADER_RETRY_MS * 1000ull);
	sd_event_source_set_enabled(l->again, SD_EVENT_ONESHOT);
}

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	struct leader *l = context;

	l->writes = false;
	campaign(l);
	return 0;
}

static void on_changed(void *context, const struct store_item *item)
{
	struct leader *l = context;
	const char *value = item->value ? item->value : "";
	const size_t length = strcspn(value, " ");
	char name[LEADER_NAME_BYTES] = "";

	if (strcmp(item->key, l->key) != 0)
		return; /* one that begins so */
	l->is_there = item->value;
	l->leads = !strcmp(value, l->value);
	l->revision = item->revision;
	if (length < sizeof(name)) /* otherwise it is none */
		memcpy(name, value, length);
	l->changed(l->context, name_is_valid(name) ? name : NULL, l->leads);
	if (!item->value)
		campaign(l);
}

static void on_current(void *context, uint64_t revision)
{
	struct leader *l = context;

	l->is_known = true;
	campaign(l);
}

/* The key is gone, or who looks next tries once more. */
static void on_left(void *context, int error, uint64_t revision, const char *why)
{
	struct leader *l = context;

	l->leaves = false;
}

static void leave(struct leader *l)
{
	const struct store_seen seen = { l->key, l->revision };
	const struct store_change change = { l->key, NULL, false };

	if (l->leaves)
		return;
	l->leaves = true;
	if (store_write(l->store, &(struct store_write){ &seen, 1, &change, 1 }, on_left, l) < 0)
		l->leaves = false;
}

void leader_stand(struct leader *l, bool stands)
{
	l->withdraws = !stands;
	if (stands)
		campaign(l);
	else if (l->leads)
		leave(l);
}

bool leader_seen(const struct leader *l, struct store_seen *ret)
{
	if (l->leads && !l->withdraws)
		*ret = (struct store_seen){ l->key, l->revision };
	return l->leads && !l->withdraws;
}

int leader_campaign(sd_event *loop, struct store *s, const char *key, const char *name,
		    void (*changed)(void *context, const char *name, bool is_us), void *context,
		    struct leader **ret)
{
	struct leader *l = calloc(1, sizeof(*l));
	const struct store_follower f = { on_changed, on_current, l, NULL };
	uint64_t random;
	int r;

	if (!l)
		return -ENOMEM;
	l->store = s;
	l->changed = changed;
	l->context = context;
	r = strlen(key) >= sizeof(l->key) || strlen(name) >= LEADER_NAME_BYTES || strchr(name, ' ')
		    ? -EINVAL
		    : 0;
	if (r == 0 && getrandom(&random, sizeof(random), 0) != sizeof(random))
		r = -EIO;
	if (r == 0)
		r = sd_event_add_time_relative(loop, &l->again, CLOCK_MONOTONIC, 0, 1000, on_again,
					       l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->again, SD_EVENT_OFF);
	if (r >= 0) {
		snprintf(l->key, sizeof(l->key), "%s", key);
		snprintf(l->value, sizeof(l->value), "%s %016" PRIx64, name, random);
		r = store_follow(s, key, &f);
	}
	if (r < 0) {
		leader_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

void leader_close(struct leader *l)
{
	if (!l)
		return;
	sd_event_source_disable_unref(l->again);
	free(l);
}
