# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One Makefile for all of Tally; outputs in build/. `make help` lists what there is.

BUILD   := build
CC      := gcc
CLANG   ?= clang-19
VERSION := 0.1.0

CFLAGS  := -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wmissing-prototypes \
	   -D_GNU_SOURCE -DTALLY_VERSION_TEXT='"$(VERSION)"' -Iinclude -I. -I$(BUILD) -MMD -MP
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	   -Wno-sign-compare -Iinclude -I/usr/include/$(shell gcc -print-multiarch) -MMD -MP
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

objects = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %.bpf.c,$(1)))

CLIENT  := $(wildcard client/*.c)
AGENT   := $(filter-out agent/tallyd.c agent/tally_node%,$(wildcard agent/*.c))
PURE    := agent/group.c agent/forecast.c agent/metrics.c $(wildcard agent/traffic*.c)
UNITS   := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
BPFS    := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(wildcard tests/bpf/test_*.c))
GUESTS  := $(patsubst tests/vm/%.c,$(BUILD)/tests/vm/%,$(wildcard tests/vm/*.c))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))
E2ES    := $(filter-out tests/e2e/lib.sh,$(wildcard tests/e2e/*.sh))
SKELS   := $(BUILD)/bpf/ingress.skel.h $(BUILD)/bpf/fanout.skel.h
PROGRAMS := $(addprefix $(BUILD)/,libtally.a libtally.so tally-node tally-perf train testbed-cable)

# `make V=1` shows whole commands.
ifeq ($(V),1)
say =
else
say = @echo "  $(1)" $(patsubst $(BUILD)/%,%,$@);
endif

.PHONY: help all setup demo bench test lint unit bpf e2e vm vm-all guest testbed clean
.SECONDARY:
.DELETE_ON_ERROR:

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

all: $(PROGRAMS) ## the library and all programs

setup: ## install what build and tests need (Debian 12, as root)
	@scripts/setup.sh

demo: setup ## four workers train on real images; one node sums their gradients
	@$(MAKE) --no-print-directory -s all
	@scripts/demo

bench: setup ## nanoseconds per packet and goodput, each beside its limit
	@$(MAKE) --no-print-directory -s all $(BENCHES)
	@scripts/bench

test: setup ## all rungs: lint, unit, bpf, e2e, and bpf once more on an older kernel
	-@scripts/setup-vm.sh
	@$(MAKE) --no-print-directory -s all guest $(UNITS) $(BPFS) $(BENCHES)
	@scripts/run-tests scripts/lint $(UNITS) $(BPFS) $(E2ES) vm-testbed/smoke

lint: all $(BENCHES) ## formatters, static analysers, who may include whom
	@scripts/run-tests scripts/lint

unit: $(UNITS) ## pure modules under ASan and UBSan
	@scripts/run-tests $(UNITS)

bpf: $(BPFS) ## the data plane by BPF_PROG_TEST_RUN
	@scripts/run-tests $(BPFS)

e2e: all ## real workers, nodes and losses in network namespaces
	@scripts/run-tests $(E2ES)

vm: ## the data plane and a bad network on a real 6.1 kernel, in an emulator
	-@scripts/setup-vm.sh
	@vm-testbed/all 6.1-cloud:bpf,netem

vm-all: ## all kernels of vm-testbed/kernels, with all their rungs
	-@scripts/setup-vm.sh
	@vm-testbed/all

guest: $(PROGRAMS) $(BPFS) $(GUESTS) # what goes into a guest

testbed: $(BUILD)/testbed-cable ## what scripts/testbed needs

clean: ## remove build/
	rm -rf $(BUILD)

# --- BPF programs and their skeletons

$(BUILD)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF )$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(call say,SKEL)bpftool gen skeleton $< name $(notdir $*)_bpf > $@

# --- C

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(CFLAGS) -fPIC -c $< -o $@

$(BUILD)/examples/train.o: CFLAGS += -O3
$(BUILD)/client/lanes.o: CFLAGS += -O3 -fno-math-errno -fno-trapping-math

$(BUILD)/libtally.a: $(call objects,$(CLIENT))
	$(call say,AR  )rm -f $@ && ar rcs $@ $^

$(BUILD)/libtally.so: $(call objects,$(CLIENT)) client/libtally.map
	$(call say,LD  )$(CC) -shared -Wl,--version-script=client/libtally.map -Wl,-soname,libtally.so.0 \
		-o $@ $(filter %.o,$^) -lm

$(call objects,$(wildcard agent/dataplane*.c)): $(SKELS)
# Only what a program uses of it is linked.
$(BUILD)/agent.a: $(call objects,$(AGENT))
	$(call say,AR  )rm -f $@ && ar rcs $@ $^

$(BUILD)/tally-node: $(call objects,$(wildcard agent/tally_node*.c)) $(BUILD)/agent.a $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lbpf -lnl-route-3 -lnl-3

$(call objects,$(wildcard agent/netlink*.c)): CFLAGS += $(shell pkg-config --cflags libnl-route-3.0)

$(BUILD)/tally-perf: $(call objects,$(wildcard examples/perf*.c)) $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lm
$(BUILD)/train: $(call objects,examples/train.c examples/dataset.c) $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lz -lm

$(call objects,tests/testbed/cable.c): $(BUILD)/tests/testbed/cable.skel.h
$(BUILD)/testbed-cable: $(call objects,tests/testbed/cable.c)
	$(call say,LD  )$(CC) -o $@ $^ -lbpf

# --- tests. Units: the tested sources are compiled anew, with sanitizers.

$(BUILD)/tests/unit/%: tests/unit/%.c $(CLIENT) $(PURE) $(wildcard include/tally/*.h client/*.h agent/*.h)
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $(filter %.c,$^) -lcmocka -lm $(LIBRARIES)

# Edges that are tested alone, against the kernel and the library that they stand for.
$(BUILD)/tests/unit/test_netlink_links: agent/netlink_links.c
$(BUILD)/tests/unit/test_netlink_links: CFLAGS += $(shell pkg-config --cflags libnl-route-3.0)
$(BUILD)/tests/unit/test_netlink_links: LIBRARIES := -lnl-route-3 -lnl-3
$(BUILD)/tests/unit/test_metrics_http: agent/metrics_http.c
$(BUILD)/tests/unit/test_metrics_http: LIBRARIES := -lmicrohttpd

$(call objects,$(wildcard tests/bpf/*.c)): $(SKELS)
$(BUILD)/tests/bpf/%: $(BUILD)/tests/bpf/%.o $(BUILD)/tests/bpf/harness.o
	$(call say,LD  )$(CC) -o $@ $^ -lcmocka -lbpf -lpthread

$(call objects,$(wildcard tests/vm/*.c)): $(SKELS)
$(BUILD)/tests/vm/%: $(BUILD)/tests/vm/%.o
	$(call say,LD  )$(CC) -o $@ $^ -lbpf

$(BUILD)/tests/bench/traffic: $(BUILD)/tests/bench/traffic.o $(BUILD)/agent.a
	$(call say,LD  )$(CC) -o $@ $^ -lnl-route-3 -lnl-3 -lm

$(call objects,$(wildcard tests/bench/*.c)): $(SKELS) $(BUILD)/tests/bench/bare.skel.h
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libtally.a
	$(call say,LD  )$(CC) -o $@ $^ -lbpf -lm

-include $(shell find $(BUILD) -path $(BUILD)/vm -prune -o -name '*.d' -type f -print 2>/dev/null)
