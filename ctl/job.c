// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* job create and job token, which write a token; quota, which stands for two requests. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ctl.h"
#include "show.h"

/* Makes a new file that only its owner can read. */
static int token_file_make(const char *path, int *ret, struct why *why)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return why_say(why, -EEXIST, "--token-file %s: the file exists; name a new file",
			       path);
	if (fd < 0)
		return why_say(why, -errno, "--token-file %s: %s", path, strerror(errno));
	*ret = fd;
	return 0;
}

static int token_write(int fd, const char *path, const char *token, struct why *why)
{
	errno = EIO;
	if (dprintf(fd, "%s\n", token) < 0 || fsync(fd) < 0)
		return why_say(why, -errno, "--token-file %s: %s", path, strerror(errno));
	return 0;
}

/* Prints the token alone on standard output, so that it can be piped. */
static int token_say(const struct ctl *ctl, json_t *result, int fd, struct why *why)
{
	const char *token = field_text(result, "token"), *path = ctl->value[OPTION_TOKEN_FILE];
	int r;

	if (!*token)
		return why_say(why, -EPROTO,
			       "the program at the socket is not tallyd: its answer has no token");
	if (fd >= 0) {
		r = token_write(fd, path, token, why);
		if (r < 0)
			return r;
		json_object_del(result, "token");
		json_object_set_new(result, "token_file", json_string(path));
	}
	if (ctl->json)
		ctl_dump(result);
	else if (fd < 0)
		printf("%s\n", token);
	return 0;
}

/* After the token, for who reads along: what was created. */
static void created_say(const json_t *result, const char *path)
{
	const char *name = field_text(result, "name");
	double number = field_number(result, "id");

	if (path)
		printf("job %s has number %.0f; its token is in %s\n", name, number, path);
	else
		warnx("job %s has number %.0f; its token is on standard output", name, number);
}

/*
 * Makes the file before it asks tallyd, so that no job is made whose token cannot be kept. On
 * failure the file is removed.
 */
int job_token(const struct ctl *ctl, struct why *why)
{
	const char *path = ctl->value[OPTION_TOKEN_FILE];
	_cleanup_(json_decrefp) json_t *request = request_make(ctl), *result = NULL;
	_cleanup_(closep) int fd = -1;
	json_t *tree;
	int r = 0;

	if (ctl->value[OPTION_TREE] && !strcmp(ctl->value[OPTION_TREE], "auto")) {
		json_object_set_new(request, "find_tree", json_true());
	} else if (ctl->value[OPTION_TREE]) {
		r = tree_read(ctl->value[OPTION_TREE], &tree, why);
		if (r == 0)
			json_object_set_new(request, "tree", tree);
	}
	if (r == 0 && path)
		r = token_file_make(path, &fd, why);
	if (r < 0)
		return r;
	r = ctl_ask(ctl, TAKE_PTR(request), &result, why);
	if (r == 0)
		r = token_say(ctl, result, fd, why);
	if (r < 0 && path)
		unlink(path);
	if (r == 0 && !ctl->json && !strcmp(ctl->command->verb, "job-create"))
		created_say(result, path);
	return r;
}

int quota(const struct ctl *ctl, struct why *why)
{
	_cleanup_(json_decrefp) json_t *request = request_make(ctl), *result = NULL;
	const size_t asks = 1 + (ctl->count > 0) + (ctl->value[OPTION_CLUSTER] != NULL);
	bool set = json_object_size(request) > asks;
	int r;

	if (set)
		json_object_set_new(request, "do", json_string("tenant-set"));
	r = ctl_ask(ctl, TAKE_PTR(request), &result, why);
	if (r < 0)
		return r;
	if (ctl->json)
		ctl_dump(result);
	else
		r = show_tenants(ctl, result, stdout, why);
	return r;
}
