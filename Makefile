# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One Makefile for all of Tally; outputs in build/. `make help` lists what there is.

BUILD   := build
CC      := gcc
CLANG   ?= clang-19
# Said in the public header.
VERSION := $(subst $() ,.,$(strip $(shell sed -n 's/^.define TALLY_VERSION_[MP][A-Z]* //p' \
	   include/tally/tally.h)))

CFLAGS  := -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wmissing-prototypes \
	   -pthread -D_GNU_SOURCE -DTALLY_VERSION_TEXT='"$(VERSION)"' -Iinclude -I. -I$(BUILD) -MMD -MP
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	   -Wno-sign-compare -Iinclude -I/usr/include/$(shell gcc -print-multiarch) -MMD -MP
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

objects = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %.bpf.c,$(1)))

COMMON  := $(wildcard common/*.c)
CLIENT  := $(wildcard client/*.c)
# tallyd has the policies that it calls, and none that needs GLPK.
CALLED  := $(wildcard agent/policy/predict*.c agent/policy/quota*.c) \
	   $(addprefix agent/policy/,graph.c reach.c fair.c place.c place_again.c place_candidates.c \
	   place_cost.c place_estimate.c place_explain.c place_search.c place_fit.c \
	   place_on_the_way.c roots.c split.c choices.c rounding.c search.c merge.c merge_menu.c \
	   merge_search.c merge_split.c merge_tree.c)
# etcd is a module of its own, which brings libcurl along: agent/store/store_module.c.
ETCD    := $(wildcard agent/store/http.c agent/store/*etcd*.c)
STORE   := $(filter-out $(ETCD),$(wildcard agent/store/*.c))
AGENT   := $(filter-out agent/tallyd.c agent/policy/% agent/store/%,$(wildcard agent/*.c agent/*/*.c spill/*.c)) $(CALLED) $(STORE)
POLICY  := $(wildcard agent/policy/*.c)
SIM     := $(filter-out sim/tally_sim.c,$(wildcard sim/*.c))
CTL     := $(wildcard ctl/*.c)
NODE    := $(wildcard node/*.c)
UNITS   := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c)) \
	   $(addprefix $(BUILD)/tests/unit/,test_progress_races test_progress_shares_races \
	   test_progress_threads_races test_spiller_races)
BPFS    := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(wildcard tests/bpf/test_*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
GUESTS  := $(patsubst tests/vm/%.c,$(BUILD)/tests/vm/%,$(wildcard tests/vm/*.c))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(filter-out %.bpf.c %/mpi.c,$(wildcard tests/bench/*.c)))
REPRODUCED := $(addprefix $(BUILD)/tests/bench/,tapina inart)
CTLS    := $(patsubst tests/ctl/%.c,$(BUILD)/tests/ctl/%,$(wildcard tests/ctl/test_*.c)) \
	   $(filter-out %/lib.sh,$(wildcard tests/ctl/*.sh))
E2EBINS := $(patsubst tests/e2e/%.c,$(BUILD)/tests/e2e/%,$(filter-out %/starve.c,$(wildcard tests/e2e/*.c))) \
	   $(BUILD)/tests/e2e/starve.so \
	   $(BUILD)/tests/bpf/beside.bpf.o $(addprefix $(BUILD)/tests/bench/,bounce reflector)
E2ES    := $(filter-out %lib.sh,$(wildcard tests/e2e/*.sh))
# So many programs of tests at a time, on two processors: they wait more than they compute.
LANES   := 3
# They measure times or rates, and want the machine for themselves.
ALONE   := $(foreach t,congestion cluster_failures cluster_inart cluster_steering cluster_ways inart latency scarce spin tapina,tests/e2e/$(t).sh)
KEYS_DOCS := docs/config.md docs/control.md docs/joining.md docs/peering.md docs/job-file.md \
	docs/trees.md docs/simulator.md docs/cluster.md man/tallyd.yaml.5
SKELS   := $(addprefix $(BUILD)/bpf/,ingress.skel.h ingress_tc.skel.h fanout.skel.h port.skel.h)
PROGRAMS := $(addprefix $(BUILD)/,libtally.a libtally.so tallyd tally-etcd.so tallyctl tally-node tally-perf \
	   tally-sim train testbed-cable)

# What `make install` puts where: MODE:SOURCE:TARGET. DESTDIR is for those who make packages;
# PREFIX=/usr/local keeps beside the distribution's own. The configuration is in /etc in any case.
DESTDIR :=
PREFIX  := /usr
MADE    := $(BUILD)/packaging/tallyd.service $(BUILD)/packaging/libtally.pc
manual = $(foreach page,$(1),644:man/$(page):$(PREFIX)/share/man/man$(subst .,,$(suffix \
	$(page)))/$(page))

# What workers need, which needs nothing but libc.
CLIENT_MADE := $(addprefix $(BUILD)/,libtally.a libtally.so tally-perf packaging/libtally.pc)
CLIENT_INSTALLED = 755:$(BUILD)/tally-perf:$(PREFIX)/bin/tally-perf \
	644:$(BUILD)/libtally.so:$(PREFIX)/lib/libtally.so.0 \
	link:libtally.so.0:$(PREFIX)/lib/libtally.so \
	644:$(BUILD)/libtally.a:$(PREFIX)/lib/libtally.a \
	644:include/tally/tally.h:$(PREFIX)/include/tally/tally.h \
	644:include/tally/dtype.h:$(PREFIX)/include/tally/dtype.h \
	644:$(BUILD)/packaging/libtally.pc:$(PREFIX)/lib/pkgconfig/libtally.pc \
	$(call manual,libtally.3 tally-perf.1)
INSTALLED = $(CLIENT_INSTALLED) \
	$(foreach p,tallyd tally-node,755:$(BUILD)/$(p):$(PREFIX)/sbin/$(p)) \
	$(foreach p,tallyctl tally-sim,755:$(BUILD)/$(p):$(PREFIX)/bin/$(p)) \
	644:$(BUILD)/tally-etcd.so:$(PREFIX)/lib/tally/tally-etcd.so \
	644:examples/day.workload:$(PREFIX)/share/tally/day.workload \
	755:scripts/tally-configure:$(PREFIX)/sbin/tally-configure \
	644:$(BUILD)/packaging/tallyd.service:$(PREFIX)/lib/systemd/system/tallyd.service \
	644:packaging/sysusers.conf:$(PREFIX)/lib/sysusers.d/tally.conf \
	644:packaging/tmpfiles.conf:$(PREFIX)/lib/tmpfiles.d/tally.conf \
	$(foreach f,alerts.yml dashboard.json,644:packaging/$(f):$(PREFIX)/share/tally/$(f)) \
	644:completion/tallyctl.bash:$(PREFIX)/share/bash-completion/completions/tallyctl \
	$(call manual,$(filter-out libtally.3 tally-perf.1,$(notdir $(wildcard man/*.[1-8]))))

# `make V=1` shows whole commands.
ifeq ($(V),1)
say =
else
say = @echo "  $(1)" $(patsubst $(BUILD)/%,%,$@);
endif

.PHONY: pure keys-docs help all setup setup-build setup-client install install-client uninstall \
	demo demo-cluster bench bench-fair bench-memory bench-paths bench-peers bench-predict bench-quotas bench-rings \
	reproduce test \
	lint unit model model-long sim-long \
	fuzz ctl bpf e2e vm vm-all guest pictures testbed clean always
.SECONDARY:
.DELETE_ON_ERROR:

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

all: $(PROGRAMS) ## the library and all programs

setup: ## install what build and tests need (Debian 12, as root)
	@scripts/setup.sh

setup-build: ## the same, but only what the build needs
	@scripts/setup.sh build

setup-client: ## the same, but only what workers need: a C compiler
	@scripts/setup.sh client

# A make of its own: this one may have looked for what setup-build has only just installed.
install: | $(filter setup%,$(MAKECMDGOALS)) ## build, and install all that a node and workers need
	@$(MAKE) --no-print-directory -s all $(MADE)
	@scripts/install "$(DESTDIR)" $(INSTALLED)
	@scripts/install --first "$(DESTDIR)" 644:packaging/tallyd.yaml:/etc/tally/tallyd.yaml

install-client: | $(filter setup%,$(MAKECMDGOALS)) ## build, and install all that workers need
	@$(MAKE) --no-print-directory -s $(CLIENT_MADE)
	@scripts/install "$(DESTDIR)" $(CLIENT_INSTALLED)

uninstall: ## remove what install brought, where no node is left; neither configuration nor state
	@scripts/install --remove "$(DESTDIR)" $(INSTALLED)

demo: setup ## four workers train on real images; one node sums their gradients
	@$(MAKE) --no-print-directory -s all
	@scripts/demo

demo-cluster: setup ## five jobs on eleven nodes, placed by traffic; others come, and jobs move away
	@$(MAKE) --no-print-directory -s all
	@scripts/demo-cluster

bench: setup ## nanoseconds per packet and goodput, each beside its limit; others' are in bench-peers
	@$(MAKE) --no-print-directory -s all $(BENCHES)
	@scripts/bench

bench-peers: setup ## Tally beside Gloo and Open MPI, in turns in the same namespaces (an hour)
	@scripts/setup-peers.sh
	@$(MAKE) --no-print-directory -s all $(BENCHES)
	@scripts/bench-peers

bench-fair: setup ## what two jobs and TCP have of the cables that they share, over time (10 minutes)
	@$(MAKE) --no-print-directory -s all
	@scripts/bench-fair

bench-memory: $(BUILD)/tests/bench/memory ## completion times of jobs by memory, policy and spread
	@echo "simulation" && $<
	@echo "namespaces" && scripts/bench-memory

bench-paths: setup ## how long runs are slow when something happens to their inner nodes
	@$(MAKE) --no-print-directory -s all
	@scripts/bench-paths

bench-predict: $(BUILD)/tests/bench/predict $(BUILD)/tests/bench/predict_place ## how well predictors forecast six kinds of traces, and what that does to placement
	@$(BUILD)/tests/bench/predict
	@$(BUILD)/tests/bench/predict_place

bench-quotas: $(BUILD)/tests/bench/quotas ## what policies of quotas are worth: a simulation
	@$<

reproduce: $(REPRODUCED) ## what other papers claim, measured here: docs/reproduction (10 minutes)
	@scripts/reproduce

bench-rings: $(BUILD)/tests/bench/rings ## how often a run finds too few slots in a row: a simulation
	@$<

test: setup ## all rungs: lint, unit, model, ctl, fuzz, bpf, e2e, and bpf once more on an older kernel
	-@scripts/setup-vm.sh
	@$(MAKE) --no-print-directory -s -j$$(nproc) all $(BUILD)/tally-keys $(BUILD)/tally-vectors guest $(UNITS) $(filter $(BUILD)/%,$(CTLS)) $(FUZZERS) \
		$(BPFS) $(E2EBINS) $(BENCHES) $(BUILD)/sanitized/tallyd
	@$(MAKE) --no-print-directory -s $(BUILD)/next/tallyd
	@scripts/run-tests --lanes $(LANES) vm-testbed/smoke scripts/lint $(UNITS) tests/model/check $(CTLS) scripts/fuzz $(BPFS) \
		$(filter-out $(ALONE),$(E2ES)) -- $(ALONE)

lint: all $(BUILD)/tally-keys $(BUILD)/tally-vectors $(BENCHES) $(BPFS) ## formatters, static analysers, who may include whom
	@scripts/run-tests scripts/lint

unit: $(UNITS) ## pure modules under ASan and UBSan
	@scripts/run-tests $(UNITS)

model: ## spin walks all states of the models in tests/model
	@scripts/run-tests tests/model/check

model-long: ## the same for larger models
	@TALLY_MODEL=long scripts/run-tests tests/model/check

sim-long: $(BUILD)/tests/unit/test_sim ## a million worlds of workers, nodes and faults; SIM_SEEDS, SIM_SECONDS, SEED
	@SEED='$(SEED)' scripts/sim

fuzz: $(FUZZERS) ## what reads other people's bytes, FUZZ_SECONDS (30) each
	@scripts/fuzz

ctl: $(filter $(BUILD)/%,$(CTLS)) $(PROGRAMS) $(REPRODUCED) ## tallyctl as people use it; its manual and completion
	@scripts/run-tests $(CTLS)

bpf: $(BPFS) ## the data plane by BPF_PROG_TEST_RUN
	@scripts/run-tests $(BPFS)

e2e: all $(E2EBINS) $(BPFS) $(BUILD)/next/tallyd $(BUILD)/sanitized/tallyd ## real workers, nodes and losses in network namespaces
	@scripts/run-tests --lanes $(LANES) $(filter-out $(ALONE),$(E2ES)) -- $(ALONE)

vm: ## the data plane and a bad network on a real 6.1 kernel, in an emulator
	-@scripts/setup-vm.sh
	@vm-testbed/all 6.1-cloud:bpf,netem

vm-all: ## all kernels of vm-testbed/kernels, with all their rungs
	-@scripts/setup-vm.sh
	@vm-testbed/all

guest: $(filter-out %/tally-sim %/tally-etcd.so,$(PROGRAMS)) $(BUILD)/next/tallyd $(BPFS) $(BUILD)/tests/bpf/beside.bpf.o $(BUILD)/tests/e2e/kill_at $(GUESTS) # what goes into a guest

pure: # what decides and touches nothing; make lint looks after it
	@echo $(filter-out common/file.c,$(COMMON)) $(wildcard agent/core/*.c) $(wildcard agent/cluster/*.c) $(addprefix agent/store/,store.c mirror.c etcd_text.c) $(POLICY) $(filter-out sim/plot.c,$(SIM)) $(filter-out spill/listen.c spill/serve.c,$(wildcard spill/*.c)) $(filter-out $(addprefix client/,collect.c pump.c udp.c transport.c join.c join_anew.c join_asking.c join_options.c join_talk.c join_way.c moving.c progress.c progress_hear.c progress_move.c progress_shares.c progress_stay.c open.c open_join.c tally.c way.c),$(CLIENT))

keys-docs: $(BUILD)/tally-keys ## write the lists of keys into documents and manual anew
	@for page in $(KEYS_DOCS); do $< $$page > $(BUILD)/page && cat $(BUILD)/page > $$page || exit; done

vectors-docs: $(BUILD)/tally-vectors ## write the test vectors of the protocol anew
	@$< > $(BUILD)/page && cat $(BUILD)/page > docs/vectors.md

pictures: ## draw docs/pictures anew, where sources have changed
	@scripts/pictures

testbed: $(BUILD)/testbed-cable ## what scripts/testbed needs

clean: ## remove build/
	rm -rf $(BUILD)

# --- BPF programs and their skeletons

$(BUILD)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF )$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(call say,SKEL)bpftool gen skeleton $< name $(notdir $*)_bpf > $@

# Which data plane this is: the agent asks a running node whether it has the same. SALT makes
# another one of the same sources.
$(BUILD)/bpf/build.h: $(SKELS)
	$(call say,HASH)printf '/* made by the Makefile */\n#define TALLY_DATAPLANE_BUILD 0x%sULL\n' \
		"$$({ echo '$(BPF_CFLAGS) $(SALT)'; $(CLANG) --version; \
		cat $(sort $(wildcard bpf/*.[ch] include/tally/*.h)); } | sha256sum | cut -c1-16)" > $@

# --- C

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(CFLAGS) -fPIC -c $< -o $@

$(BUILD)/examples/model.o: CFLAGS += -O3
$(call objects,$(wildcard client/lane*.c)): CFLAGS += -O3 -fno-math-errno -fno-trapping-math

$(BUILD)/libtally.a: $(call objects,$(CLIENT) $(COMMON))
	$(call say,AR  )rm -f $@ && ar rcs $@ $^

$(BUILD)/libtally.so: $(call objects,$(CLIENT) $(COMMON)) client/libtally.map
	$(call say,LD  )$(CC) -shared -Wl,--version-script=client/libtally.map -Wl,-soname,libtally.so.0 \
		-o $@ $(filter %.o,$^) -lm

$(call objects,$(wildcard agent/dataplane/*.c)): $(SKELS) $(BUILD)/bpf/build.h
# Only what a program uses of it is linked.
$(BUILD)/agent.a: $(call objects,$(AGENT))
	$(call say,AR  )rm -f $@ && ar rcs $@ $^

$(BUILD)/tally-node: $(call objects,$(NODE)) $(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lxdp -lbpf -lnl-route-3 -lnl-3

RUNPATH := -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib/tally'
$(BUILD)/tallyd: $(call objects,agent/tallyd.c) $(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ $(LIBRARIES) $(RUNPATH)
$(BUILD)/tally-etcd.so: $(call objects,$(ETCD)) $(BUILD)/agent.a $(BUILD)/libtally.a agent/store/module.map
	$(call say,LD  )$(CC) -shared -Wl,--version-script=agent/store/module.map -Wl,-z,defs -o $@ \
		$(filter-out %.map,$^) -lcurl -lsystemd -ljansson

LIBNL    = $(shell pkg-config --cflags libnl-route-3.0)
$(call objects,$(wildcard agent/edge/netlink*.c)): CFLAGS += $(LIBNL)

$(BUILD)/tallyctl: $(call objects,$(CTL)) $(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -ljansson -lyaml -lbpf -lnl-route-3 -lnl-3


$(BUILD)/tally-perf: $(call objects,$(wildcard perf/*.c)) $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lm
# GLPK is under the GPL, version 3 (docs/decisions/0026): nothing else is linked with it.
$(BUILD)/sim.a: $(call objects,$(SIM) $(POLICY) $(wildcard agent/core/*.c))
	$(call say,AR  )rm -f $@ && ar rcs $@ $^
$(BUILD)/tally-sim: $(call objects,sim/tally_sim.c) $(BUILD)/sim.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lglpk -lexpat -lyaml -ljansson -lm
$(BUILD)/train: $(call objects,examples/train.c examples/model.c examples/dataset.c) $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lz -lm

$(call objects,tests/testbed/cable.c): $(BUILD)/tests/testbed/cable.skel.h
$(BUILD)/testbed-cable: $(call objects,tests/testbed/cable.c)
	$(call say,LD  )$(CC) -o $@ $^ -lbpf

$(BUILD)/tally-keys: $(call objects,tools/keys.c) $(BUILD)/sim.a $(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -Wl,--as-needed $(LIBRARIES)
$(BUILD)/tally-vectors: $(call objects,tools/vectors.c tools/vectors_calls.c tools/vectors_print.c tools/vectors_world.c) $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lm

# PREFIX may be another one than last time.
$(BUILD)/packaging/tallyd.service: packaging/tallyd.service always
	@mkdir -p $(@D)
	@sed 's,/usr/sbin,$(PREFIX)/sbin,' $< > $@
$(BUILD)/packaging/libtally.pc: packaging/libtally.pc.in always
	@mkdir -p $(@D)
	@sed 's,@PREFIX@,$(PREFIX),; s,@VERSION@,$(VERSION),' $< > $@

# --- tests. Units: everything is compiled anew, with sanitizers.

LIBRARIES := -lxdp -lbpf -lnl-route-3 -lnl-3 -lsystemd -lyaml -ljansson -lmicrohttpd -lcap-ng -lm

$(BUILD)/sanitized/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(CFLAGS) $(SANITIZE) -c $< -o $@

$(patsubst %.c,$(BUILD)/sanitized/%.o,$(wildcard agent/dataplane/*.c)): $(SKELS) $(BUILD)/bpf/build.h
$(patsubst %.c,$(BUILD)/sanitized/%.o,$(wildcard agent/edge/netlink*.c)): CFLAGS += $(LIBNL)
$(BUILD)/sanitized.a: $(patsubst %.c,$(BUILD)/sanitized/%.o,$(sort $(COMMON) $(CLIENT) $(AGENT) $(ETCD) $(POLICY) $(SIM)) $(filter-out ctl/tallyctl.c,$(CTL)))
	$(call say,AR  )rm -f $@ && ar rcs $@ $^

# All of tallyd, for tests that watch its memory while it runs.
$(BUILD)/sanitized/tallyd: $(BUILD)/sanitized/agent/tallyd.o $(BUILD)/sanitized.a
	$(call say,LD  )$(CC) $(SANITIZE) -o $@ $^ $(LIBRARIES)

$(BUILD)/tests/unit/%: $(BUILD)/sanitized/tests/unit/%.o $(BUILD)/sanitized.a
	@mkdir -p $(@D)
	$(call say,LD  )$(CC) $(SANITIZE) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcmocka -Wl,--as-needed $(LIBRARIES) -lglpk -lexpat

# Tests in which memory runs out (tests/unit/scarce.h).
SCARCE := $(addprefix $(BUILD)/tests/unit/,test_cluster test_keys test_merge test_place \
	  test_place_again test_placer_ways test_route test_split)
$(SCARCE): LIBRARIES += -Wl,--wrap=calloc,--wrap=reallocarray

# What each rank hears, and what it does with it; and what happens between the parts of a call.
$(addprefix $(BUILD)/tests/unit/,test_progress_shares test_progress_shares_races): LIBRARIES += \
	-Wl,--wrap=join_shares_heard,--wrap=shards_part
$(addprefix $(BUILD)/tests/unit/,test_progress_threads test_progress_threads_races): LIBRARIES += \
	-Wl,--wrap=shards_part

# Vectors as they are in use: with sanitizers the compiler makes others, or none.
$(BUILD)/tests/unit/test_lane_vectors: $(BUILD)/client/lane_vectors.o

$(BUILD)/tests/unit/test_place_example: $(BUILD)/sanitized/tests/unit/place_switch.o

# What threads share is also tested for races.
$(BUILD)/races/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(CFLAGS) -fsanitize=thread -c $< -o $@
$(BUILD)/tests/unit/test_progress_races: $(patsubst %.c,$(BUILD)/races/%.o,tests/unit/test_progress.c \
	$(CLIENT) $(COMMON))
$(BUILD)/tests/unit/test_progress_shares_races: $(patsubst %.c,$(BUILD)/races/%.o, \
	tests/unit/test_progress_shares.c $(CLIENT) $(COMMON))
$(BUILD)/tests/unit/test_progress_threads_races: $(patsubst %.c,$(BUILD)/races/%.o, \
	tests/unit/test_progress_threads.c $(CLIENT) $(COMMON))
$(BUILD)/tests/unit/test_spiller_races: $(patsubst %.c,$(BUILD)/races/%.o,tests/unit/test_spiller.c \
	agent/edge/spiller.c agent/edge/refused.c agent/core/installation.c agent/core/limits.c agent/core/port_check.c \
	$(wildcard spill/*.c) $(COMMON))
$(BUILD)/tests/unit/%_races:
	@mkdir -p $(@D)
	$(call say,LD  )$(CC) -fsanitize=thread -o $@ $^ -lcmocka -lm $(LIBRARIES)

# Fuzzers: each names in its first lines what is compiled with it, besides common/.
named_in = $(shell sed -n 's|^/\* $(1): \(.*\) \*/$$|\1|p' $(2))

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(COMMON) $(CLIENT) $(AGENT) $(ETCD) $(SIM) $(wildcard include/tally/*.h common/*.h client/*.h agent/*/*.h sim/*.h)
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANG) $(filter-out -O2 -MMD -MP,$(CFLAGS)) -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -o $@ $< $(COMMON) $(call named_in,sources,$<) \
		$(call named_in,libraries,$<)

# All of tallyctl, as the tests of the whole program run it.
$(BUILD)/tests/ctl/tallyctl: $(BUILD)/sanitized/ctl/tallyctl.o $(BUILD)/sanitized.a
	@mkdir -p $(@D)
	$(call say,LD  )$(CC) $(SANITIZE) -o $@ $^ -Wl,--as-needed $(LIBRARIES)
$(BUILD)/tests/ctl/test_%: $(BUILD)/tests/ctl/test_%.o $(BUILD)/tests/ctl/harness.o $(BUILD)/tests/ctl/tallyctl
	$(call say,LD  )$(CC) -o $@ $(filter %.o,$^) -lcmocka

$(call objects,$(wildcard tests/bpf/*.c)): $(SKELS)
$(BUILD)/tests/bpf/%: $(BUILD)/tests/bpf/%.o $(BUILD)/tests/bpf/harness.o
	$(call say,LD  )$(CC) -o $@ $^ -lcmocka -lpthread -Wl,--as-needed $(LIBRARIES)
$(call objects,tests/bpf/test_node.c): $(BUILD)/tests/bpf/beside.skel.h
$(BUILD)/tests/bpf/test_node $(BUILD)/tests/bpf/test_limits: $(BUILD)/agent.a $(BUILD)/libtally.a
$(BUILD)/tests/bpf/test_sweep: $(BUILD)/libtally.a

$(BUILD)/tests/e2e/%: $(BUILD)/tests/e2e/%.o $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lm

$(BUILD)/tests/e2e/store: $(BUILD)/tests/e2e/store.o $(call objects,$(ETCD)) $(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lcurl -lsystemd -ljansson

$(BUILD)/tests/e2e/starve.so: $(BUILD)/tests/e2e/starve.o
	$(call say,LD  )$(CC) -shared -o $@ $^

# The same data plane in the eyes of all but the agent: what an upgrade brings.
$(BUILD)/next/tallyd: $(BUILD)/tallyd
	@$(MAKE) --no-print-directory -s BUILD=$(BUILD)/next SALT=next $(BUILD)/next/tallyd

$(call objects,$(wildcard tests/vm/*.c)): $(SKELS)
$(BUILD)/tests/vm/%: $(BUILD)/tests/vm/%.o
	$(call say,LD  )$(CC) -o $@ $^ -lbpf

$(BUILD)/tests/bench/rings: $(BUILD)/agent.a
$(BUILD)/tests/bench/place $(BUILD)/tests/bench/predict_place $(REPRODUCED): \
		$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/sim.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lglpk -lexpat -lyaml -ljansson -lm
$(BUILD)/tests/bench/memory: $(call objects,sim/slots.c sim/slots_check.c)
$(BUILD)/tests/bench/predict $(BUILD)/tests/bench/quotas: $(call objects,$(wildcard agent/policy/predict*.c agent/policy/quota*.c) agent/policy/traces.c)
$(BUILD)/tests/bench/traffic $(BUILD)/tests/bench/cores: $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o \
		$(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ $(LIBRARIES)

$(call objects,$(wildcard tests/bench/*.c)): $(SKELS) $(BUILD)/tests/bench/bare.skel.h
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lbpf -lm

# Peers' libraries, which are there after scripts/setup-peers.sh.
$(BUILD)/tests/bench/mpi: tests/bench/mpi.c tests/bench/peer.h
	@mkdir -p $(@D)
	$(call say,MPI )mpicc.openmpi $(filter-out -MMD -MP,$(CFLAGS)) -o $@ $<
$(BUILD)/tests/bench/gloo: tests/bench/gloo.cc tests/bench/peer.h
	@mkdir -p $(@D)
	$(call say,GLOO)g++ -O2 -g -std=c++17 -Wall -Wno-unused-parameter -D_GNU_SOURCE -I. -pthread -o $@ $< -lgloo

-include $(shell find $(BUILD) -path $(BUILD)/vm -prune -o -name '*.d' -type f -print 2>/dev/null)
