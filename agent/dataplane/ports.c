// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A node's ports, whatever holds our program to them. */
#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "dataplane.h"
#include "ports.h"

/* In the order in which they are tried. */
static const struct port_kind *const kinds[] = {
	&port_dispatcher_kind,
	&port_shared_kind,
	&port_link_kind,
	&port_tc_kind,
};

enum {
	KINDS = sizeof(kinds) / sizeof(*kinds),
	AT_PORT_TRIES = 1000,
	AT_PORT_WAIT_NS = 1000000,
};

/* --- what there is --------------------------------------------------------------------------- */

uint64_t netns_here(void)
{
	struct stat s;

	return stat("/proc/thread-self/ns/net", &s) < 0 ? 0 : s.st_ino;
}

uint32_t program_number(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &length) < 0 ? 0 : info.id;
}

int port_program(const char *pin, uint32_t ifindex)
{
	static const char *const suffix[] = { "", PIN_STAGED };
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int r;

	r = bpf_xdp_query(ifindex, 0, &query);
	if (query_failed(r))
		return r;
	if (r < 0 || !query.prog_id)
		return -ENOENT;
	for (int i = 0; i < 2; i++) {
		_cleanup_(closep) int fd = bpf_obj_get(
			pin_path(pin, pin_name[PIN_INGRESS], suffix[i]));

		if (query_failed(fd))
			return fd;
		if (fd >= 0 && program_number(fd) == query.prog_id)
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

/* Staged before the port has it; no more staged once the port has what is pinned again. */
int port_update(const char *pin, const struct port_link *link, int program)
{
	const bool is_back = !link->kind->pins_program || program == link->fd;
	int r = 0;

	if (!is_back) {
		unlink(pin_path(pin, link->name, PIN_STAGED));
		r = bpf_obj_pin(program, pin_path(pin, link->name, PIN_STAGED));
	}
	if (r == 0)
		r = link->kind->update(pin, link, program);
	if (link->kind->pins_program && is_back == (r == 0))
		unlink(pin_path(pin, link->name, PIN_STAGED));
	return r;
}

int program_of_xdp(struct programs *p, struct why *why) { return p->fd[PIN_INGRESS]; }

void links_close(struct port_link *links, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		close(links[i].fd);
	free(links);
}

const char *port_pin(const char *pin, const struct port_kind *kind, uint32_t ifindex, bool made)
{
	char name[PIN_BYTES];
	int n = snprintf(name, sizeof(name), "%s%u", kind->prefix, ifindex);

	if (kind->numbers > 1)
		n += snprintf(name + n, sizeof(name) - n, "-%" PRIu64, netns_here());
	if (kind->numbers > 2)
		snprintf(name + n, sizeof(name) - n, "-%d", made);
	return pin_path(pin, name, "");
}

/* False: the name is no port's. */
static bool name_parse(struct port_link *link)
{
	const char *at = link->name + strlen(link->kind->prefix);
	uint64_t number[] = { 0, netns_here(), 0 };
	char *end;

	for (unsigned int i = 0; i < link->kind->numbers; i++, at = end) {
		if (i && *at++ != '-')
			return false;
		number[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
	}
	link->pinned = number[0];
	link->elsewhere = number[1] != netns_here();
	link->made = number[2];
	return !*at && number[2] <= 1;
}

static int query_error(const struct dataplane *d, int error, struct why *why)
{
	return why_say(why, error, "%s: the kernel does not say what is on the ports: %s", d->path,
		       strerror(-error));
}

int ports_refresh(struct dataplane *d, struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; r >= 0 && i < d->links_count; i++) {
		struct port_link link = d->links[i];

		link.ifindex = 0;
		r = link.kind->read(d->path, &link);
		if (r >= 0)
			d->links[i] = link;
	}
	return r < 0 ? query_error(d, r, why) : 0;
}

/* What a pin says of a port: 1. 0: it is no port's. */
static int link_read(const char *pin, struct port_link *link)
{
	int r, i = 0;

	while (i < KINDS && strncmp(link->name, kinds[i]->prefix, strlen(kinds[i]->prefix)) != 0)
		i++;
	if (i == KINDS)
		return 0;
	link->kind = kinds[i];
	if (!name_parse(link))
		return 0;
	link->fd = bpf_obj_get(pin_path(pin, link->name, ""));
	if (link->fd < 0)
		return query_failed(link->fd) ? link->fd : 0;
	r = link->kind->read(pin, link);
	if (r < 0)
		closep(&link->fd);
	return r < 0 ? r : 1;
}

int links_open(const char *pin, struct port_link **ret, unsigned int *ret_count)
{
	struct port_link *links = calloc(TALLY_PORTS_MAX, sizeof(*links));
	DIR *directory = opendir(pin);
	int r = !links ? -ENOMEM : !directory ? -errno : 0;
	unsigned int n = 0;
	struct dirent *e;

	while (links && directory && r >= 0 && n < TALLY_PORTS_MAX && (e = readdir(directory))) {
		struct port_link link = { .fd = -1 };

		if (strlen(e->d_name) >= sizeof(link.name))
			continue;
		snprintf(link.name, sizeof(link.name), "%.63s", e->d_name);
		r = link_read(pin, &link);
		if (r > 0)
			links[n++] = link;
	}
	if (directory)
		closedir(directory);
	if (r < 0) {
		links_close(links, n);
		return r;
	}
	*ret = links;
	*ret_count = n;
	return 0;
}

int dataplane_ports(struct dataplane *d, struct dataplane_port **ret, unsigned int *ret_count,
		    struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	int r = ports_refresh(d, why);

	if (r < 0)
		return r;
	ports = calloc(TALLY_PORTS_MAX, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	for (unsigned int i = 0; r == 0 && i < d->links_count; i++) {
		struct dataplane_port *p = &ports[i];
		const struct port_link *link = &d->links[i];

		p->ifindex = link->ifindex;
		p->beside = link->beside;
		p->share = p->beside;
		if (p->ifindex && !if_indextoname(p->ifindex, p->name))
			*p->name = '\0'; /* in another namespace */
		p->mode = link->kind->mode;
		if (p->mode != DATAPLANE_AUTO)
			continue;
		r = dataplane_native(p->ifindex);
		p->mode = r > 0 ? DATAPLANE_NATIVE : DATAPLANE_GENERIC;
		if (!query_failed(r))
			r = 0;
	}
	if (r < 0)
		return query_error(d, r, why);
	*ret = TAKE_PTR(ports);
	*ret_count = d->links_count;
	return 0;
}

int dataplane_is_attached(struct dataplane *d, uint32_t ifindex)
{
	int r = 0;

	for (int i = 0; i < KINDS && r == 0; i++)
		r = kinds[i]->is_attached(d->path, ifindex);
	return r;
}

/* --- attaching ------------------------------------------------------------------------------- */

static int mac_read(uint32_t ifindex, uint8_t ret[ETH_ALEN])
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ask = { .ifr_ifindex = 0 };

	if (fd < 0 || !if_indextoname(ifindex, ask.ifr_name) || ioctl(fd, SIOCGIFHWADDR, &ask) < 0)
		return -errno;
	memcpy(ret, ask.ifr_hwaddr.sa_data, ETH_ALEN);
	return 0;
}

/*
 * What programs keep of the port; where that is there, it stays as it is. The kernel takes memory
 * for all CPUs out of a small store, and fills the store up a moment later.
 */
static int at_port_make(int map, const struct dataplane_port *p, struct why *why)
{
	const struct timespec moment = { .tv_nsec = AT_PORT_WAIT_NS };
	const unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_at_port *fresh = calloc(cpus, sizeof(*fresh));
	int r = fresh ? mac_read(p->ifindex, fresh->mac) : -ENOMEM;

	_Static_assert(sizeof(*fresh) % 8 == 0, "the kernel pads per-CPU values to 8 bytes");
	if (r < 0)
		return why_say(why, r, "%s: its hardware address: %s", p->name, strerror(-r));
	for (unsigned int cpu = 1; cpu < cpus; cpu++)
		fresh[cpu] = fresh[0];
	for (int tries = 0; tries < AT_PORT_TRIES; tries++) {
		r = bpf_map_update_elem(map, &p->ifindex, fresh, BPF_NOEXIST);
		if (r != -ENOMEM)
			break;
		nanosleep(&moment, NULL);
	}
	if (r == -E2BIG)
		return why_say(why, r, "%s: the node has %u ports already, the most it can have",
			       p->name, TALLY_PORTS_MAX);
	if (r < 0 && r != -EEXIST)
		return why_say(why, r, "%s: map at_ports: %s", p->name, strerror(-r));
	return 0;
}

/* Without the port's name, which goes with each reason: "eth1: cannot ..." */
static const char *reason_of(const struct why *why, const struct dataplane_port *p)
{
	const char *at = why->text;

	if (!strncmp(at, p->name, strlen(p->name)) && at[strlen(p->name)] == ':')
		at += strlen(p->name) + 1;
	return at + strspn(at, " ");
}

/* Attaches by one kind. `p` is changed only if that succeeds, but for the reasons. */
static int kind_attach(const struct port_kind *kind, const char *pin, struct programs *programs,
		       struct dataplane_port *p, struct why *why)
{
	struct dataplane_port tried = *p;
	int r = kind->program(programs, why);

	if (r >= 0)
		r = kind->attach(pin, r, &tried, why);
	if (r < 0)
		p->refused = tried.refused;
	else
		*p = tried;
	return r;
}

/* Why XDP did not do, for those who see the port attached by another kind. */
static void reasons_say(struct dataplane_port *p, const struct why *said)
{
	const struct why native = p->refused;

	why_say(&p->refused, 0, "%s%.200s%s%.250s", *native.text ? "native: " : "", native.text,
		*native.text ? "; generic: " : "", reason_of(said, p));
}

int port_attach(const char *pin, struct programs *programs, struct dataplane_port *p,
		struct why *why)
{
	struct why said = { "" };
	unsigned int tried = 0;
	int r = at_port_make(programs->fd[PIN_AT_PORTS], p, why);

	if (r < 0)
		return r;
	for (int i = 0; i < KINDS; i++) {
		if (!kinds[i]->suits(p, programs->fd[PIN_INGRESS], r))
			continue;
		if (tried++)
			reasons_say(p, &said);
		r = kind_attach(kinds[i], pin, programs, p, &said);
		if (r == 0)
			return 0;
		if (kinds[i] == &port_dispatcher_kind)
			r = 0; /* a tail call, or a link, does without */
	}
	assert(tried); /* each mode has a kind */
	if (tried > 1)
		return why_say(why, r, "%.200s (XDP: %.280s)", said.text, p->refused.text);
	*why = said;
	return r;
}
