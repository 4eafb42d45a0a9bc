// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/util.h"
#include "ethtool.h"

enum {
	FEATURE_WORDS = 8, /* of 32 features; Linux 6 has 2 */
};

bool ethtool(int fd, const char *name, void *command)
{
	struct ifreq request = { .ifr_data = command };

	memcpy(request.ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
	return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

bool ethtool_features(int fd, const char *name,
		      void (*each)(void *context, const char *feature, bool active), void *context)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES } };
	struct {
		struct ethtool_gfeatures head;
		struct ethtool_get_features_block block[FEATURE_WORDS];
	} is = { .head = { .cmd = ETHTOOL_GFEATURES, .size = FEATURE_WORDS } };
	_cleanup_(freep) struct ethtool_gstrings *names = NULL;

	if (!ethtool(fd, name, &set) || !set.info.sset_mask || set.count > 32 * FEATURE_WORDS)
		return false;
	names = calloc(1, sizeof(*names) + set.count * ETH_GSTRING_LEN);
	if (!names)
		return false;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	names->len = set.count;
	if (!ethtool(fd, name, names) || !ethtool(fd, name, &is))
		return false;
	for (uint32_t i = 0; i < set.count; i++) {
		char feature[ETH_GSTRING_LEN + 1] = "";

		memcpy(feature, (const char *)names->data + i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		each(context, feature, is.block[i / 32].active >> i % 32 & 1);
	}
	return true;
}
