// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operators say where a job shall have its root. */
#include <errno.h>
#include <string.h>

#include "common/owned.h"
#include "placing_private.h"

/* Where it is in the picture. Only one that tells something, and takes runs. */
static int node_find(const struct picture *picture, const char *node, struct why *why)
{
	const int at = picture_place(picture, node);

	if (at < 0)
		return why_say(why, -ENOENT, "the cluster has no node %s (tallyctl topology)",
			       node);
	if (!picture->report[at]->services)
		return why_say(why, -EINVAL, "node %s has no address that workers could send to",
			       node);
	if (picture->report[at]->cordoned)
		return why_say(why, -EBUSY, "node %s is cordoned", node);
	return at;
}

/*
 * A node that has refused the job looks by itself whether it still would. A run does not leave its
 * slots for software, but off a cordoned node: as the leader, see placer.h.
 */
static int may_be_root(const struct picture *picture, const struct shared_job *j,
		       const struct report *to, struct why *why)
{
	const struct report *root = standing_root(j, picture);
	const struct report_job *there = standing_at(j, root);
	const uint32_t wants = 2u * j->job.window, left = report_slots_left(to, j->job.tenant);

	if (standing_refused_why(j, to->node))
		return why_say(why, -EBUSY,
			       "node %s refuses it: %.250s; it takes that back within seconds when "
			       "it is mended",
			       to->node, standing_refused_why(j, to->node));
	if (root == to || !there || !there->runs || there->in_software || root->cordoned ||
	    left >= wants)
		return 0;
	return why_say(why, -ENOSPC,
		       "its run has slots at %s and would lose them: it wants %u, and tenant %s "
		       "gets %u of the %u of %s; free some there, or cordon %s first (tallyctl "
		       "cordon)",
		       root->node, wants, j->job.tenant, left, to->slots, to->node, root->node);
}

int placing_place(struct placing *p, void *connection, const char *name, const char *node,
		  bool stays, struct why *why)
{
	_cleanup_(freep) struct wanted_place *place = calloc(1, sizeof(*place));
	const struct shared_job *j = shared_find(&p->shared, name);
	_cleanup_(freep) char *text = NULL;
	char job[STORE_KEY_BYTES], at[STORE_KEY_BYTES];
	struct store_change change = { at, NULL, false };
	const struct picture *picture = sharing_picture(p->sharing);
	const struct report *root;
	int at_node, r;

	if (!place)
		return -ENOMEM;
	if (!j)
		return why_say(why, -ENOENT, "the cluster has no job %s (tallyctl cluster)", name);
	at_node = node_find(picture, node, why);
	if (at_node < 0)
		return at_node;
	root = picture->report[at_node];
	r = may_be_root(picture, j, root, why);
	if (r < 0)
		return r;
	if (shared_is_placed(j))
		*place = j->place;
	place->birth = j->job.birth;
	place->weighs = 0;
	place->stays = stays;
	memcpy(place->root, root->node, sizeof(place->root));
	place->address = root->service[0];
	snprintf(place->why, sizeof(place->why), "an operator said so%s",
		 stays ? ", and it stays there" : "");
	text = wanted_print(&wanted_place_keys, place);
	if (!text)
		return -ENOMEM;
	change.value = text;
	snprintf(job, sizeof(job), WANTED_JOBS "%s", name);
	snprintf(at, sizeof(at), WANTED_PLACES "%s", name);
	return placing_ask_store(
		p, connection, name, ASKED_PLACE, request_answer_ok(json_object()),
		&(struct store_write){
			(struct store_seen[]){ { job, j->revision }, { at, j->place_revision } }, 2,
			&change, 1 });
}
