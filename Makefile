# SPDX-License-Identifier: MIT
# The front door: it sees that the packages are there and calls meson. `make help` says what there is.

BUILD ?= build
# Debian's own python: one from elsewhere does not see Debian's modules.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
CHECK = $(PYTHON) tools/check.py --build $(BUILD)

MINUTES ?= 60
FUZZ_SECONDS ?= 600

.PHONY: all demo check check-fast check-models coverage mutants soak soak-daemon soak-kernel bench kernel kernel-full vm vm-check-patched install uninstall dist deb rpm clean help

all:
	@tools/deps.sh build
	@tools/build.sh $(BUILD)

demo:
	@tools/deps.sh demo
	@tools/build.sh $(BUILD)
	@$(BUILD)/gpreempt demo --out $(BUILD)/demo

check:
	@tools/deps.sh check
	@tools/deps.sh vm
	@$(CHECK) $(if $(filter 1,$(SAN)),--san)

check-fast:
	@tools/deps.sh check
	@$(CHECK) --fast $(if $(filter 1,$(SAN)),--san)

check-models:
	@tools/deps.sh build
	@tools/deps.sh models
	@tools/build.sh $(BUILD)
	@GPREEMPT_BUILD=$(abspath $(BUILD)) ninja -C $(BUILD) --quiet check-models

coverage:
	@tools/deps.sh check
	@$(CHECK) --html coverage

mutants:
	@tools/deps.sh check
	@$(PYTHON) tools/mutants.py $(MUTANTS)

soak: soak-daemon soak-kernel

soak-daemon:
	@tools/deps.sh build
	@tools/build.sh $(BUILD)
	@$(PYTHON) tools/soak.py --build $(BUILD) --minutes $(MINUTES) $(SOAK)

soak-kernel:
	@tools/deps.sh build
	@tools/deps.sh vm
	@tools/build.sh $(BUILD)
	@ninja -C $(BUILD) --quiet tests/kernel/session_fuzz
	@kernel/bed/run --patched --build $(BUILD) --timeout 1800 'session_fuzz $(FUZZ_SECONDS)'

bench:
	@tools/deps.sh bench
	@tools/build.sh $(BUILD)
	@ninja -C $(BUILD) --quiet bench/agent_cost bench/core_cost bench/daemon_cost bench/daemon_latency bench/discover_speed bench/level_cost bench/model_speed bench/sampling
	@GPREEMPT_BUILD=$(BUILD) RESULTS=$(RESULTS) bench/run.sh

kernel:
	@tools/deps.sh vm
	@kernel/bed/build

vm-check-patched:
	@tools/deps.sh build
	@tools/deps.sh vm
	@tools/build.sh $(BUILD)
	@ninja -C $(BUILD) vm-check-patched

kernel-full:
	@tools/deps.sh vm
	@kernel/bed/build --full

vm:
	@tools/deps.sh build
	@tools/deps.sh vm
	@tools/build.sh $(BUILD)
	@kernel/bed/vm --build $(BUILD) $(VM)

install:
	@tools/deps.sh build
	@tools/build.sh $(BUILD) $(if $(PREFIX),-Dprefix=$(PREFIX))
	@meson install -C $(BUILD) --no-rebuild
	@cp $(BUILD)/meson-logs/install-log.txt $(BUILD)/installed

uninstall:
	@tools/uninstall.sh $(BUILD)/installed
	@rm $(BUILD)/installed

dist:
	@tools/deps.sh dist
	@tools/dist.sh $(BUILD)/dist

deb rpm:
	@tools/deps.sh build
	@tools/deps.sh $@
	@tools/pack.sh $@ $(BUILD)/$@

clean:
	rm -rf $(BUILD)

help:
	@echo 'make demo        build, run the main job on a simulated GPU, show the table and the page'
	@echo 'make check       every test; SAN=1: all of them under ASan and UBSan'
	@echo 'make check-fast  every test that needs no virtual machine'
	@echo 'make check-models  the tests with real models: Debian packages of PyTorch, 145 MB, come first'
	@echo 'make coverage    which lines the tests reach, as a table and as pages'
	@echo 'make mutants     small faults put into the code, and which of them no test notices; MUTANTS="--sample 60 src/daemon"'
	@echo 'make soak        both of these, one after the other'
	@echo 'make soak-daemon  clients come, go and are killed, gpreemptd too, for an hour: MINUTES=5; SOAK="--seed 7"'
	@echo 'make soak-kernel  random and hostile calls to the driver with kernel/series, for ten minutes: FUZZ_SECONDS=600'
	@echo 'make kernel      the test kernel and the driver on a software GPU, built once: about 10 minutes on two cores'
	@echo 'make vm          a shell in a virtual machine with them; VM="--devices 2" and the like'
	@echo 'make vm-check-patched  every test of the driver, on the driver with kernel/series'
	@echo 'make kernel-full  the whole amdgpu.ko with kernel/series, compiled and not run; takes long'
	@echo 'make bench       the published numbers, made again; RESULTS=results: those of core and gpreemptd also as JSON'
	@echo 'make install     PREFIX=/usr/local, DESTDIR= for packagers'
	@echo 'make uninstall   take away what the last make install from $(BUILD)/ brought'
	@echo 'make dist        an archive for other systems, EL8 and newer, in $(BUILD)/dist: docs/INSTALL.md'
	@echo 'make deb         packages for Debian 12, in $(BUILD)/deb; make rpm: for EL8, in $(BUILD)/rpm: docs/INSTALL.md'
	@echo 'make clean       remove $(BUILD)/'
	@echo 'Missing Debian packages are named and installed first.'
