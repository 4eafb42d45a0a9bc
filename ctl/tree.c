// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Trees of nodes: job documents prints documents, apply takes one; job create reads a tree. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/request.h"
#include "common/owned.h"
#include "ctl.h"
#include "table.h"

/* For people: "standard input", or the name as it was given. */
static const char *name_of(const char *path)
{
	return strcmp(path, "-") != 0 ? path : "standard input";
}

/* As many bytes as a request may have, and one more. -EISDIR: that can be opened, but not read. */
static int stream_read(FILE *from, char *text, size_t *ret_length)
{
	errno = EIO;
	*ret_length = fread(text, 1, REQUEST_BYTES_MAX + 1, from);
	return ferror(from) ? -errno : 0;
}

static int file_into(const char *path, char *text, size_t *ret_length)
{
	FILE *from;
	int r;

	if (!strcmp(path, "-"))
		return stream_read(stdin, text, ret_length);
	from = fopen(path, "re");
	if (!from)
		return -errno;
	r = stream_read(from, text, ret_length);
	fclose(from);
	return r;
}

/* The caller's, to be freed. */
static int text_read(const char *path, char **ret, size_t *ret_length, struct why *why)
{
	_cleanup_(freep) char *text = malloc(REQUEST_BYTES_MAX + 1);
	size_t length = 0;
	int r = text ? file_into(path, text, &length) : -ENOMEM;

	if (r < 0)
		return why_say(why, r, "%s: %s", name_of(path), strerror(-r));
	if (length > REQUEST_BYTES_MAX)
		return why_say(why, -EFBIG, "%s: has more than %d bytes", name_of(path),
			       REQUEST_BYTES_MAX);
	*ret = TAKE_PTR(text);
	*ret_length = length;
	return 0;
}

static const char *kind_of(const json_t *json)
{
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a text";
	case JSON_NULL:
		return "null";
	case JSON_TRUE:
	case JSON_FALSE:
		return "true or false";
	default:
		return "a number";
	}
}

/* What is in it tallyd looks at: here it has to be of that type, which `wanted` calls by name. */
static int json_read(const char *path, json_type type, const char *wanted, json_t **ret,
		     struct why *why)
{
	_cleanup_(json_decrefp) json_t *json = NULL;
	_cleanup_(freep) char *text = NULL;
	json_error_t error;
	size_t length = 0;
	int r = text_read(path, &text, &length, why);

	if (r < 0)
		return r;
	json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!json)
		return why_say(why, -EINVAL, "%s: line %d, column %d: not JSON: %s", name_of(path),
			       error.line, error.column, error.text);
	if (json_typeof(json) != type)
		return why_say(why, -EINVAL, "%s: is %s; %s", name_of(path), kind_of(json), wanted);
	*ret = TAKE_PTR(json);
	return 0;
}

#define A_TREE                                \
	"a tree is a list of nodes, such as " \
	"[{\"name\": \"a0\", \"address\": \"10.77.0.1\", \"ranks\": \"0-1\"}]"

/* tallyd takes an empty one for none at all. */
int tree_read(const char *path, json_t **ret, struct why *why)
{
	_cleanup_(json_decrefp) json_t *tree = NULL;
	int r = json_read(path, JSON_ARRAY, A_TREE, &tree, why);

	if (r < 0)
		return r;
	if (!json_array_size(tree))
		return why_say(why, -EINVAL, "%s: has no node; " A_TREE, name_of(path));
	*ret = TAKE_PTR(tree);
	return 0;
}

/* Who wanted to look at them may not know what they are. */
static void warn_of_keys(const json_t *documents)
{
	if (isatty(STDOUT_FILENO) && json_object_get(json_array_get(documents, 0), "keys"))
		fprintf(stderr, "tallyctl: these documents have the keys of the run: whoever reads "
				"them can forge what is summed, until it is over\n");
}

/* A line each: the next program may be an apply somewhere else. */
int documents(const struct ctl *ctl, struct why *why)
{
	_cleanup_(json_decrefp) json_t *result = NULL;
	const json_t *document;
	size_t i;
	int r;

	r = ctl_ask(ctl, request_make(ctl), &result, why);
	if (r < 0)
		return r;
	warn_of_keys(result);
	if (ctl->json)
		ctl_dump(result);
	else
		json_array_foreach(result, i, document) ctl_dump(document);
	return 0;
}

int apply(const struct ctl *ctl, struct why *why)
{
	_cleanup_(json_decrefp) json_t *result = NULL;
	json_t *document, *request;
	int r;

	r = json_read(ctl->arguments[0], JSON_OBJECT,
		      "a document is an object, as tallyctl job documents NAME --node NODE prints "
		      "it where the job's root is",
		      &document, why);
	if (r < 0)
		return r;
	request = request_make(ctl);
	json_object_set_new(request, "document", document);
	r = ctl_ask(ctl, request, &result, why);
	if (r < 0)
		return r;
	if (ctl->json)
		ctl_dump(result);
	else if (json_is_true(field(result, "running")))
		printf("run %.0f of job %s is on at this node\n", field_number(result, "epoch"),
		       field_text(result, "name"));
	else
		printf("tallyd has the document of run %.0f of job %s. The run begins here when "
		       "it can: %s (tallyctl job show %s)\n",
		       field_number(result, "epoch"), field_text(result, "name"),
		       field_text(result, "trouble"), field_text(result, "name"));
	return 0;
}
