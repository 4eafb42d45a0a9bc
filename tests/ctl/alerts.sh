#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Alert rules and dashboard: right by themselves. Whether a real tallyd has their series, and
# Prometheus takes them, tests/e2e/metrics.sh shows.
# shellcheck source=tests/ctl/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Each alert is expected at least once to fire, and once not to.
each_alert_is_tested() {
	diff <(sed -n 's/^ *- alert: //p' packaging/alerts.yml | sort) \
		<(grep -oP 'alertname: \K\w+' tests/ctl/alerts.yml | sort | uniq -d)
}

each_panel_asks_something() {
	jq -e '(.panels | length) > 10 and (.panels | map(.id) | unique | length) == (.panels | length) and
		all(.panels[]; .title != "" and all(.targets[]; .expr != ""))' packaging/dashboard.json
}

check "promtool finds nothing in the rules" promtool check rules --lint=all --lint-fatal packaging/alerts.yml
check "each alert fires when it must, and only then" promtool test rules tests/ctl/alerts.yml
check "each alert is tested" each_alert_is_tested
check "each panel of the dashboard asks something" each_panel_asks_something
finish
