// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys below `cluster`: whether this node shares anything with others, and by which store. */
#include <stdlib.h>
#include <string.h>

#include "common/url.h"
#include "config.h"

#define CLUSTER(member) KEY_MEMBER(struct config, cluster.member)

/* HOST:PORT or [HOST]:PORT. Without a port it would be a web server's, which no etcd is at. */
static bool has_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	const size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (digits < 1 || digits > 5 || colon[1 + digits] || colon == text)
		return false;
	if (*text == '[' ? colon[-1] != ']' : strchr(text, ':') != colon)
		return false;
	return strtoul(colon + 1, NULL, 10) - 1 < UINT16_MAX;
}

/* What it has in it goes to libcurl as it is: no blanks, no quotes, nobody's password. */
static bool url_parse(const struct key *key, const char *text, void *member)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789.-_:[]";
	const char *rest = strstr(text, "://");

	if (!rest || strlen(text) >= key->size)
		return false;
	if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0)
		return false;
	rest += strlen("://");
	if (rest[strspn(rest, allowed)] || !has_port(rest))
		return false;
	snprintf(member, key->size, "%s", text);
	return true;
}

static void url_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)member);
}

static const struct key_type key_url = { url_parse, url_print,
					 .allowed = "http://HOST:PORT or https://HOST:PORT" };

static const struct key rows[] = {
	{ "node", &key_name, CLUSTER(node), .word = "none", .initial = "none",
	  .meaning = "What the cluster calls this node; each has a name of its own. `none`: this "
		     "node is in no cluster, and has no `etcd`." },
	{ "name", &key_name, CLUSTER(name), .initial = "tally",
	  .meaning = "The cluster's name, the same for all its nodes." },
	{ "file", &key_path, CLUSTER(file), .initial = CONFIG_CLUSTER_FILE,
	  .meaning = "File where a node that is a cluster by itself keeps what it wants: without "
		     "`etcd`." },
	{ "etcd", &key_url, KEY_LIST(struct config, cluster.etcd, cluster.etcds), .flow = true,
	  .word = "none", .check = keys_check_unique, .otherwise = "none",
	  .meaning = "List of up to 8 members of an etcd cluster, where the nodes share what they "
		     "want." },
	{ "ca", &key_path, CLUSTER(ca), .word = "none", .initial = "none",
	  .meaning = "File with the certificates by which etcd's is checked; `none`: those of the "
		     "machine." },
	{ "certificate", &key_path, CLUSTER(certificate), .word = "none", .initial = "none",
	  .meaning = "File with this node's own certificate, if etcd asks for one." },
	{ "key", &key_path, CLUSTER(key), .word = "none", .initial = "none",
	  .meaning = "File with its private key, which tallyd alone may read." },
	{ "user", &key_name, CLUSTER(user), .word = "none", .initial = "none",
	  .meaning = "User of etcd, who needs to read and write the keys below `/tally/NAME/`." },
	{ "password", &key_path, CLUSTER(password), .word = "none", .initial = "none",
	  .meaning = "File with the user's password, in its first line." },
	{ "steering", &key_bool, CLUSTER(steering), .initial = "false",
	  .meaning = "Does this node make packets of workers take the [ways](cluster.md#ways) that "
		     "the cluster wants, by rules and routes of its own?" },
	{ "finds_ways", &key_bool, CLUSTER(finds_ways), .initial = "false",
	  .meaning = "As the leader, does it give jobs [ways](cluster.md#ways) that bear more than "
		     "those of routing? The same at all nodes." },
};

const struct keys config_cluster_keys = KEYS(rows);

static bool has_secure(const struct config_cluster *c)
{
	for (unsigned int i = 0; i < c->etcds; i++)
		if (!strncmp(c->etcd[i], "https://", 8))
			return true;
	return false;
}

/* Half of what is needed is a mistake, which is better found before etcd says no. */
int config_cluster_check(struct reading *r, const struct place *at, void *into)
{
	const struct config_cluster *c = &((struct config *)into)->cluster;

	if (!*c->node && c->etcds)
		return keys_refuse(r, at,
				   "etcd is given, and no node: give this node a name, or "
				   "leave out etcd");
	if (!*c->node)
		return 0;
	if (!*c->certificate != !*c->key)
		return keys_refuse(r, at, "certificate and key come together, or neither of them");
	if (!*c->user != !*c->password)
		return keys_refuse(r, at, "user and password come together, or neither of them");
	if ((*c->ca || *c->certificate) && !has_secure(c))
		return keys_refuse(r, at,
				   "ca, certificate and key mean something only where an "
				   "etcd begins with https://");
	for (unsigned int i = 0; *c->user && i < c->etcds; i++)
		if (strncmp(c->etcd[i], "https://", 8) != 0 && !url_is_of_this_machine(c->etcd[i]))
			return keys_refuse(r, at,
					   "etcd: %s: a password goes over https:// only, or to "
					   "this machine",
					   c->etcd[i]);
	return 0;
}
