# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs of two workers and TCP beside them on the same cables: what a test (tests/e2e/congestion.sh)
# and a benchmark (scripts/bench-fair) share. Who sources it has bed, exec_on, $build, $pin, $work.

family=4 # of IP
frame=1514 # bytes of a full chunk, and of a full segment of TCP

# Of TCP from there.
use_cubic() { # HOST
	local gateway
	gateway=$(bed exec "$1" ip -j route show default | jq -r '.[0].gateway')
	bed exec "$1" ip route change default via "$gateway" dev eth0 congctl cubic
}

pair_address() { # HOST
	local address
	address=$(bed addr "$1" "$family")
	[[ $family == 4 ]] || address="[$address]"
	echo "$address"
}

# A job with calls of 2 MiB, in the background: what its ranks say is in $work/outNUMBER.RANK.
start_job_of() { # HOST HOST NUMBER WINDOW tally-perf-arguments...
	local rank file=$work/job$3 hosts=("$1" "$2")
	rm -f "$work/out$3".*
	{
		printf 'job %d\nepoch 1\nwindow %d\npayload %d\n' "$3" "$4" $((family == 4 ? 1408 : 1344))
		echo "service $(bed addr n0 "$family")"
		for rank in 0 1; do echo "worker $(pair_address "${hosts[rank]}"):40${3}0$rank"; done
	} >"$file"
	bed exec n0 "$build/tally-node" job add "$file" --pin "$pin-n0" >/dev/null || return 1
	for rank in 0 1; do
		exec_on "${hosts[rank]}" "$build/tally-perf" --job "$file" --rank "$rank" --json \
			--no-check -d int32 -b 2M -e 2M -n 1 "${@:5}" >"$work/out$3.$rank" &
		worker+=($!)
	done
}

said_of() { jq "$2" "$work/out$1.0"; } # JOB EXPRESSION

# Takes one flow of TCP, in the background.
tcp_listen() { # HOST
	local server
	exec_on "$1" iperf3 -s -1 -B "$(bed addr "$1")" >"$work/server" 2>&1 &
	server=$!
	until bed exec "$1" ss -ltn | grep :5201 >/dev/null; do
		kill -0 "$server" || return 1
	done
}

# What iperf3 says of it is then in $work/tcp.
tcp_flow() { # FROM TO SECONDS
	bed exec "$1" iperf3 -c "$(bed addr "$2")" -t "$3" -J >"$work/tcp" || return 1
	[[ $(jq -r .end.sender_tcp_congestion "$work/tcp") == cubic ]]
}
