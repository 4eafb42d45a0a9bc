// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "mirror.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

static void item_close(struct mirror_item *i)
{
	free(i->key);
	free(i->value);
}

void mirror_close(struct mirror *m)
{
	for (size_t i = 0; i < m->items; i++)
		item_close(&m->item[i]);
	free(m->item);
	*m = (struct mirror){ 0 };
}

/* Where the key is, or would be. */
static size_t place(const struct mirror *m, const char *key)
{
	size_t low = 0, high = m->items;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(m->item[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct mirror_item *mirror_find(const struct mirror *m, const char *key)
{
	size_t at = place(m, key);

	return at < m->items && !strcmp(m->item[at].key, key) ? &m->item[at] : NULL;
}

static int has_room(struct mirror *m)
{
	size_t room = 2 * m->items + 16;
	struct mirror_item *item;

	if (m->items < m->room)
		return 0;
	item = reallocarray(m->item, room, sizeof(*item));
	if (!item)
		return -ENOMEM;
	m->item = item;
	m->room = room;
	return 0;
}

static int insert(struct mirror *m, const char *key, char *value)
{
	size_t at = place(m, key);
	char *copy = strdup(key);

	if (!copy || has_room(m) < 0) {
		free(copy);
		return -ENOMEM;
	}
	memmove(&m->item[at + 1], &m->item[at], (m->items - at) * sizeof(*m->item));
	m->item[at] = (struct mirror_item){ .key = copy, .value = value };
	m->items++;
	return 0;
}

int mirror_put(struct mirror *m, const struct store_item *item, const struct store_follower *f)
{
	struct mirror_item *known = mirror_find(m, item->key);
	_cleanup_(freep) char *value = NULL;

	if (known && known->revision >= item->revision) {
		known->is_new = true;
		return 0;
	}
	value = strdup(item->value);
	if (!value)
		return -ENOMEM;
	if (!known) {
		if (insert(m, item->key, value) < 0)
			return -ENOMEM;
		known = mirror_find(m, item->key);
	} else {
		free(known->value);
	}
	known->value = TAKE_PTR(value);
	known->revision = item->revision;
	known->is_new = true;
	if (f)
		f->changed(f->context, item);
	return 0;
}

void mirror_drop(struct mirror *m, const char *key, const struct store_follower *f)
{
	struct mirror_item *known = mirror_find(m, key), gone;

	if (!known)
		return;
	gone = *known;
	m->items--;
	memmove(known, known + 1, (size_t)(m->item + m->items - known) * sizeof(*known));
	if (f)
		f->changed(f->context, &(struct store_item){ .key = gone.key });
	item_close(&gone);
}

void mirror_reset(struct mirror *m)
{
	for (size_t i = 0; i < m->items; i++)
		m->item[i].revision = 0;
}

void mirror_reread(struct mirror *m)
{
	for (size_t i = 0; i < m->items; i++)
		m->item[i].is_new = false;
}

void mirror_reread_end(struct mirror *m, const struct store_follower *f)
{
	for (size_t i = 0; i < m->items;) {
		if (m->item[i].is_new)
			i++;
		else
			mirror_drop(m, m->item[i].key, f);
	}
}
